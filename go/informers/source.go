// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"time"

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
	missed   bool         // the deletion itself was not seen
}

// source gives what happens to the objects of a scope, in order.
type source interface {
	// next waits for changes, and returns them with the position that they lead to. The first call
	// returns all objects as added, without a wait.
	next(ctx context.Context) (changes []change, at position, version string, err error)
}

const pollPeriod = 2 * time.Millisecond

// poller compares the objects of a scope after each commit with those that it knows.
type poller struct {
	view  func(func(*kinf.Snapshot, *kinf.Feed, position) error) error
	scope *Scope
	known map[string]*kinf.Object
	at    position
}

func (p *poller) next(ctx context.Context) (changes []change, at position, version string, err error) {
	for {
		err := p.view(func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
			if p.known != nil && now == p.at {
				return nil
			}
			at, version = now, f.ResourceVersion
			var err error
			changes, err = p.compare(s, f, now)
			return err
		})
		if err != nil || at != (position{}) {
			return changes, at, version, err
		}
		select {
		case <-ctx.Done():
			return nil, at, "", ctx.Err()
		case <-time.After(pollPeriod):
		}
	}
}

func (p *poller) compare(s *kinf.Snapshot, f *kinf.Feed, now position) ([]change, error) {
	var changes []change
	next := map[string]*kinf.Object{}
	for object, err := range s.List(f.Name, kinf.Query{Namespace: p.scope.Namespace}) {
		if err != nil {
			return nil, err
		}
		selected, err := p.scope.selects(object)
		if err != nil {
			return nil, err
		}
		if !selected {
			continue
		}
		next[object.Key] = object
		old := p.known[object.Key]
		if old == nil || old.ResourceVersion != object.ResourceVersion || old.UID != object.UID {
			changes = append(changes, change{key: object.Key, at: position{now.epoch, object.Event}, old: old, new: object,
				known: old != nil})
		}
	}
	for key, old := range p.known {
		if next[key] == nil {
			changes = append(changes, change{key: key, at: now, old: old, known: true})
		}
	}
	p.known, p.at = next, now
	return changes, nil
}
