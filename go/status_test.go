// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"kinf"
	"kinf/internal/lab"
)

// sameStatus compares all feeds' states with those of `kinf status`.
func sameStatus(t testing.TB, w *lab.World, store *kinf.Store) []kinf.FeedStatus {
	t.Helper()
	var want struct {
		Feeds []struct {
			Name, State, LastError                        string
			Objects, Lag, Lists, Watches, Events, Retries uint64
			LastContactSeconds                            float64
		}
	}
	different := ""
	defer func() {
		if t.Failed() {
			t.Log(different)
		}
	}()
	w.Eventually("equal states", func() bool { // both look at another moment
		if err := json.Unmarshal(w.Status(), &want); err != nil {
			t.Fatal(err)
		}
		got, err := store.Status("")
		if err != nil || len(got) != len(want.Feeds) || len(got) == 0 {
			t.Fatalf("%v: %d feeds, not %d", err, len(got), len(want.Feeds))
		}
		for i, f := range want.Feeds {
			g := got[i]
			if g.Name != f.Name || string(g.State) != f.State || g.Reason != f.LastError || g.Objects != f.Objects ||
				g.Lag != f.Lag || g.Lists != f.Lists || g.Watches != f.Watches || g.Events != f.Events || g.Retries != f.Retries ||
				math.Abs(g.Age.Seconds()-f.LastContactSeconds) > 1 {
				different = fmt.Sprintf("%+v is not %+v", g, f)
				return false
			}
		}
		return true
	})
	got, err := store.Status("")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestStatesAreThoseOfKinfStatus(t *testing.T) {
	w := synced(t, 20)
	store := openStore(t, w.Store)
	w.WaitFor("pods", "live")
	for _, f := range sameStatus(t, w, store) {
		if f.State != kinf.StateLive || f.Reason != "" || f.Age < 0 || f.Lists != 1 {
			t.Errorf("%+v", f)
		}
	}
	pids := w.Processes()
	for role, want := range map[string]string{"reflector": "kinf-reflector (process", "processor": "kinf-processor (process"} {
		if testing.Short() { // each takes 5 s without a heartbeat
			break
		}
		_ = syscall.Kill(pids[role], syscall.SIGSTOP)
		w.Eventually("a stopped "+role, func() bool {
			f, err := store.Status("pods")
			return err == nil && f[0].State == kinf.StateStale && strings.HasPrefix(f[0].Reason, want)
		})
		sameStatus(t, w, store)
		_ = syscall.Kill(pids[role], syscall.SIGCONT)
	}
	w.Stop(syscall.SIGKILL)
	for _, f := range sameStatus(t, w, store) {
		if f.State != kinf.StateOffline || f.Reason != "kinf-reflector does not run" {
			t.Errorf("%+v", f)
		}
	}
	if _, err := store.Status("gadgets"); !errors.Is(err, kinf.ErrNoFeed) {
		t.Error(err)
	}
}

func TestWaitSyncedWaitsForTheFirstList(t *testing.T) {
	w := lab.New(t, 30, feeds)
	var store *kinf.Store
	w.Eventually("a store", func() (ok bool) {
		var err error
		store, err = kinf.Open(w.Store, nil)
		return err == nil
	})
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	if err := store.WaitSynced(ctx, "pods", "nodes"); err != nil {
		t.Fatal(err)
	}
	if n := len(listed(t, snapshot(t, store), kinf.Query{})); n != 30 {
		t.Errorf("%d pods", n)
	}
	short, end := context.WithTimeout(ctx, 20*time.Millisecond)
	defer end()
	if err := store.WaitSynced(short, "pods", "gadgets"); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "no feed 'gadgets'") {
		t.Error(err)
	}
}
