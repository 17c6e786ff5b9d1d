// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"testing"
	"time"

	"kinf"
	"kinf/internal/lab"
)

func follow(t testing.TB, store *kinf.Store, options kinf.FollowOptions) *kinf.Follower {
	t.Helper()
	f, err := store.Follow(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func next(t testing.TB, f *kinf.Follower) kinf.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	event, err := f.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func hexOf(uuid [16]byte) string { return hex.EncodeToString(uuid[:]) }

func touchPods(t testing.TB, w *lab.World, n int) {
	t.Helper()
	w.Control("POST", "/touch", url.Values{"resource": {"pods"}, "count": {strconv.Itoa(n)}}, nil)
}

func pod(name, value string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name, "namespace": "web", "labels": map[string]string{"v": value}}}
}

// state is what a follower's events add up to.
type state map[string]string

func (s state) apply(t testing.TB, e kinf.Event) {
	t.Helper()
	before, known := s[keyOf(e)]
	switch e.Type {
	case kinf.Added:
		if known || e.Old != nil {
			t.Fatalf("%d: '%s' is added again", e.Number, e.Object.Key)
		}
		s[e.Object.Key] = e.Object.ResourceVersion
	case kinf.Modified:
		if !known || e.Old == nil || before != e.Old.ResourceVersion || e.Old.Key != e.Object.Key {
			t.Fatalf("%d: '%s' was at '%s' before, not at %v", e.Number, e.Object.Key, before, e.Old)
		}
		s[e.Object.Key] = e.Object.ResourceVersion
	case kinf.Deleted:
		if !known || e.Old == nil || len(e.Object.Raw()) == 0 {
			t.Fatalf("%d: '%s' is deleted, and was at '%s'", e.Number, e.Object.Key, before)
		}
		delete(s, e.Object.Key)
	}
}

func keyOf(e kinf.Event) string {
	if e.Object == nil {
		return ""
	}
	return e.Object.Key
}

// listed returns the versions of a snapshot's pods.
func listed(t testing.TB, s *kinf.Snapshot, query kinf.Query) state {
	t.Helper()
	objects := state{}
	for object, err := range s.List("pods", query) {
		if err != nil {
			t.Fatal(err)
		}
		objects[object.Key] = object.ResourceVersion
	}
	return objects
}

// initial reads a follower's events up to Synced.
func initial(t testing.TB, f *kinf.Follower) (state, kinf.Event) {
	t.Helper()
	s := state{}
	for {
		e := next(t, f)
		if e.Type == kinf.Synced {
			return s, e
		}
		s.apply(t, e)
	}
}

