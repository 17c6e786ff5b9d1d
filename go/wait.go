// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"context"
	"errors"
	"runtime"
	"time"
)

const (
	waitMost  = 5 * time.Second        // for an index that is behind
	waitGone  = time.Second            // for one without a processor
	waitAwake = 30 * time.Microsecond  // usually the index is this close
	waitLook  = 100 * time.Millisecond // between two looks for the processor
)

// WaitFor waits until a new snapshot shows an event: what a handler saw, a read shows. Usually it is
// shown already, or in microseconds. ErrNotYet after 5 s while the processor is far behind, and after
// 1 s while it does not run.
func (s *Store) WaitFor(ctx context.Context, event Event) error {
	snapshot, err := s.SnapshotAt(ctx, event)
	if err == nil {
		snapshot.Close()
	}
	return err
}

// SnapshotAt takes a snapshot that shows an event; or of the next journal, if that has come since. It
// waits as WaitFor does.
func (s *Store) SnapshotAt(ctx context.Context, event Event) (*Snapshot, error) {
	snapshot := &Snapshot{store: s}
	if err := snapshot.RenewAt(ctx, event); err != nil {
		snapshot.Close()
		return nil, err
	}
	return snapshot, nil
}

// RenewAt takes the newest state instead, when it shows an event. It waits as Store.WaitFor does.
func (s *Snapshot) RenewAt(ctx context.Context, event Event) error {
	shows := func() (bool, error) {
		err := s.Renew()
		if err == nil && (s.Event() >= event.Shown || s.Journal() != event.Journal) {
			return true, nil
		}
		s.Reset() // no pages are held while it waits
		if errors.Is(err, ErrNotYet) {
			err = nil
		}
		return false, err
	}
	for began := time.Now(); time.Since(began) < waitAwake; runtime.Gosched() {
		if shown, err := shows(); shown || err != nil {
			return err
		}
	}
	var gone time.Time
	began := time.Now()
	return s.store.waitIndex(ctx, func() (bool, error) {
		shown, err := shows()
		now := time.Now()
		if !shown && err == nil && (now.Sub(began) >= waitMost || s.store.isForsaken(now, &gone)) {
			err = say(ErrNotYet, "the index of '%s' is behind event %d: see 'kinf status'", s.store.path, event.Shown)
		}
		return shown, err
	})
}

// waitIndex calls check after each commit of the index, and now and then, until it returns true or an
// error.
func (s *Store) waitIndex(ctx context.Context, check func() (bool, error)) error {
	defer s.awaitIndex()()
	for {
		indexed := s.indexed.next()
		if done, err := check(); done || err != nil {
			return err
		}
		if err := sleep(ctx, indexed, waitLook); err != nil {
			return err
		}
	}
}

// isForsaken tells whether no processor has run for too long. GONE: since when.
func (s *Store) isForsaken(now time.Time, gone *time.Time) bool {
	s.mu.Lock()
	pair := s.pair
	s.mu.Unlock()
	if pair == nil || pair.home.holder("processor") != 0 {
		*gone = time.Time{}
		return false
	}
	if gone.IsZero() {
		*gone = now
	}
	return now.Sub(*gone) >= waitGone
}

// WaitSynced waits until every feed named was listed once. Feeds that do not exist yet are waited for.
// The error of an ended context says which feed was missing.
func (s *Store) WaitSynced(ctx context.Context, feeds ...string) error {
	var why error
	err := s.waitIndex(ctx, func() (bool, error) {
		why = s.View(func(snapshot *Snapshot) error { return snapshot.checkSynced(feeds) })
		if errors.Is(why, ErrNotYet) || errors.Is(why, ErrNoFeed) {
			return false, nil
		}
		return why == nil, why
	})
	if err != nil && ctx.Err() != nil {
		return wrap(err, "%v", why)
	}
	return err
}

func (s *Snapshot) checkSynced(names []string) error {
	for _, name := range names {
		set, err := s.Feeds(name)
		if err != nil {
			return err
		}
		for i := range set {
			if !set[i].Synced() {
				return say(ErrNotYet, "feed '%s' was not listed so far", set[i].Name)
			}
		}
	}
	return nil
}
