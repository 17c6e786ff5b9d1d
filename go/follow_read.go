// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"kinf/internal/env"
)

// How far a follower is with a feed.
type followStage int

const (
	followNew     followStage = iota // no object was read
	followInitial                    // the objects up to last were
	followChanges                    // all were, or are not wanted
)

// followed is a feed that a follower follows.
type followed struct {
	id       uint32
	prefix   string // of the keys that are wanted
	stage    followStage
	position uint64 // examined up to here
	handled  uint64 // handled by the caller up to here
	last     string // key of the last initial object
	skip     bool   // its first objects are not wanted
	// In the snapshot in use:
	until  uint64 // changes are read up to here
	ranged bool   // objects can be read by name: the index has all that was read before
}

// wants tells whether a change of an object is to be given, now or as an initial object.
func (w *followed) wants(r *record) bool {
	return r.isChange() && r.seq > w.position && r.seq <= w.until && strings.HasPrefix(string(r.key), w.prefix) &&
		(w.stage == followChanges || w.stage == followInitial && string(r.key) <= w.last)
}

func (w *followed) owesObjects() bool { return w.stage != followChanges }

// locate finds the feeds in a snapshot, and where to begin in each.
func (f *Follower) locate(s *Snapshot) error {
	set, err := s.feedSet(f.options.Feed)
	if err = s.result(err); err != nil {
		return err
	}
	f.feeds, f.ids = nil, map[uint32]*followed{}
	for _, feed := range set {
		if !f.covers(feed) {
			continue
		}
		w := &followed{id: feed.ID, skip: f.options.Changes && !f.informed}
		if f.options.Namespace != "" && feed.Namespaced {
			w.prefix = f.options.Namespace + "/"
		}
		f.feeds = append(f.feeds, w)
		f.ids[w.id] = w
	}
	before := f.journal
	f.journal = s.journalMeta.uuid
	f.checked = time.Now()
	f.owesSynced, f.located = true, true
	if f.informed { // begun again after a lapse
		if before != f.journal {
			f.notBefore = 0
		}
		return nil
	}
	return f.position(s)
}

// position sets where a new follower begins.
func (f *Follower) position(s *Snapshot) error {
	o := &f.options
	var at func(*followed) uint64
	switch {
	case f.cursor != nil && f.cursor.found:
		f.foreign = !f.cursor.isOf(f.feeds)
		f.journal = f.cursor.journal
		at = func(w *followed) uint64 { return f.cursor.positions[uint64(w.id)] }
	case f.cursor != nil:
		return nil
	case o.Snapshot != nil:
		at = func(w *followed) uint64 {
			row := s.feeds.of(w.id)
			return row.visible(s.indexMeta.taken)
		}
	case o.After != 0:
		if o.Journal != ([16]byte{}) {
			f.journal = o.Journal
		}
		at = func(*followed) uint64 { return o.After }
	default:
		return nil
	}
	f.informed = true
	for _, w := range f.feeds {
		w.position = at(w)
		w.handled = w.position
		if w.position != 0 {
			w.stage = followChanges
		}
	}
	return nil
}

func (f *Follower) covers(feed *Feed) bool {
	return feed.Namespace == "" || f.options.Namespace == "" || feed.Namespace == f.options.Namespace
}

// lapse makes the follower begin again.
func (f *Follower) lapse(why string, args ...any) error {
	for _, w := range f.feeds {
		f.notBefore = max(f.notBefore, w.position)
	}
	f.located, f.synced, f.foreign = false, false, false
	f.clear()
	if !f.informed {
		return nil
	}
	return say(ErrLapsed, "following '"+f.options.Feed+"': "+why+": all objects follow again", args...)
}

// clear empties the queue.
func (f *Follower) clear() { f.queue, f.given, f.queueBytes = f.queue[:0], 0, 0 }

// read reads what comes next into the queue, from one snapshot. Nothing in it: nothing is new.
func (f *Follower) read() (err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	s := f.snapshot
	defer s.Reset()
	f.clear()
	whole, err := f.take()
	if err != nil || !f.located {
		return err
	}
	if s.journalMeta.uuid != f.journal {
		return f.lapse("the store has another journal")
	}
	if f.foreign {
		return f.lapse("the cursor is of other feeds")
	}
	from, err := f.aim(whole)
	if err == nil && f.located {
		err = f.readFrom(from)
	}
	if err = s.result(err); errors.Is(err, ErrExpired) {
		return f.lapse("%v", err)
	}
	return err
}

// readFrom reads the log, then the objects that are owed.
func (f *Follower) readFrom(from uint64) error {
	owes := f.owesObjects()
	if !owes {
		f.sync() // the positions are kept
	}
	done, err := f.readLog(from)
	if err == nil && done && owes {
		err = f.readObjects()
	}
	return err
}

