// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"kinf"
	"kinf/internal/lab"
)

func TestReadsShowWhatAFollowerGave(t *testing.T) {
	w := synced(t, 30)
	store := openStore(t, w.Store)
	w.WaitFor("pods", "live")
	var readers sync.WaitGroup
	for range 4 {
		f := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
		if e := next(t, f); e.Type != kinf.Synced {
			t.Fatalf("%+v", e)
		}
		readers.Add(1)
		go func() {
			defer readers.Done()
			for range 200 {
				e, err := f.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				s, err := store.SnapshotAt(t.Context(), e)
				if err != nil {
					t.Error(err)
					return
				}
				object, err := s.Get("pods", e.Object.Key)
				if err != nil || object.Event < e.Number {
					t.Errorf("%d: %+v %v", e.Number, object, err)
				}
				s.Close()
			}
		}()
	}
	for range 50 {
		touchPods(t, w, 4)
	}
	readers.Wait()
}

func TestChangesGoOnWithoutAnIndex(t *testing.T) {
	w := synced(t, 30)
	store := openStore(t, w.Store)
	w.WaitFor("pods", "live")
	f := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
	next(t, f)
	processor := w.Processes()["processor"]
	_ = syscall.Kill(processor, syscall.SIGSTOP)
	touchPods(t, w, 1)
	e := next(t, f)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := store.WaitFor(short, e); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if !testing.Short() {
		e = followWithoutIndex(t, w, f)
	}
	_ = syscall.Kill(processor, syscall.SIGCONT)
	if err := store.WaitFor(t.Context(), e); err != nil {
		t.Error(err)
	}

	if testing.Short() {
		return
	}
	w.Stop(syscall.SIGKILL)
	e.Shown += 1000
	began := time.Now()
	if err := store.WaitFor(t.Context(), e); !errors.Is(err, kinf.ErrNotYet) || time.Since(began) > 4*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// followWithoutIndex takes the index away for longer than an open one is read. It returns the last event.
func followWithoutIndex(t testing.TB, w *lab.World, f *kinf.Follower) (e kinf.Event) {
	t.Helper()
	current, away := w.Store+"/index/CURRENT", w.Store+"/away"
	if err := os.Rename(current, away); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		touchPods(t, w, 1)
		if e = next(t, f); e.Type != kinf.Modified {
			t.Fatalf("%+v", e)
		}
	}
	if err := os.Rename(away, current); err != nil {
		t.Fatal(err)
	}
	return e
}