// settles reads a follower's events up to a new object, and compares what they add up to with the store.
func settles(t testing.TB, w *lab.World, store *kinf.Store, f *kinf.Follower, s state) {
	t.Helper()
	w.Put("pods", pod("settles", time.Now().String()))
	for {
		e := next(t, f)
		s.apply(t, e)
		if e.Object.Name() != "settles" {
			continue
		}
		now, err := store.SnapshotAt(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		defer now.Close()
		if want := listed(t, now, kinf.Query{}); !reflect.DeepEqual(s, want) {
			t.Fatalf("%v, not %v", s, want)
		}
		return
	}
}

func TestAFollowerGivesObjectsThenChanges(t *testing.T) {
	w := synced(t, 300)
	store := openStore(t, w.Store)
	f := follow(t, store, kinf.FollowOptions{Feed: "pods"})
	s, end := initial(t, f)
	now := snapshot(t, store)
	if want := listed(t, now, kinf.Query{}); !reflect.DeepEqual(s, want) || len(s) != 300 || end.Number == 0 {
		t.Fatalf("%d objects up to event %d, not %d", len(s), end.Number, len(want))
	}

	w.Put("pods", map[string]any{"metadata": map[string]any{"name": "new", "namespace": "web"}})
	added := next(t, f)
	w.Put("pods", map[string]any{"metadata": map[string]any{"name": "new", "namespace": "web",
		"labels": map[string]string{"a": "b"}}})
	modified := next(t, f)
	w.Delete("pods", "web/new")
	deleted := next(t, f)
	for i, e := range []kinf.Event{added, modified, deleted} {
		want := []kinf.EventType{kinf.Added, kinf.Modified, kinf.Deleted}[i]
		if e.Type != want || e.Object.Key != "web/new" || e.Initial || e.Unknown || time.Since(e.Time) > time.Minute ||
			e.Number <= end.Number || e.Journal != now.Journal() {
			t.Errorf("%d: %+v", i, e)
		}
		if err := store.WaitFor(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	if added.Old != nil || modified.Old.ResourceVersion != added.Object.ResourceVersion ||
		deleted.Old.ResourceVersion != modified.Object.ResourceVersion {
		t.Errorf("%+v %+v %+v", added, modified, deleted)
	}
}

func TestAFollowerBeginsAtASnapshotAnEventOrNow(t *testing.T) {
	w := synced(t, 60)
	store := openStore(t, w.Store)
	s := snapshot(t, store)
	feed, err := s.Feeds("pods")
	if err != nil {
		t.Fatal(err)
	}
	touchPods(t, w, 10)
	now := follow(t, store, kinf.FollowOptions{Feed: "pods"})
	for objects := 0; objects < 60; {
		if e := next(t, now); e.Initial {
			objects++
		}
	}
	for _, options := range []kinf.FollowOptions{{Snapshot: s}, {After: feed[0].Event},
		{After: feed[0].Event, Journal: s.Journal()}} {
		options.Feed = "pods"
		f := follow(t, store, options)
		if e := next(t, f); e.Type != kinf.Synced || e.Number != feed[0].Event {
			t.Errorf("%+v", e)
		}
		for range 10 {
			if e := next(t, f); e.Type != kinf.Modified || e.Number <= feed[0].Event {
				t.Errorf("%+v", e)
			}
		}
	}
	for _, options := range []kinf.FollowOptions{{After: 1 << 40}, {After: 1}, {After: feed[0].Event, Journal: [16]byte{1}}} {
		options.Feed = "pods"
		f := follow(t, store, options)
		if e, err := f.Next(t.Context()); !errors.Is(err, kinf.ErrLapsed) {
			t.Errorf("%+v: %+v %v", options, e, err)
		}
		again, _ := initial(t, f)
		settles(t, w, store, f, again)
	}

	changes := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
	if e := next(t, changes); e.Type != kinf.Synced {
		t.Errorf("%+v", e)
	}
	touchPods(t, w, 1)
	if e := next(t, changes); e.Type != kinf.Modified {
		t.Errorf("%+v", e)
	}
	for options, want := range map[kinf.FollowOptions]error{{Feed: "gadgets"}: kinf.ErrNoFeed, {}: kinf.ErrSyntax,
		{Feed: "pods", Namespace: "a/b"}: kinf.ErrSyntax} {
		if _, err := store.Follow(t.Context(), options); !errors.Is(err, want) {
			t.Errorf("%+v: %v", options, err)
		}
	}
}

func TestAFollowerOfANamespaceGetsNoOtherObjects(t *testing.T) {
	w := synced(t, 80)
	store := openStore(t, w.Store)
	var namespace string
	for object := range snapshot(t, store).List("pods", kinf.Query{Limit: 1}) {
		namespace = object.Namespace()
	}
	f := follow(t, store, kinf.FollowOptions{Feed: "pods", Namespace: namespace})
	s, _ := initial(t, f)
	if want := listed(t, snapshot(t, store), kinf.Query{Namespace: namespace}); !reflect.DeepEqual(s, want) || len(s) == 80 {
		t.Fatalf("%d objects, not %d", len(s), len(want))
	}
	touchPods(t, w, 80)
	w.Put("pods", map[string]any{"metadata": map[string]any{"name": "last", "namespace": namespace}})
	var e kinf.Event
	for s[namespace+"/last"] == "" {
		e = next(t, f)
		if e.Object.Namespace() != namespace {
			t.Fatalf("%+v", e)
		}
		s.apply(t, e)
	}
	if err := store.WaitFor(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if want := listed(t, snapshot(t, store), kinf.Query{Namespace: namespace}); !reflect.DeepEqual(s, want) {
		t.Errorf("%v, not %v", s, want)
	}
}
