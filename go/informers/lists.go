// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"kinf"
)

// How many records of the log are looked through to mend a kept list: for each of its objects some, since
// reading one takes as long.
const changesMost, changesOfEach = 1024, 16

// keptList is a list as of a change of its feed.
type keptList struct {
	mu     sync.Mutex // one reads for all who ask at the same time, as at a program's start
	asked  bool       // for it once; the second time it is kept
	change position
	items  []listed  // in the order of their keys; never changed
	used   time.Time // guarded by ObjectCache.mu
}

// listed is an object in a list.
type listed struct {
	key    string
	object any
}

// listShared gives the objects of the scope in a namespace. A list that was kept is mended by what has changed
// since: controllers of client-go list all objects for each one that they handle.
func (i *Informer) listShared(s *kinf.Snapshot, f *kinf.Feed, epoch int, namespace string) ([]any, error) {
	var list []listed
	var err error
	if event, shown := f.Change(); shown {
		list, err = i.objects.listOf(listName{i, namespace}).get(i, s, f, position{epoch, event}, namespace)
	} else {
		list, err = i.listAll(s, f, epoch, namespace)
	}
	if err != nil {
		return nil, err
	}
	items := make([]any, len(list))
	for n := range list {
		items[n] = list[n].object
	}
	return items, nil
}

// get returns the list as of a change of its feed, or of a later one.
func (l *keptList) get(i *Informer, s *kinf.Snapshot, f *kinf.Feed, now position, namespace string) (list []listed, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := false
	if l.items != nil && l.change.epoch == now.epoch {
		if !l.change.before(now) {
			return l.items, nil
		}
		list, known, err = i.mend(s, f, l.items, l.change, namespace)
	}
	if !known && err == nil {
		list, err = i.listAll(s, f, now.epoch, namespace)
	}
	if err == nil && l.asked {
		l.change, l.items = now, list
	}
	l.asked = true
	return list, err
}

// listAll reads all objects of a list.
func (i *Informer) listAll(s *kinf.Snapshot, f *kinf.Feed, epoch int, namespace string) ([]listed, error) {
	list := []listed{}
	for o, err := range s.List(f.Name, i.scope.narrow(kinf.Query{Namespace: namespace})) {
		if err != nil {
			return nil, err
		}
		object, _, err := i.pick(o, epoch, true)
		if err != nil {
			return nil, err
		}
		if object != nil {
			list = append(list, listed{strings.Clone(o.Key), object})
		}
	}
	return list, nil
}

// mend returns a list with what has changed since; false: that is not known.
func (i *Informer) mend(s *kinf.Snapshot, f *kinf.Feed, list []listed, then position, namespace string) ([]listed, bool, error) {
	keys, known, err := s.Changed(f, then.event, changesMost+changesOfEach*len(list))
	if err != nil || !known {
		return nil, false, err
	}
	list = slices.Clone(list)
	for _, key := range keys {
		if namespace != "" && !strings.HasPrefix(key, namespace+"/") {
			continue
		}
		at, found := slices.BinarySearchFunc(list, key, func(l listed, key string) int { return strings.Compare(l.key, key) })
		if found {
			list = slices.Delete(list, at, at+1)
		}
		o, err := s.Get(f.Name, key)
		if errors.Is(err, kinf.ErrNotFound) {
			continue
		}
		var object any
		if err == nil {
			object, _, err = i.pick(o, then.epoch, true)
		}
		if err != nil {
			return nil, false, err
		}
		if object != nil {
			list = slices.Insert(list, at, listed{key, object})
		}
	}
	return list, true, nil
}
