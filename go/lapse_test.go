// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

// lapsed reads a follower's events until it lapses, then the objects that follow.
func lapsed(t testing.TB, f *kinf.Follower) state {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	for {
		e, err := f.Next(ctx)
		if errors.Is(err, kinf.ErrLapsed) {
			objects, _ := initial(t, f)
			return objects
		}
		if errors.Is(err, kinf.ErrNoFeed) {
			continue // the new store has none yet
		}
		if err != nil || e.Type != kinf.Modified {
			t.Fatalf("%+v %v", e, err)
		}
	}
}

func TestAFollowerLapsesOnceWhenTheStoreIsReplaced(t *testing.T) {
	w := synced(t, 40)
	store := openStore(t, w.Store)
	f := follow(t, store, kinf.FollowOptions{Feed: "pods"})
	initial(t, f)
	before := snapshot(t, store).Journal()
	w.Stop(syscall.SIGTERM)
	if err := os.RemoveAll(w.Store); err != nil {
		t.Fatal(err)
	}
	w.Put("pods", pod("since", "a"))
	w.Run()
	objects := lapsed(t, f)
	if want := listed(t, snapshot(t, store), kinf.Query{}); !reflect.DeepEqual(objects, want) || len(objects) != 41 {
		t.Errorf("%d objects, not %d", len(objects), len(want))
	}
	w.Put("pods", pod("since", "b"))
	if e := next(t, f); e.Type != kinf.Modified || e.Journal == before || e.Journal != snapshot(t, store).Journal() {
		t.Errorf("%+v", e)
	}
}

func TestAFollowerLapsesOnceWhenTheClusterIsAnotherOne(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	w := synced(t, 40)
	store := openStore(t, w.Store)
	f := follow(t, store, kinf.FollowOptions{Feed: "pods"})
	initial(t, f)
	before := snapshot(t, store).Journal()
	w.Control("POST", "/identity", nil, nil)
	w.Control("POST", "/drop", nil, nil)
	objects := lapsed(t, f)
	if len(objects) != 40 || snapshot(t, store).Journal() == before {
		t.Errorf("%d objects", len(objects))
	}
	settles(t, w, store, f, objects)
}

func TestASlowFollowerLapsesWhenItsHistoryIsDropped(t *testing.T) {
	w := lab.New(t, 30, "- resource: pods\nretention: {time: 1s, size: 1MiB}\n")
	w.WaitFor("pods", "live")
	store := openStore(t, w.Store)
	slow := follow(t, store, kinf.FollowOptions{Feed: "pods"})
	first, end := initial(t, slow)
	w.Eventually("a lapse", func() bool {
		touchPods(t, w, 20)
		f := follow(t, store, kinf.FollowOptions{Feed: "pods", After: end.Number})
		defer f.Close()
		_, err := f.Next(t.Context())
		return errors.Is(err, kinf.ErrLapsed)
	})
	objects := lapsed(t, slow)
	if reflect.DeepEqual(objects, first) {
		t.Error("nothing has changed")
	}
	settles(t, w, store, slow, objects)
}

func TestAFollowerSaysThatItsFeedWasRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	w := synced(t, 10)
	store := openStore(t, w.Store)
	f := follow(t, store, kinf.FollowOptions{Feed: "configmaps"})
	if objects, _ := initial(t, f); len(objects) != 20 {
		t.Errorf("%d objects", len(objects))
	}
	w.Configure("- resource: pods\n")
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	if e, err := f.Next(ctx); !errors.Is(err, kinf.ErrLapsed) {
		t.Fatalf("%+v %v", e, err)
	}
	for range 2 {
		if e, err := f.Next(ctx); !errors.Is(err, kinf.ErrNoFeed) {
			t.Fatalf("%+v %v", e, err)
		}
	}
	w.Configure(feeds)
	for {
		e, err := f.Next(ctx)
		if err == nil && e.Initial && e.Object.Key != "" {
			break
		}
		if !errors.Is(err, kinf.ErrNoFeed) {
			t.Fatalf("%+v %v", e, err)
		}
	}
}

func TestFollowersShareOneGoroutineAndWaitWithoutOne(t *testing.T) {
	w := synced(t, 20)
	store := openStore(t, w.Store)
	before := runtime.NumGoroutine()
	var followers []*kinf.Follower
	for range 50 {
		f := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
		if e := next(t, f); e.Type != kinf.Synced {
			t.Fatalf("%+v", e)
		}
		followers = append(followers, f)
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		t.Errorf("%d goroutines, not %d", n, before+1)
	}
	// All get the same events at the same time, each once.
	touchPods(t, w, 10)
	var first []uint64
	for i, f := range followers {
		for k := range 10 {
			e := next(t, f)
			if i == 0 {
				first = append(first, e.Number)
			} else if e.Number != first[k] {
				t.Fatalf("%d: %+v", i, e)
			}
		}
		f.Close()
	}
	w.Eventually("the goroutine's end", func() bool { return runtime.NumGoroutine() <= before })

	waiting := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
	next(t, waiting)
	ended := make(chan error)
	go func() {
		_, err := waiting.Next(t.Context())
		ended <- err
	}()
	store.Close()
	if err := <-ended; !errors.Is(err, kinf.ErrClosed) {
		t.Error(err)
	}
}

func TestAFollowerWithoutADoorbellFindsChangesItself(t *testing.T) {
	w := synced(t, 20)
	sockets, err := filepath.Glob(w.Directory + "/run/kinf-*/doorbell.sock")
	if err != nil || len(sockets) != 1 {
		t.Fatal(sockets, err)
	}
	if err := os.Remove(sockets[0]); err != nil {
		t.Fatal(err)
	}
	f := follow(t, openStore(t, w.Store), kinf.FollowOptions{Feed: "pods", Changes: true})
	if e := next(t, f); e.Type != kinf.Synced {
		t.Fatalf("%+v", e)
	}
	touchPods(t, w, 1)
	if e := next(t, f); e.Type != kinf.Modified {
		t.Errorf("%+v", e)
	}
}
