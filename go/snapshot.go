// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bytes"
	"errors"
	"runtime/debug"
	"time"

	"kinf/internal/env"
)

const (
	snapshotTries = 32 // to get a journal and an index of one pair
	supersededMax = 3  // pairs replaced before they are read
)

// A Snapshot shows one instant: whatever is read from it is of that instant, however long that takes.
// One goroutine uses it at a time. While it is held its pages can't be reused, and the daemons report
// one that is held for over a minute: hold it briefly, and Close it.
type Snapshot struct {
	store          *Store
	pair           *pair
	index, journal env.Txn
	indexMeta      indexMeta
	journalMeta    journalMeta
	feeds          indexFeeds
	feedsID        uint64 // the index's state that feeds are of; 0: none
	feedsTaken     uint64
	oldest         uint64      // the smallest visible(feed)
	known          []knownFeed // as they were read last
	order          []string    // the API server's, of discovery
	orderCRC       uint32
	sets           map[string][]*Feed
	setsID         [2]uint64 // the states that known and sets are of
	held           bool
	closed         bool
	definitions    []indexDefinition
	definitionsID  uint64                     // the index's state that definitions are of; 0: none
	kept           func(event uint64) *Object // nil: nothing is
	cursor         env.Cursor
	key            []byte
	scratch        []byte
}

// Snapshot takes a snapshot of the newest state. ErrNotYet: no processor has made an index yet.
func (s *Store) Snapshot() (*Snapshot, error) {
	snapshot := &Snapshot{store: s}
	if err := snapshot.Renew(); err != nil {
		snapshot.Close()
		return nil, err
	}
	return snapshot, nil
}

// View calls fn with a snapshot of the newest state, which ends with the call. It takes about a
// microsecond: the store keeps snapshots for it.
func (s *Store) View(fn func(*Snapshot) error) error {
	var snapshot *Snapshot
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		snapshot, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	s.mu.Unlock()
	if snapshot == nil {
		snapshot = &Snapshot{store: s}
	}
	defer func() {
		snapshot.Reset()
		s.mu.Lock()
		keep := !s.closed && !snapshot.closed && len(s.idle) < snapshotIdle
		if keep {
			s.idle = append(s.idle, snapshot)
		}
		s.mu.Unlock()
		if !keep {
			snapshot.Close()
		}
	}()
	if err := snapshot.Renew(); err != nil {
		return err
	}
	return fn(snapshot)
}

// Renew takes the newest state instead. After an error there is nothing to read until it is renewed.
func (s *Snapshot) Renew() (err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if s.closed {
		return say(ErrClosed, "the snapshot was closed")
	}
	s.Reset()
	superseded := 0
	for try := range snapshotTries {
		p, err := s.store.join(superseded > 0 || try > snapshotTries/2, s.pair)
		if err != nil {
			return err
		}
		if p != s.pair {
			s.leave()
			s.pair = p
		}
		matches, err := s.begin()
		if err == nil && matches {
			s.held = true
			return nil
		}
		s.index.Reset()
		s.journal.Reset()
		if err != nil {
			superseded++
			if superseded > supersededMax || !errors.Is(err, env.ErrReplaced) && !s.isSuperseded() {
				return err
			}
			continue
		}
		if try > snapshotTries/4 {
			time.Sleep(time.Millisecond)
		}
	}
	return say(ErrNotYet, "the index of '%s' is of another moment than its journal", s.store.path)
}

// renewLog takes the newest state of the journal alone. Nothing of the index can be read.
func (s *Snapshot) renewLog() error {
	s.Reset()
	for superseded := 0; ; superseded++ {
		var p *pair
		var err error
		if superseded == 0 {
			p, err = s.store.joinLog(s.pair)
		} else {
			p, err = s.store.join(true, s.pair)
		}
		if err != nil {
			return err
		}
		if p != s.pair {
			s.leave()
			s.pair = p
		}
		if err = s.journal.Begin(s.pair.journal); err == nil {
			s.journalMeta, err = readJournalMeta(&s.journal, &s.cursor)
		}
		if err == nil {
			return nil
		}
		s.journal.Reset()
		if superseded > supersededMax || !errors.Is(err, env.ErrReplaced) && !s.isSuperseded() {
			return err
		}
	}
}

// isSuperseded tells whether CURRENT names another pair than the one that can't be read.
func (s *Snapshot) isSuperseded() bool {
	index, err := s.pair.home.current("index")
	if err != nil || s.pair.home.generation("index", index) != s.pair.index.Path() {
		return true
	}
	journal, err := s.pair.home.current("journal")
	return err != nil || journal != s.pair.journalGeneration
}

