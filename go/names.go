// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"iter"
	"runtime/debug"
)

// A Name is an object's key, and the event of its version.
type Name struct {
	Key   string
	Event uint64
}

// Names gives the names of a feed's objects, in a namespace if that is not empty, in the order of their
// keys. It reads no object, so it is many times faster than List.
func (s *Snapshot) Names(feed *Feed, namespace string) iter.Seq2[Name, error] {
	return func(yield func(Name, error) bool) {
		prefix := ""
		if feed.Namespaced && namespace != "" {
			prefix = namespace + "/"
		}
		var walk nameWalk
		for opened := false; ; opened = true {
			name, found, err := s.nextName(&walk, opened, feed.ID, prefix)
			if err != nil {
				yield(Name{}, err)
				return
			}
			if !found || !yield(name, nil) {
				return
			}
		}
	}
}

func (s *Snapshot) nextName(walk *nameWalk, opened bool, feed uint32, prefix string) (name Name, found bool, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return name, false, err
	}
	if opened {
		err = walk.step()
	} else {
		err = walk.open(s, feed, prefix, "")
	}
	if err == nil {
		var key []byte
		var e entry
		key, e, found, err = walk.next()
		name = Name{string(key), e.seq}
	}
	return name, found, s.result(err)
}