func (f *Follower) owesObjects() bool { return slices.ContainsFunc(f.feeds, (*followed).owesObjects) }

// sync queues Synced, once.
func (f *Follower) sync() {
	if !f.owesSynced {
		return
	}
	f.owesSynced = false
	e := Event{Type: Synced}
	for _, w := range f.feeds {
		e.Number = max(e.Number, w.position)
	}
	e.Shown = e.Number
	f.push(e)
}

// take takes a snapshot of the journal, and of the index if objects are owed and there is one.
func (f *Follower) take() (whole bool, err error) {
	f.behind, f.more = false, false
	due := time.Since(f.checked) >= followCheck
	owes := f.owesObjects()
	if !f.located || due || owes {
		if err = f.snapshot.Renew(); err == nil {
			return true, f.checkFeeds()
		}
		if !f.located || owes && !errors.Is(err, ErrNotYet) {
			return false, err
		}
	}
	return false, f.snapshot.renewLog()
}

// checkFeeds finds the feeds after a lapse; and once a second it looks for a feed of the name that is
// not followed.
func (f *Follower) checkFeeds() error {
	if !f.located {
		return f.locate(f.snapshot)
	}
	if time.Since(f.checked) < followCheck || f.snapshot.journalMeta.uuid != f.journal {
		return nil
	}
	f.checked = time.Now()
	set, err := f.snapshot.feedSet(f.options.Feed)
	if err = f.snapshot.result(err); err != nil {
		return err
	}
	for _, feed := range set {
		if feed.Synced() && f.covers(feed) && f.ids[feed.ID] == nil {
			return f.lapse("the name stands for another feed")
		}
	}
	return nil
}

// aim sets what is to be read of each feed in the snapshot. It returns the event after which the log is
// to be read.
func (f *Follower) aim(whole bool) (from uint64, err error) {
	s := f.snapshot
	last := s.journalMeta.nextSeq - 1
	from = last
	for _, w := range f.feeds {
		key := feedKey(w.id, 1)
		row, found, err := get(&s.cursor, &s.journal, dbFeed, key[:])
		if err != nil {
			return 0, err
		}
		var c checkpoint
		if found {
			if c, err = readCheckpoint(key[:], row); err != nil {
				return 0, err
			}
		}
		if !found || c.phase == phaseRemoved {
			return 0, f.lapse("a feed was removed")
		}
		visible := c.visible(last)
		if w.stage == followNew && w.skip && visible != 0 {
			w.stage, w.position = followChanges, visible
		}
		if w.stage != followNew && (w.position < c.trimmed || w.position < c.firstList || w.position > last) {
			return 0, f.lapse("the history after event %d is not kept", w.position)
		}
		f.aimFeed(w, whole, visible)
		if w.stage != followNew && w.position < w.until {
			if c.last <= w.position && c.listBegin == 0 {
				w.position = w.until // none of the records is the feed's
			} else {
				from = min(from, w.position)
			}
		}
	}
	return from, nil
}

// aimFeed decides how far a feed is read. Its objects can be read by name if the index has everything
// that was given.
func (f *Follower) aimFeed(w *followed, whole bool, visible uint64) {
	s := f.snapshot
	w.ranged, w.until = false, w.position
	if !w.owesObjects() {
		w.until = max(visible, w.position)
		return
	}
	given := w.position
	if w.stage == followNew {
		given = min(f.notBefore, s.journalMeta.nextSeq-1)
	}
	if row := s.feeds.of(w.id); whole && s.indexMeta.taken >= given {
		if shown := row.visible(s.indexMeta.taken); shown != 0 {
			w.ranged, w.until = true, max(shown, w.position)
		}
	}
	f.behind = f.behind || !w.ranged && visible != 0
}

// visible is up to where the log shows whole lists.
func (c *checkpoint) visible(last uint64) uint64 {
	switch {
	case c.firstList == 0:
		return 0
	case c.listBegin != 0:
		return c.listBegin - 1
	}
	return last
}

func (f *Follower) isFull() bool { return len(f.queue) >= queueMost || f.queueBytes >= queueBytesMost }

func (f *Follower) push(e Event) {
	e.Journal = f.journal
	if e.Object != nil {
		f.queueBytes += len(e.Object.body)
	}
	if e.Old != nil {
		f.queueBytes += len(e.Old.body)
	}
	f.queue = append(f.queue, e)
}

// ---- the log ----------------------------------------------------------------------

