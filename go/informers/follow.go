// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kinf"
)

// Changes are what happens to the objects of a scope, from a named cursor on: also what happened while
// the program was away.
type Changes struct {
	*kinf.Follower
	store   *kinf.Store
	scope   Scope
	decoder *decoder
	read    *kinf.Event // no snapshot shows it so far
}

// A Change is an event of an object, or kinf.Synced. Only the event's numbers and flags are of use.
type Change struct {
	kinf.Event
	Old, New runtime.Object // nil: it was added, deleted
}

// Follow follows a scope from where the cursor was committed last; a new cursor begins with all objects
// as added. Its objects are of the type of example. It writes the cursor by Commit and CommitBefore
// only. ErrNotCovered: no feed of the store holds the scope.
func Follow(ctx context.Context, store *kinf.Store, scope Scope, example runtime.Object, cursor string) (*Changes, error) {
	d, err := newDecoder(example)
	if err != nil {
		return nil, err
	}
	scope.Metadata = scope.Metadata || d.isMetadata()
	if err := scope.parse(); err != nil {
		return nil, err
	}
	var name string
	err = store.View(func(s *kinf.Snapshot) error {
		f, err := scope.find(s)
		if err == nil {
			name = f.Name
			d.kind = schema.GroupVersionKind{Group: f.Group, Version: f.Version, Kind: f.Kind}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	follower, err := store.Follow(ctx, kinf.FollowOptions{Feed: name, Namespace: scope.Namespace, Cursor: cursor, CommitByHand: true})
	if err != nil {
		return nil, err
	}
	return &Changes{follower, store, scope, d, nil}, nil
}

// Next waits for the next change, and until reads show it. Errors are those of kinf.Follower.Next; after
// ErrLapsed all objects come as added. A change to an object that the type refuses is an error once.
func (c *Changes) Next(ctx context.Context) (Change, error) {
	for {
		if c.read == nil {
			event, err := c.Follower.Next(ctx)
			if err != nil || event.Type == kinf.Synced {
				return Change{Event: event}, err
			}
			c.read = &event
		}
		if err := c.store.WaitFor(ctx, *c.read); err != nil {
			return Change{}, err
		}
		change, err := c.change(c.read)
		c.read = nil
		if err != nil {
			return change, err
		}
		if change.Old != nil || change.New != nil {
			return change, nil
		}
	}
}

// Commit writes the cursor: all that Next returned so far is handled.
func (c *Changes) Commit() error { return c.CommitBefore(math.MaxUint64) }

// CommitBefore is kinf.Follower's, and leaves out an event that no read shows yet.
func (c *Changes) CommitBefore(number uint64) error {
	if c.read != nil {
		number = min(number, c.read.Number)
	}
	return c.Follower.CommitBefore(number)
}

// change decodes an event. One that has nothing to do with the scope has neither object.
func (c *Changes) change(event *kinf.Event) (change Change, err error) {
	change.Event = *event
	last := event.Old
	if event.Type == kinf.Deleted {
		last = event.Object
	} else if change.New, err = c.selected(event.Object); err != nil {
		return change, err
	}
	if last == nil {
		return change, nil
	}
	if event.Type == kinf.Deleted && len(last.Raw()) == 0 {
		change.Old, change.Unknown = c.decoder.empty(last.Key), true
		return change, nil
	}
	if change.Old, err = c.selected(last); errors.Is(err, errRefused) {
		change.Old, change.Unknown, err = c.decoder.empty(last.Key), event.Type == kinf.Deleted, nil
	}
	return change, err
}

// selected decodes an object of the scope; nil: it is none.
func (c *Changes) selected(o *kinf.Object) (runtime.Object, error) {
	selected, err := c.scope.selects(o)
	if err != nil || !selected {
		return nil, err
	}
	object, err := c.decoder.object(o)
	typed, _ := object.(runtime.Object)
	return typed, err
}

// ScopeOfKind returns the scope of all objects of a kind that the store has.
func ScopeOfKind(store *kinf.Store, kind schema.GroupVersionKind) (scope Scope, err error) {
	err = store.View(func(s *kinf.Snapshot) error {
		feeds, err := s.Feeds("")
		for i := range feeds {
			f := &feeds[i]
			if (schema.GroupVersionKind{Group: f.Group, Version: f.Version, Kind: f.Kind}) == kind {
				scope.Resource = schema.GroupVersionResource{Group: f.Group, Version: f.Version, Resource: f.Resource}
				return nil
			}
		}
		if err == nil {
			err = fmt.Errorf("%s: %w", kind, ErrNotCovered)
		}
		return err
	})
	return scope, err
}
