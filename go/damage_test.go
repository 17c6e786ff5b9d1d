// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"kinf"
)

// content reads all objects of the pods: by a list, and each key alone. It gives the bodies by key.
func content(s *kinf.Snapshot, keys []string) (bodies map[string][]byte, failures []error) {
	bodies = map[string][]byte{}
	for object, err := range s.List("pods", kinf.Query{}) {
		if err != nil {
			failures = append(failures, err)
			break
		}
		bodies[object.Key] = object.Raw()
	}
	for _, key := range keys {
		object, err := s.Get("pods", key)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if listed, ok := bodies[key]; ok && !bytes.Equal(listed, object.Raw()) {
			failures = append(failures, fmt.Errorf("'%s' listed is not '%s' got", key, key))
		}
		bodies[key] = object.Raw()
	}
	return bodies, failures
}

// asked are queries by indexes and selectors, read beside the content.
var asked = append(append(labels("pods", "app=app-1", "app in (app-1,app-2),tier!=front", "none"),
	fields("pods", "spec.nodeName=node-1", "status.phase!=Running")...),
	question{feed: "pods", index: "ports", value: "8080"}, question{feed: "pods", index: "node-phase", value: "node-2,Running"},
	question{feed: "pods", index: "node", value: "none"}, question{feed: "configmaps", index: "text", value: longText},
	question{feed: "pods", index: "node", value: "node-1", query: kinf.Query{LabelSelector: "app"}})

// answers answers them. A question whose answer is an error has none.
func answers(s *kinf.Snapshot) (given map[int][]string, failures []error) {
	given = map[int][]string{}
	for i, q := range asked {
		keys, err := q.ask(s)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		given[i] = keys
	}
	values, err := s.IndexValues("pods", "node", "")
	if err != nil {
		return given, append(failures, err)
	}
	given[-1] = []string{fmt.Sprint(values)}
	return given, failures
}

func data(t testing.TB, store, part string) string {
	t.Helper()
	current, err := os.ReadFile(store + "/" + part + "/CURRENT")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, part, string(bytes.TrimSpace(current)), "data.mdb")
}

