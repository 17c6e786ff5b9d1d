// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"time"
)

// FollowOptions of a follower. It begins at the first of Cursor, Snapshot and After that is set, else
// with all objects that there are.
type FollowOptions struct {
	Feed      string // named as for Get
	Namespace string // "": all

	// The name of a cursor: after what the last follower with this name handled, deletions with their
	// last state; the first one gets all objects. A cursor has one follower at a time: ErrLocked.
	Cursor string
	// Only Commit and CommitBefore write the cursor. Else an event counts as handled when Next is called again; a killed
	// follower gets the last ones twice.
	CommitByHand bool

	Snapshot *Snapshot // after what it shows; not used after Follow
	After    uint64    // after this event, such as a Feed's, of Journal
	Journal  [16]byte  // zero: the one that the store has
	Changes  bool      // with what changes from now on
}

// EventType is what an Event says.
type EventType int

const (
	Added    EventType = 1 + iota // or there from the beginning: Initial
	Modified                      // another uid than Old's: deleted, and created again in between
	Deleted
	Synced // all initial objects were given; there is no Object
)

var eventTypes = []string{"", "ADDED", "MODIFIED", "DELETED", "SYNC"}

func (t EventType) String() string { return eventTypes[t] }

// An Event is what happened to one object. It may be kept.
type Event struct {
	Type    EventType
	Initial bool    // Added: it is one of the objects that a follower begins with
	Object  *Object // Deleted: the last state that is kept
	Old     *Object // the state before; nil: there was none
	Unknown bool    // Deleted: a list found it missing, so its last changes may be unknown

	Number  uint64    // of the event; initial: the snapshot's that it was read from
	Journal [16]byte  // of the number
	Time    time.Time // of its recording; zero if it is initial
	Feed    uint32    // id
	Shown   uint64    // a snapshot up to this event shows it (Store.WaitFor)
}

// A Follower gives the objects of a feed as Added and Initial, Synced, and then every change, in order
// and once. One that begins at a position gives Synced first, when the position is known to be kept.
//
//	follower, err := store.Follow(ctx, kinf.FollowOptions{Feed: "pods"})
//	defer follower.Close()
//	for {
//		event, err := follower.Next(ctx)
//		if errors.Is(err, kinf.ErrLapsed) {
//			clear(known) // all objects come again
//		} else if err != nil {
//			return err
//		} else {
//			handle(event)
//		}
//	}
//
// ErrLapsed: the history after the position is not kept, it is of another journal, or the name stands
// for other feeds. It is given once. The follower then begins again with all objects; those that do not
// come again no longer exist.
//
// Events come from the journal, a moment before a snapshot shows them: Store.WaitFor and
// Store.SnapshotAt wait for that. Between two calls a follower holds no snapshot, so its caller may
// take any time. It keeps a hundred objects or a megabyte at most.
//
// One goroutine uses a follower at a time.
type Follower struct {
	store    *Store
	options  FollowOptions
	snapshot *Snapshot

	feeds      []*followed
	ids        map[uint32]*followed
	journal    [16]byte // of the feeds and their positions
	located    bool     // feeds are known
	informed   bool     // something was given, or it began at a position: a lapse matters
	owesSynced bool
	notBefore  uint64 // no index that has taken less is read: no object goes back
	checked    time.Time
	behind     bool // objects wait for the index
	more       bool // the log was not read to its end
	cursor     *cursor
	foreign    bool   // the cursor is of other feeds
	synced     bool   // Synced was handled
	most       uint64 // later events are still worked on (CommitBefore)

	queue      []Event // read
	given      int     // of them
	queueBytes int
	failing    bool // the last call
	closed     bool
}

const (
	queueMost      = 128                   // events read at once
	queueBytesMost = 1 << 20               // more ends a turn of reading
	holdMost       = 50 * time.Millisecond // a snapshot is held
	followCheck    = time.Second
)

