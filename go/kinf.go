// SPDX-License-Identifier: Apache-2.0

// Package kinf reads the machine's Kubernetes cache, which kinformer's daemons keep in mapped files.
//
//	store, err := kinf.Open("", nil)
//	err = store.View(func(s *kinf.Snapshot) error {
//		object, err := s.Get("pods", "web/front-0")
//		if err != nil {
//			return err
//		}
//		var pod corev1.Pod
//		return object.Into(&pod)
//	})
//
// It is a second implementation of store/FORMAT.md, in pure Go, for Linux. Whatever it gives is a copy
// on Go's heap: nothing points into a mapped file. A damaged or cut file is an error, never a crash.
package kinf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kinf/internal/env"
)

// Options of a store; nil is the same as none set.
type Options struct{}

const (
	currentCheck = time.Millisecond // CURRENT is examined this often
	failingMost  = time.Second      // the open pair is read for this long if the next can't be opened
	snapshotIdle = 16               // snapshots kept for View
)

// A Store is open until Close. Any number of goroutines may use it.
type Store struct {
	path string

	mu          sync.Mutex
	pair        *pair
	currents    [2]currentID
	checked     time.Time
	failing     time.Time // since then the current pair can't be opened
	closed      bool
	idle        []*Snapshot
	definitions map[uint32]*definition
	journal     [16]byte // of the definitions

	followers     int // while there are any, listen runs
	stopListening context.CancelFunc
	commits       broadcast // after each commit of the journal
	indexWaiters  int       // while there are any, and a moment longer, listenIndex runs
	indexListened bool
	indexed       broadcast // after each commit of the index
}

// pair is an index and its journal. They stay open while a snapshot uses them.
type pair struct {
	refs              int // under Store.mu
	home              *home
	index, journal    *env.Env
	journalGeneration uint32
}

func (p *pair) isCopy() bool { return !p.index.IsPinned() || !p.journal.IsPinned() }

// currentID distinguishes one CURRENT from the next: it is replaced by rename.
type currentID struct {
	id       env.FileID
	modified time.Time
}

func currentOf(path string) currentID {
	info, err := os.Stat(path)
	if err != nil {
		return currentID{}
	}
	id, _ := env.Identify(path)
	return currentID{id, info.ModTime()}
}

// Open opens the store in a directory; "" is DefaultStore.
func Open(directory string, options *Options) (*Store, error) {
	_ = options // none so far
	if directory == "" {
		directory = DefaultStore()
	}
	path, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, definitions: map[uint32]*definition{}}
	s.mu.Lock()
	err = s.checkCurrent(false)
	s.mu.Unlock()
	if err != nil && !errors.Is(err, ErrNotYet) {
		return nil, err
	}
	return s, nil
}

// Close closes the store. Open snapshots of it stay readable until they are closed.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.commits.ring() // followers end
	s.Release()
	return nil
}

// Release closes the store's files, but for those of open snapshots, until the store is read again.
func (s *Store) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropIdle()
	s.leave(s.pair)
	s.pair = nil
}

// dropIdle ends the snapshots that are kept for View: they keep files open. The caller holds s.mu.
func (s *Store) dropIdle() {
	for _, snapshot := range s.idle {
		snapshot.index.End()
		snapshot.journal.End()
		s.leave(snapshot.pair)
		snapshot.pair = nil
	}
	s.idle = nil
}

// Path returns the store's directory.
func (s *Store) Path() string { return s.path }

// leave gives a pair back. The caller holds s.mu.
func (s *Store) leave(p *pair) {
	if p == nil {
		return
	}
	if p.refs--; p.refs == 0 {
		p.index.Release()
		p.journal.Release()
	}
}

// openPair opens the index that CURRENT names, and the journal it is of.
func (s *Store) openPair() (*pair, error) {
	h, err := openHome(s.path)
	if err != nil {
		return nil, err
	}
	number, err := h.current("index")
	if isMissing(err) {
		return nil, say(ErrNotYet, "the store '%s' has no index yet", s.path)
	}
	if err != nil {
		return nil, err
	}
	index, err := h.openGeneration("index", "processor", number, indexDatabases)
	if err != nil {
		return nil, wrap(err, "store '%s': index generation %d", s.path, number)
	}
	p := &pair{refs: 1, home: h, index: index}
	if err := p.openJournal(s.path); err != nil {
		index.Release()
		return nil, err
	}
	return p, nil
}

func (p *pair) openJournal(path string) error {
	s, err := readState(p.index.Path())
	if err != nil {
		return err
	}
	number, err := p.home.findJournal(s.uuid)
	if isMissing(err) {
		return say(ErrNotYet, "store '%s': the index was made of another journal", path)
	}
	if err != nil {
		return err
	}
	p.journal, err = p.home.openGeneration("journal", "reflector", number, journalDatabases)
	p.journalGeneration = number
	if err != nil {
		return wrap(err, "store '%s': journal generation %d", path, number)
	}
	return nil
}

// checkCurrent opens the pair that CURRENT names, unless it is open. The caller holds s.mu.
func (s *Store) checkCurrent(force bool) error {
	now := time.Now()
	if s.closed {
		return say(ErrClosed, "the store '%s' was closed", s.path)
	}
	if !force && s.pair != nil && s.failing.IsZero() && now.Sub(s.checked) < currentCheck {
		return nil
	}
	if s.pair != nil && s.pair.isCopy() && s.pair.home.isWritten() {
		s.leave(s.pair) // it must not be read any more
		s.pair, force = nil, true
	}
	// The identities first: a later change of CURRENT is seen the next time.
	currents := [2]currentID{currentOf(s.path + "/index/CURRENT"), currentOf(s.path + "/journal/CURRENT")}
	s.checked = now
	if s.pair != nil && !force && currents == s.currents && currents[0] != (currentID{}) && currents[1] != (currentID{}) {
		s.failing = time.Time{}
		return nil
	}
	var p *pair
	var err error
	for range 8 { // a generation may be replaced and removed meanwhile
		p, err = s.openPair()
		if err == nil || !isMissing(err) && !errors.Is(err, env.ErrReplaced) {
			break
		}
	}
	if err != nil {
		if s.failing.IsZero() {
			s.failing = now
		}
		return err
	}
	s.failing = time.Time{}
	s.leave(s.pair)
	s.pair, s.currents = p, currents
	s.dropIdle()
	return nil
}

// join returns the current pair: held, or another one with a reference for the caller.
func (s *Store) join(force bool, held *pair) (*pair, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.checkCurrent(force)
	// The open pair is read on for a moment while the current one can't be opened.
	if err != nil && (s.pair == nil || s.closed || time.Since(s.failing) >= failingMost) {
		return nil, err
	}
	if s.pair != held {
		s.pair.refs++
	}
	return s.pair, nil
}

// joinLog is join for readers of the journal alone: an open pair serves as long as its journal is the
// current one, also while its index is made again.
func (s *Store) joinLog(held *pair) (*pair, error) {
	p, err := s.join(false, held)
	if err == nil {
		return p, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := currentOf(s.path + "/journal/CURRENT")
	if s.pair == nil || s.closed || current == (currentID{}) || current != s.currents[1] {
		return nil, err
	}
	if s.pair != held {
		s.pair.refs++
	}
	return s.pair, nil
}