// begin begins both transactions, the index first. False: the journal does not belong to this index any
// more, or not yet.
func (s *Snapshot) begin() (bool, error) {
	if err := s.index.Begin(s.pair.index); err != nil {
		return false, err
	}
	var err error
	if s.indexMeta, err = readIndexMeta(&s.index, &s.cursor); err != nil {
		return false, err
	}
	if s.feedsID != s.index.ID() || s.feedsTaken != s.indexMeta.taken {
		if err := s.readFeeds(); err != nil {
			return false, err
		}
	}
	if err := s.journal.Begin(s.pair.journal); err != nil {
		return false, err
	}
	if s.journalMeta, err = readJournalMeta(&s.journal, &s.cursor); err != nil {
		return false, err
	}
	return s.journalMeta.uuid == s.indexMeta.journal && s.journalMeta.horizon <= s.oldest &&
		s.journalMeta.nextSeq > s.indexMeta.taken, nil
}

// readFeeds reads the index's rows of feeds.
func (s *Snapshot) readFeeds() error {
	s.feedsID = 0
	s.oldest = s.indexMeta.taken
	n := 0
	err := eachMeta(&s.index, &s.cursor, 'f', func(number uint32, row []byte) error {
		if n == len(s.feeds) {
			s.feeds = append(s.feeds, indexFeed{})
		}
		feed := &s.feeds[n]
		n++
		feed.number = number
		if err := feed.read(row); err != nil {
			return err
		}
		if feed.listed != 0 && !feed.removed {
			s.oldest = min(s.oldest, feed.visible(s.indexMeta.taken))
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.feeds = s.feeds[:n]
	s.feedsID, s.feedsTaken = s.index.ID(), s.indexMeta.taken
	return nil
}

// leave ends the transactions and gives the pair back.
func (s *Snapshot) leave() {
	s.held = false
	s.index.End()
	s.journal.End()
	s.feedsID, s.known, s.sets, s.definitions, s.definitionsID = 0, nil, nil, nil, 0
	if s.pair == nil {
		return
	}
	s.store.mu.Lock()
	s.store.leave(s.pair)
	s.store.mu.Unlock()
	s.pair = nil
}

// Reset gives the pages back until the snapshot is renewed.
func (s *Snapshot) Reset() {
	if s.pair == nil {
		return
	}
	s.held, s.kept = false, nil
	s.index.Reset()
	s.journal.Reset()
}

// Close ends the snapshot. Objects that it gave stay valid.
func (s *Snapshot) Close() {
	s.leave()
	s.closed = true
}

// Event returns the event number up to which the snapshot is complete. Numbers are of one Journal.
func (s *Snapshot) Event() uint64 { return s.indexMeta.taken }

// Journal returns the identity of the journal that event numbers are of. A cluster in another past, or
// a damaged journal, gets another one, with small numbers.
func (s *Snapshot) Journal() [16]byte { return s.journalMeta.uuid }

// ClusterUID returns the uid of the namespace kube-system in the cluster that the store is of; "": it is
// not known, since the daemons may not read that namespace.
func (s *Snapshot) ClusterUID() (uid string, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return "", err
	}
	_, cluster, err := journalRowOf(&s.journal, &s.cursor)
	if after, found := bytes.CutPrefix(cluster, []byte("uid:")); found {
		uid = string(after)
	}
	return uid, s.result(err)
}

// check tells whether what was read so far is right.
func (s *Snapshot) check() error {
	if err := s.index.Check(); err != nil {
		return err
	}
	return s.journal.Check()
}

// result returns err; ErrExpired if that explains it, or makes a result without an error doubtful.
func (s *Snapshot) result(err error) error {
	if err == nil || errors.Is(err, ErrCorrupt) {
		if expired := s.check(); expired != nil {
			return expired
		}
	}
	return err
}

func (s *Snapshot) mustHold() error {
	if s.held {
		return nil
	}
	return say(ErrClosed, "the snapshot was reset or closed, or could not be renewed")
}

// ---- objects ------------------------------------------------------------------

// Get gets an object of a feed by its key, "namespace/name", or "name" for kinds without namespaces.
// A feed is named as for `kinf get`. ErrNotFound; ErrNotYet: a feed that may hold it was never listed.
func (s *Snapshot) Get(feed, key string) (object *Object, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return nil, err
	}
	set, err := s.feedSet(feed)
	if err != nil {
		return nil, s.result(err)
	}
	var unlisted *Feed
	for _, f := range set {
		if !f.mayHold(key) {
			continue
		}
		if f.Event == 0 {
			unlisted = f
			continue
		}
		object, err = s.get(f.ID, key)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return object, s.result(err)
		}
	}
	if unlisted != nil {
		return nil, s.result(say(ErrNotYet, "feed '%s' was never listed so far", unlisted.Name))
	}
	if err := s.result(nil); err != nil {
		return nil, err
	}
	return nil, ErrNotFound
}

