// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

// line is an event as `kinf watch -o json --old` prints it.
type line struct {
	Type    string
	Event   uint64
	Initial bool
	Object  map[string]any
	Old     map[string]any
	Unknown bool `json:"finalStateUnknown"`
}

func lineOf(t testing.TB, e kinf.Event) line {
	t.Helper()
	l := line{Type: e.Type.String(), Event: e.Number, Initial: e.Initial, Unknown: e.Unknown}
	l.Object, l.Old = tree(t, e.Object), tree(t, e.Old)
	return l
}

func tree(t testing.TB, o *kinf.Object) (m map[string]any) {
	t.Helper()
	if o == nil {
		return nil
	}
	text, err := o.JSON()
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// linesOf parses what kinf watch has printed so far.
func linesOf(t testing.TB, out string) (lines []line) {
	t.Helper()
	for text := range strings.Lines(out) {
		if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}\n") {
			continue // a note, or not all of it is there yet
		}
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// collect reads a follower's events up to the object with a key.
func collect(t testing.TB, f *kinf.Follower, last string) (lines []line) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	for {
		e, err := f.Next(ctx)
		if errors.Is(err, kinf.ErrLapsed) {
			lines = append(lines, line{Type: "LAPPED"})
			continue
		}
		if err != nil {
			t.Fatalf("after %d events: %v", len(lines), err)
		}
		lines = append(lines, lineOf(t, e))
		if e.Object != nil && e.Object.Key == last {
			return lines
		}
	}
}

func sameLines(t testing.TB, got, want []line) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("event %d of %d: %s %d, not %s %d: %s", i, len(got), got[i].Type, got[i].Event, want[i].Type,
				want[i].Event, difference(got[i].Object, want[i].Object))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, not %d", len(got), len(want))
	}
}

func TestAFollowerGivesWhatKinfWatchGives(t *testing.T) {
	w := synced(t, 200)
	store := openStore(t, w.Store)
	f := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
	if e := next(t, f); e.Type != kinf.Synced {
		t.Fatalf("%+v", e)
	}
	watch := w.Start("watch", "pods", "-o", "json", "--old", "--no-initial")
	w.Eventually("kinf watch", func() bool { return strings.Contains(watch(), `"SYNC"`) })

	end := make(chan []line)
	go func() { end <- collect(t, f, "web/last") }()
	churn(t, w)
	w.Put("pods", pod("last", "x"))
	got := <-end
	var want []line
	w.Eventually("the last line", func() bool {
		want = linesOf(t, watch())
		last := want[len(want)-1].Object["metadata"]
		return last != nil && last.(map[string]any)["name"] == "last"
	})
	lost := slices.IndexFunc(want, func(l line) bool { return l.Type == "DELETED" && l.Unknown && l.Object != nil })
	if len(want) < 150 || lost < 0 {
		t.Fatalf("%d lines, line %d of a pod found missing", len(want), lost)
	}
	sameLines(t, got, want[1:]) // without SYNC
}

func pod(name, value string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name, "namespace": "web", "labels": map[string]string{"v": value}}}
}

// churn changes pods while the daemons are killed, the index is made again and the journal is compacted.
func churn(t testing.TB, w *lab.World) {
	t.Helper()
	w.Put("pods", pod("lost", "x"))
	for round, disturb := range []func(){
		func() { w.Kinf("rebuild-index") },
		func() { w.Kinf("compact") },
		func() { // what is deleted meanwhile is found missing by a list
			w.Stop(syscall.SIGKILL)
			w.Delete("pods", "web/lost")
			w.Control("POST", "/compact", nil, nil)
			w.Run()
		},
		func() { _ = syscall.Kill(w.Processes()["reflector"], syscall.SIGKILL) },
		func() { _ = syscall.Kill(w.Processes()["processor"], syscall.SIGKILL) },
	} {
		if round == 3 && testing.Short() {
			return
		}
		touchPods(t, w, 40)
		w.Put("pods", pod(fmt.Sprint("p", round), "a"))
		disturb()
		for n := range 10 {
			touchPods(t, w, 2)
			w.Put("pods", pod(fmt.Sprint("p", round), fmt.Sprint(n)))
		}
		w.Delete("pods", fmt.Sprintf("web/p%d", round))
		w.WaitFor("pods", "live")
	}
}