// Follow makes a follower. ErrNoFeed: there is no such feed. Until the store has an index, it waits.
func (s *Store) Follow(ctx context.Context, options FollowOptions) (*Follower, error) {
	if strings.Contains(options.Namespace, "/") {
		return nil, say(ErrSyntax, "'%s' is no namespace", options.Namespace)
	}
	if options.Feed == "" {
		return nil, say(ErrSyntax, "a follower needs the name of a feed")
	}
	f := &Follower{store: s, options: options, snapshot: &Snapshot{store: s}, most: math.MaxUint64}
	if err := s.startWaking(); err != nil {
		return nil, err
	}
	err := f.openCursor()
	if err == nil {
		err = f.begin(ctx)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	f.options.Snapshot = nil
	return f, nil
}

func (f *Follower) openCursor() error {
	if f.options.Cursor == "" {
		return nil
	}
	h, err := openHome(f.store.path)
	if err == nil {
		f.cursor, err = h.openCursor(f.options.Cursor)
	}
	return err
}

// begin finds the feeds and the positions to begin at.
func (f *Follower) begin(ctx context.Context) (err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if start := f.options.Snapshot; start != nil {
		if err := start.mustHold(); err != nil {
			return err
		}
		return f.locate(start)
	}
	for {
		woken := f.store.commits.next()
		err := f.snapshot.Renew()
		if err == nil {
			err = f.locate(f.snapshot)
			f.snapshot.Reset()
			return err
		}
		if !errors.Is(err, ErrNotYet) {
			return err
		}
		if err := sleep(ctx, woken, notYetPause); err != nil {
			return err
		}
	}
}

// Next waits for the next event, and returns it. Other errors than ErrLapsed: the context's;
// ErrNoFeed, until the feed is there again; ErrCorrupt and others, if the store can't be read now. A
// later call goes on where this one ended; after such an error it waits for a moment first.
func (f *Follower) Next(ctx context.Context) (Event, error) {
	if f.failing {
		if err := sleep(ctx, nil, failedPause); err != nil {
			return Event{}, err
		}
		f.failing = false
	}
	if f.closed {
		return Event{}, say(ErrClosed, "the follower was closed")
	}
	f.settle()
	if err := ctx.Err(); err != nil {
		return Event{}, err
	}
	if err := f.save(false); err != nil {
		f.failing = true
		return Event{}, err
	}
	for {
		if f.given < len(f.queue) {
			return f.give(), nil
		}
		woken, indexed := f.store.commits.next(), f.store.indexed.next()
		err := f.read()
		switch {
		case f.given < len(f.queue): // an error comes again, after them
			continue
		case err != nil && !errors.Is(err, ErrNotYet):
			f.failing = !errors.Is(err, ErrLapsed)
			return Event{}, err
		case err == nil && (f.more || !f.located): // it lapsed before it gave anything
			continue
		}
		pause := time.Duration(0)
		if err != nil {
			pause = notYetPause
		}
		if f.behind {
			woken = indexed // changes of other feeds wait meanwhile
		}
		if err := f.rest(ctx, woken, pause); err != nil {
			return Event{}, err
		}
	}
}

// rest sleeps until there may be more, and writes the cursor meanwhile.
func (f *Follower) rest(ctx context.Context, woken <-chan struct{}, pause time.Duration) error {
	if f.behind {
		defer f.store.awaitIndex()()
	}
	if f.cursor == nil || !f.synced {
		return sleep(ctx, woken, pause)
	}
	for _, w := range f.feeds {
		w.handled = w.position // all that was read was handled
	}
	if err := f.save(true); err != nil {
		f.failing = true
		return err
	}
	if due := f.saveAfter(true); pause == 0 || due < pause {
		pause = max(due, time.Millisecond)
	}
	return sleep(ctx, woken, pause)
}

// give takes the first event from the queue.
func (f *Follower) give() Event {
	event := f.queue[f.given]
	f.queue[f.given].Object, f.queue[f.given].Old = nil, nil
	f.given++
	f.informed = true
	if f.cursor != nil {
		f.cursor.events++
	}
	return event
}

// Close ends the follower, and writes its cursor. Events that it gave stay valid.
func (f *Follower) Close() (err error) {
	if f.closed {
		return nil
	}
	f.closed = true
	f.snapshot.Close()
	f.store.stopWaking()
	if f.cursor != nil {
		if f.synced && !f.options.CommitByHand {
			err = f.cursor.save(f.journal, f.feeds, f.most)
		}
		f.cursor.close()
	}
	return err
}

// sleep waits until woken, for PAUSE at most if it is not zero.
func sleep(ctx context.Context, woken <-chan struct{}, pause time.Duration) error {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-woken:
	case <-over:
	}
	return nil
}
