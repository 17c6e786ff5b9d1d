// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"context"
	"errors"
	"time"
)

const (
	waitMost    = 5 * time.Second // for an index that is behind
	waitGone    = time.Second     // for one without a processor
	waitPause   = 100 * time.Microsecond
	waitPauseMx = 2 * time.Millisecond
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
	var gone time.Time
	began := time.Now()
	for pause := waitPause; ; pause = min(2*pause, waitPauseMx) {
		err := s.Renew()
		if err == nil && (s.Event() >= event.Shown || s.Journal() != event.Journal) {
			return nil
		}
		s.Reset() // no pages are held while it waits
		if err != nil && !errors.Is(err, ErrNotYet) {
			return err
		}
		now := time.Now()
		if now.Sub(began) >= waitMost || s.store.isForsaken(now, &gone) {
			return say(ErrNotYet, "the index of '%s' is behind event %d: see 'kinf status'", s.store.path, event.Shown)
		}
		if err := sleep(ctx, nil, pause); err != nil {
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
	for pause := waitPause; ; pause = min(2*pause, notYetPause/2) {
		missing := ""
		err := s.View(func(snapshot *Snapshot) error {
			for _, name := range feeds {
				missing = name
				set, err := snapshot.Feeds(name)
				if err != nil {
					return err
				}
				for i := range set {
					if !set[i].Synced() {
						return ErrNotYet
					}
				}
			}
			return nil
		})
		if err == nil || !errors.Is(err, ErrNotYet) && !errors.Is(err, ErrNoFeed) {
			return err
		}
		if ended := sleep(ctx, nil, pause); ended != nil {
			return wrap(ended, "feed '%s' was not listed so far: %v", missing, err)
		}
	}
}