func (s *Snapshot) get(feed uint32, key string) (*Object, error) {
	if len(key) > keyMost || len(key) == 0 {
		return nil, ErrNotFound
	}
	s.key = nameKey(s.key, feed, key)
	row, found, err := getRow(&s.cursor, &s.index, dbName, s.key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, ErrNotFound
	}
	e, err := readNameRow(row)
	if err != nil {
		return nil, err
	}
	return s.version(feed, key, e)
}

// stored returns the bytes of a record in the mapping: by its place, else by its seq.
func (s *Snapshot) stored(e entry) ([]byte, error) {
	if e.place != 0 && e.generation == s.pair.journalGeneration && e.placeSize >= recordHeader {
		if at := s.journal.At(e.place, int(e.placeSize)); at != nil && le.Uint64(at) == e.seq && recordSize(at) == len(at) {
			return at, nil
		}
	}
	key := seqKey(e.seq)
	value, _, err := get(&s.cursor, &s.journal, dbLog, key[:])
	return value, err
}

// copyRecord reads a record into memory of this process, and checks it there; false: it is none.
func copyRecord(stored []byte) (record, bool) { return readCopy(append([]byte(nil), stored...)) }

func readCopy(own []byte) (r record, ok bool) {
	ok = r.parse(own) && r.isSound()
	return r, ok
}

// version gives the version of an object that an entry names.
func (s *Snapshot) version(feed uint32, key string, e entry) (*Object, error) {
	return s.accepted(feed, key, e, nil)
}

// accepted gives the version if a plan accepts it; else nil.
func (s *Snapshot) accepted(feed uint32, key string, e entry, p *plan) (*Object, error) {
	if o, kept, err := s.fromKept(feed, key, e, p); kept {
		return o, err
	}
	stored, err := s.stored(e)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, s.missing(feed, key, e)
	}
	var r record
	var ok bool
	checks := p != nil && p.needsBody()
	if checks { // nothing of an object that is not given stays on the heap
		s.scratch = append(s.scratch[:0], stored...)
		r, ok = readCopy(s.scratch)
	} else {
		r, ok = copyRecord(stored)
	}
	if !ok {
		return nil, say(ErrCorrupt, "record %d, a version of '%s', is damaged: %s", e.seq, key, remedy)
	}
	if r.seq != e.seq || r.feed != feed || string(r.key) != key || !r.isVersion() || len(r.body) == 0 {
		return nil, s.missing(feed, key, e)
	}
	if !checks {
		return r.object(), nil
	}
	accepted, err := p.accepts(r.body)
	if err != nil {
		return nil, say(ErrCorrupt, "the body of '%s' (record %d): %v", key, e.seq, err)
	}
	if !accepted {
		return nil, nil
	}
	r.parse(append([]byte(nil), r.stored...))
	return r.object(), nil
}

// Keep lets the snapshot ask for an object that the program has kept, before it reads one, until it is
// renewed or reset. A version never changes: kept gets the number of its event in the snapshot's
// journal, and returns what a snapshot gave of it, else nil.
func (s *Snapshot) Keep(kept func(event uint64) *Object) { s.kept = kept }

// fromKept gives a version that the program has kept, if a plan accepts it; false: it has not.
func (s *Snapshot) fromKept(feed uint32, key string, e entry, p *plan) (o *Object, kept bool, err error) {
	if s.kept == nil {
		return nil, false, nil
	}
	if o = s.kept(e.seq); o == nil || o.Feed != feed || o.Key != key || o.Event != e.seq {
		return nil, false, nil
	}
	if p == nil || !p.needsBody() {
		return o, true, nil
	}
	accepted, err := p.accepts(o.body)
	if err != nil || !accepted {
		o = nil
	}
	return o, true, err
}

// missing explains a version that is not there. The journal deletes those of a removed feed before the
// index forgets it.
func (s *Snapshot) missing(feed uint32, key string, e entry) error {
	at := feedKey(feed, 1)
	row, found, err := get(&s.cursor, &s.journal, dbFeed, at[:])
	if err != nil {
		return err
	}
	if found {
		c, err := readCheckpoint(at[:], row)
		if err != nil {
			return err
		}
		found = c.phase != phaseRemoved
	}
	if !found {
		return say(ErrNoFeed, "the feed of '%s' was removed", key)
	}
	return say(ErrCorrupt, "the index names version %d of '%s', missing in the journal: %s", e.seq, key, remedy)
}