// readLog reads the changes after an event. False: the queue is full.
func (f *Follower) readLog(from uint64) (done bool, err error) {
	s := f.snapshot
	last := s.journalMeta.nextSeq - 1
	next := max(from, s.journalMeta.horizon) + 1
	if from < last && next <= last {
		began := time.Now()
		var cursor env.Cursor
		key := seqKey(next)
		found, err := cursor.Seek(&s.journal, dbLog, key[:])
		for ; err == nil && next <= last; next++ {
			var r record
			if !found || len(cursor.Key()) != 8 || be.Uint64(cursor.Key()) != next || !r.parse(cursor.Value()) ||
				r.seq != next || !r.hasSoundHeader() {
				return false, f.damaged(next)
			}
			if next%1024 == 0 && time.Since(began) > holdMost {
				f.advance(next - 1)
				f.more = true
				return false, nil
			}
			w := f.ids[r.feed]
			if w != nil && r.kind == recordFeedRemoved {
				return false, f.lapse("a feed was removed")
			}
			if w != nil && w.wants(&r) {
				if f.isFull() {
					f.advance(next - 1)
					return false, nil
				}
				e, sound, err := f.change(&r)
				if err == nil && !sound {
					err = f.damaged(next)
				}
				if err != nil || !sound {
					return false, err
				}
				f.push(e)
				w.position = next
			}
			if next < last {
				found, err = cursor.Next()
			}
		}
		if err != nil {
			return false, err
		}
	}
	f.advance(last)
	return true, nil
}

// advance moves the positions.
func (f *Follower) advance(to uint64) {
	for _, w := range f.feeds {
		if w.stage != followNew {
			w.position = max(w.position, min(to, w.until))
		}
	}
}

// damaged makes the follower begin again after a record that can't be read; first it gives what was
// read before. A copy stays damaged.
func (f *Follower) damaged(seq uint64) error {
	if err := f.snapshot.check(); err != nil {
		return err
	}
	if len(f.queue) > 0 {
		f.advance(seq - 1)
		return nil
	}
	if f.snapshot.pair.isCopy() {
		return say(ErrCorrupt, "record %d is damaged: %s", seq, remedy)
	}
	err := f.lapse("record %d is damaged", seq)
	f.notBefore = max(f.notBefore, seq)
	return err
}

// change makes the event of a record. False: the record, or the one before it, is damaged.
func (f *Follower) change(found *record) (e Event, sound bool, err error) {
	s := f.snapshot
	r, ok := copyRecord(found.stored)
	if !ok || r.seq != found.seq || r.feed != found.feed {
		return e, false, nil
	}
	e = Event{Type: EventType(r.kind), Object: r.object(), Unknown: r.kind == recordDeleted && r.flags&1 != 0,
		Number: r.seq, Time: time.Unix(0, int64(r.time)), Feed: r.feed, Shown: s.journalMeta.nextSeq - 1}
	if r.prev == 0 {
		return e, true, nil
	}
	stored, err := s.stored(entry{seq: r.prev})
	if err != nil {
		return e, false, err
	}
	before, ok := copyRecord(stored)
	if !ok || before.seq != r.prev || before.feed != r.feed || aliasText(before.key) != e.Object.Key {
		return e, false, nil
	}
	e.Old = before.object()
	if e.Type == Deleted && len(r.body) == 0 {
		e.Object = e.Old
	}
	return e, true, nil
}

// ---- initial objects --------------------------------------------------------------

// readObjects reads the objects that are owed. The index shows them as of the position that the log was
// read to.
func (f *Follower) readObjects() error {
	for _, w := range f.feeds {
		if !w.owesObjects() {
			continue
		}
		if !w.ranged {
			return nil // the others keep Synced waiting anyway
		}
		done, err := f.readRange(w)
		if err != nil || !done {
			return err
		}
		w.stage, w.last = followChanges, ""
	}
	f.sync()
	return nil
}

// readRange reads a feed's objects after the last one. False: the queue is full.
func (f *Follower) readRange(w *followed) (done bool, err error) {
	s := f.snapshot
	if w.stage == followNew {
		w.stage, w.position = followInitial, w.until
	}
	var walk nameWalk
	if err := walk.open(s, w.id, w.prefix, w.last); err != nil {
		return false, err
	}
	for {
		key, e, found, err := walk.next()
		if err != nil || !found {
			return err == nil, err
		}
		if f.isFull() {
			return false, nil
		}
		object, err := s.version(w.id, string(key), e)
		if err != nil {
			return false, err
		}
		f.push(Event{Type: Added, Initial: true, Object: object, Number: w.until, Feed: w.id, Shown: w.until})
		w.last = object.Key
		if err := walk.step(); err != nil {
			return false, err
		}
	}
}
