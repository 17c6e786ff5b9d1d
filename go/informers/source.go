// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"strings"

	"kinf"
)

// position is a place in the history of a store: journals follow one another, and each numbers its
// own events.
type position struct {
	epoch int
	event uint64
}

func (p position) before(q position) bool {
	return p.epoch < q.epoch || p.epoch == q.epoch && p.event < q.event
}

// change is what happened to one object.
type change struct {
	key      string
	at       position
	old, new *kinf.Object // old nil: added, or its state is not known; new nil: deleted
	known    bool         // the object was there before
	was      position     // of the version then
	missed   bool         // the deletion itself was not seen
}

// source gives what happens to the objects of a scope, in order. It knows the keys that there are, for
// the case that history is lost, and no object.
type source struct {
	informer *Informer
	follower *kinf.Follower // nil: the feed has to be found again
	feed     uint32         // that it follows
	known    keySet
	again    *keySet // what came after a lapse; nil: nothing has lapsed
}

// start reads the keys, and follows what comes after them. It returns their position.
func (s *source) start(ctx context.Context) (at position, err error) {
	i := s.informer
	snapshot, err := i.store.Snapshot()
	if err != nil {
		return at, err
	}
	defer snapshot.Close()
	f, at, err := i.locate(snapshot)
	if err != nil {
		return at, err
	}
	known := keyWriter{size: keyBlockSize}
	for name, err := range i.names(snapshot, f, i.scope.Namespace) {
		if err != nil {
			return at, err
		}
		known.add([]byte(name.Key), position{at.epoch, name.Event})
	}
	s.known = known.keySet
	s.feed = f.ID
	s.follower, err = i.store.Follow(ctx, kinf.FollowOptions{Feed: f.Name, Namespace: i.scope.Namespace, Snapshot: snapshot})
	return at, err
}

// resume follows the feed that holds the scope now, from all objects on. Feeds are removed, renamed and
// narrowed by the machine's configuration.
func (s *source) resume(ctx context.Context) error {
	var name string
	i := s.informer
	err := i.view(func(_ *kinf.Snapshot, f *kinf.Feed, _ position) error {
		name, s.feed = f.Name, f.ID
		return nil
	})
	if err != nil {
		return err
	}
	s.again = &keySet{}
	s.follower, err = i.store.Follow(ctx, kinf.FollowOptions{Feed: name, Namespace: i.scope.Namespace})
	return err
}

func (s *source) stop() {
	if s.follower != nil {
		s.follower.Close()
		s.follower = nil
	}
}

// next waits for an event, and returns what it changes. An error leaves the source as it was.
func (s *source) next(ctx context.Context) ([]change, position, error) {
	if s.follower == nil {
		if err := s.resume(ctx); err != nil {
			return nil, position{}, err
		}
	}
	event, err := s.follower.Next(ctx)
	if errors.Is(err, kinf.ErrLapsed) || errors.Is(err, kinf.ErrNoFeed) || err == nil && event.Type == kinf.Synced && !s.isCurrent() {
		s.stop()
		return nil, position{}, nil
	}
	if err != nil {
		return nil, position{}, err
	}
	at := position{s.informer.epochOf(event.Journal), event.Number}
	switch {
	case event.Type == kinf.Synced:
		return s.missed(at), at, nil
	case event.Type == kinf.Deleted:
		return s.deleted(&event, at), at, nil
	}
	selected, err := s.informer.scope.selects(event.Object)
	if err != nil {
		return nil, position{}, err
	}
	if !selected {
		return s.deleted(&event, at), at, nil
	}
	return s.changed(&event, at), at, nil
}

// isCurrent tells whether the feed that is followed holds the scope: what others lack is not deleted.
func (s *source) isCurrent() bool {
	return s.informer.view(func(_ *kinf.Snapshot, f *kinf.Feed, _ position) error {
		if f.ID != s.feed {
			return kinf.ErrNoFeed
		}
		return nil
	}) == nil
}

// changed tells of an object's new version.
func (s *source) changed(event *kinf.Event, at position) []change {
	o := event.Object
	if event.Initial {
		at.event = o.Event
	}
	before, known := s.known.put(o.Key, at)
	if s.again != nil { // also a change, of an object that the list does not have
		s.again.put(o.Key, at)
	}
	if known && !before.before(at) {
		return nil
	}
	c := change{key: strings.Clone(o.Key), at: at, new: o, known: known, was: before}
	if known && event.Old != nil && event.Old.Event == before.event {
		c.old = event.Old
	}
	return []change{c}
}

// deleted tells that an object is not there any more, or is not of the scope any more.
func (s *source) deleted(event *kinf.Event, at position) []change {
	o := event.Object
	was, known := s.known.remove(o.Key)
	if !known {
		return nil
	}
	if event.Type != kinf.Deleted { // the handler gets the state that it knows
		last := *o
		if event.Old != nil {
			last = *event.Old
			last.ResourceVersion = o.ResourceVersion
		}
		o = &last
	}
	return []change{{key: o.Key, at: at, old: o, known: true, was: was, missed: event.Unknown}}
}

// missed tells of the objects that did not come again after a lapse.
func (s *source) missed(at position) (changes []change) {
	if s.again == nil {
		return nil
	}
	for key, was := range s.known.all() {
		if _, found := s.again.get(key); !found {
			changes = append(changes, change{key: key, at: at, known: true, was: was, missed: true})
		}
	}
	for n := range changes {
		s.known.remove(changes[n].key)
	}
	s.again = nil
	return changes
}