// changes reads at most n events of the pods' log; fewer have an error.
func changes(t testing.TB, store *kinf.Store, after uint64, n int) (events []kinf.Event, failure error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	f, err := store.Follow(ctx, kinf.FollowOptions{Feed: "pods", After: after})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for len(events) < n {
		e, err := f.Next(ctx)
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// truth is what an undamaged copy gives.
type truth struct {
	bodies map[string][]byte
	keys   []string
	after  uint64
	events []kinf.Event
	given  map[int][]string // of the questions asked
}

// check reads a damaged copy. Whatever it gives is right, and an incomplete answer has an error.
func check(t *testing.T, what, path string, want *truth) (failed bool) {
	t.Helper()
	known := func(err error) {
		for _, kind := range []error{kinf.ErrCorrupt, kinf.ErrFormat, kinf.ErrLocked, kinf.ErrNotYet, kinf.ErrNoFeed, kinf.ErrLapsed,
			kinf.ErrNoIndex} {
			if errors.Is(err, kind) {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	store, err := kinf.Open(path, nil)
	if err != nil {
		known(err)
		return true
	}
	defer store.Close()
	s, err := store.Snapshot()
	if err != nil {
		known(err)
		return true
	}
	defer s.Close()
	got, failures := content(s, want.keys)
	for key, body := range got {
		if !bytes.Equal(body, want.bodies[key]) {
			t.Errorf("%s: another body of '%s'", what, key)
		}
	}
	if len(got) != len(want.bodies) && len(failures) == 0 {
		t.Errorf("%s: %d of %d objects and no error", what, len(got), len(want.bodies))
	}
	events, err := changes(t, store, want.after, len(want.events))
	if err != nil {
		failures = append(failures, err)
	}
	for i, e := range events {
		if !reflect.DeepEqual(e, want.events[i]) {
			t.Errorf("%s: event %d is %+v, not %+v", what, i, e, want.events[i])
		}
	}
	given, others := answers(s)
	for i, keys := range given {
		if !slices.Equal(keys, want.given[i]) {
			t.Errorf("%s: query %d gives %q, not %q", what, i, keys, want.given[i])
		}
	}
	failures = append(failures, others...)
	for _, err := range failures {
		known(err)
	}
	return len(failures) > 0
}

func TestDamagedAndCutCopiesGiveErrors(t *testing.T) {
	w := synced(t, 150)
	texts(w)
	touch(t, w, openStore(t, w.Store), 40)
	w.Stop(syscall.SIGTERM)
	copied := w.Copy("copy")
	store := openStore(t, copied)
	s := snapshot(t, store)
	feed, err := s.Feeds("pods")
	if err != nil {
		t.Fatal(err)
	}
	want := &truth{after: feed[0].Event - 20}
	for object, err := range s.List("pods", kinf.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		want.keys = append(want.keys, object.Key)
	}
	var failures []error
	want.bodies, failures = content(s, want.keys)
	if len(want.bodies) != 150 || len(failures) != 0 {
		t.Fatal(len(want.bodies), failures)
	}
	want.given, failures = answers(s)
	if len(want.given) != len(asked)+1 || len(failures) != 0 {
		t.Fatal(want.given, failures)
	}
	if want.events, err = changes(t, store, want.after, 1+20); err != nil {
		t.Fatal(err)
	}
	s.Close()
	store.Close()

	random := rand.New(rand.NewSource(1))
	rounds, found := 300, 0
	if testing.Short() {
		rounds = 60
	}
	for _, part := range []string{"index", "journal"} {
		path := data(t, copied, part)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for round := range rounds {
			at := random.Intn(len(whole))
			if round%4 == 0 {
				at = random.Intn(8192) // the meta pages
			} else if round%4 == 1 {
				at = random.Intn(len(whole)/4096)*4096 + random.Intn(64) // heads of pages
			}
			damaged := bytes.Clone(whole)
			bit := byte(1) << random.Intn(8)
			damaged[at] ^= bit
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if check(t, fmt.Sprintf("%s, byte %d, bit %d", part, at, bit), copied, want) {
				found++
			}
		}
		for round := range rounds / 4 {
			size := random.Intn(len(whole))
			if round%2 == 0 {
				size = len(whole) - 1 - random.Intn(min(len(whole)-1, 40*4096))
			}
			if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			if check(t, fmt.Sprintf("%s, cut to %d bytes", part, size), copied, want) {
				found++
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d copies gave errors", found, 2*(rounds+rounds/4))
	if check(t, "undamaged", copied, want) || found == 0 {
		t.Error("the copy itself gives errors, or no damage was found")
	}
}

// A file that is cut while it is mapped is a SIGBUS, and here an error.
func TestAFileCutUnderASnapshot(t *testing.T) {
	w := synced(t, 150)
	w.Stop(syscall.SIGTERM)
	for _, part := range []string{"index", "journal"} {
		copied := w.Copy("copy-" + part)
		s := snapshot(t, openStore(t, copied))
		if err := os.Truncate(data(t, copied, part), 8192); err != nil {
			t.Fatal(err)
		}
		failed := false
		for _, err := range s.List("pods", kinf.Query{}) {
			failed = failed || errors.Is(err, kinf.ErrCorrupt)
		}
		if _, err := s.Get("pods", "ns-0/pod-0"); !failed || !errors.Is(err, kinf.ErrCorrupt) {
			t.Errorf("%s: %v %v", part, failed, err)
		}
	}
}

func TestWhatIsNoStore(t *testing.T) {
	empty := t.TempDir()
	if _, err := kinf.Open(empty, nil); !errors.Is(err, kinf.ErrNoStore) {
		t.Error(err)
	}
	if _, err := kinf.Open(empty+"/none", nil); !errors.Is(err, kinf.ErrNoStore) {
		t.Error(err)
	}
	if err := os.WriteFile(empty+"/id", []byte("kinf-store 2 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kinf.Open(empty, nil); !errors.Is(err, kinf.ErrFormat) {
		t.Error(err)
	}
	w := synced(t, 10)
	copied := w.Copy("torn")
	if _, err := kinf.Open(copied, nil); !errors.Is(err, kinf.ErrUntrusted) {
		t.Errorf("a copy of a store in use: %v", err)
	}
	for head, want := range map[string]error{"kinf-store 2": kinf.ErrFormat, "kinf-storm 1": kinf.ErrCorrupt, "": kinf.ErrCorrupt} {
		if err := os.WriteFile(copied+"/id", []byte(head+" 0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := kinf.Open(copied, nil); !errors.Is(err, want) {
			t.Errorf("'%s': %v", head, err)
		}
	}
	w.Stop(syscall.SIGTERM)
	copied = w.Copy("other-format")
	state := filepath.Join(filepath.Dir(data(t, copied, "index")), "STATE")
	text, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, bytes.Replace(text, []byte("\nformat 6\n"), []byte("\nformat 7\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kinf.Open(copied, nil); !errors.Is(err, kinf.ErrFormat) {
		t.Error(err)
	}
}
