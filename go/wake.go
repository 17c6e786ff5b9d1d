// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"context"
	"sync"
	"time"

	"kinf/internal/env"
)

const (
	noBellPause  = 50 * time.Millisecond // without a doorbell the journal is examined this often
	quietPause   = time.Second           // with one: positions advance without events, too
	bellPause    = time.Second           // between two attempts to reach the reflector
	bellPauseMax = 16 * time.Second
	indexPause   = 50 * time.Millisecond // a bookmark moves only the journal
	noWordPause  = 2 * time.Millisecond  // without the taken word the index is examined this often
	indexLinger  = time.Second           // listenIndex runs on for this long
	notYetPause  = 100 * time.Millisecond
	failedPause  = time.Second // after an error that may last
)

// A broadcast wakes all that wait for it.
type broadcast struct {
	mu      sync.Mutex
	channel chan struct{}
}

// next returns the channel that the next ring closes.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.channel == nil {
		b.channel = make(chan struct{})
	}
	return b.channel
}

func (b *broadcast) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.channel != nil {
		close(b.channel)
		b.channel = nil
	}
}

// startWaking makes sure that a goroutine waits for the journal's commits: one for all followers.
func (s *Store) startWaking() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return say(ErrClosed, "the store '%s' was closed", s.path)
	}
	if s.followers++; s.followers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		s.stopListening = cancel
		go s.listen(ctx)
	}
	return nil
}

// stopWaking ends it with the last follower.
func (s *Store) stopWaking() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers--; s.followers == 0 {
		s.stopListening()
	}
}

// listen wakes the followers after each commit of the journal (FORMAT.md, Doorbell).
func (s *Store) listen(ctx context.Context) {
	pause := bellPause
	for ctx.Err() == nil {
		if bell, err := env.DialDoorbell(s.runtime()); err == nil {
			stop := context.AfterFunc(ctx, bell.Close)
			for bell.Arm() == nil && ctx.Err() == nil {
				s.commits.ring() // what was committed before is found without a byte
				rung, err := bell.Wait(quietPause)
				for ; !rung && err == nil; rung, err = bell.Wait(quietPause) {
					s.commits.ring()
				}
				if err != nil {
					break
				}
				pause = bellPause
			}
			if stop() {
				bell.Close()
			}
		}
		s.poll(ctx, pause)
		pause = min(2*pause, bellPauseMax)
	}
}

// poll wakes the followers again and again for a while.
func (s *Store) poll(ctx context.Context, while time.Duration) {
	ticks := time.NewTicker(noBellPause)
	defer ticks.Stop()
	for end := time.Now().Add(while); time.Now().Before(end); {
		s.commits.ring()
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// runtime returns the runtime directory that there is now; "": none.
func (s *Store) runtime() string {
	h, err := openHome(s.path)
	if err != nil {
		return ""
	}
	return h.runtime
}

// ---- the index --------------------------------------------------------------------

const (
	takenBytes = 4096
	takenWake  = 8
)

// awaitIndex makes sure that a goroutine waits for the index's commits, until done is called: one for
// all that wait.
func (s *Store) awaitIndex() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexWaiters++
	if !s.indexListened {
		s.indexListened = true
		go s.listenIndex()
	}
	return func() {
		s.mu.Lock()
		s.indexWaiters--
		s.mu.Unlock()
	}
}

// isIndexAwaited tells whether listenIndex goes on, and notes its end. SINCE: the last waiter's.
func (s *Store) isIndexAwaited(since *time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indexWaiters > 0 {
		*since = time.Now()
	}
	s.indexListened = time.Since(*since) < indexLinger && !s.closed
	return s.indexListened
}

// listenIndex wakes those that wait for the index after each of its commits (FORMAT.md, Taken word).
func (s *Store) listenIndex() {
	since := time.Now()
	path := s.runtime() + "/index.taken"
	for s.isIndexAwaited(&since) {
		word, err := env.MapFile(path, takenBytes)
		if err != nil {
			s.indexed.ring()
			time.Sleep(noWordPause)
			path = s.runtime() + "/index.taken"
			continue
		}
		for word.Is(path) && s.isIndexAwaited(&since) {
			seen := word.Word32(takenWake)
			s.indexed.ring() // after the load: a later commit ends the wait
			word.Wait(takenWake, seen, indexPause)
		}
		word.Close()
	}
}
