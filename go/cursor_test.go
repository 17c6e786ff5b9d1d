// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"kinf"
)

func TestACursorGoesOnWhereTheLastFollowerEnded(t *testing.T) {
	w := synced(t, 50)
	store := openStore(t, w.Store)
	named := kinf.FollowOptions{Feed: "pods", Cursor: "mine"}
	if err := os.RemoveAll(w.Store + "/cursors"); err != nil { // it is made again
		t.Fatal(err)
	}
	f := follow(t, store, named)
	objects, _ := initial(t, f)
	if len(objects) != 50 {
		t.Fatalf("%d objects", len(objects))
	}
	if _, err := store.Follow(t.Context(), named); !errors.Is(err, kinf.ErrLocked) ||
		!strings.Contains(err.Error(), "cursor 'mine': it is in use by process") {
		t.Error(err)
	}
	if err := f.Close(); err != nil { // Synced was not handled
		t.Fatal(err)
	}

	f = follow(t, store, named)
	if again, _ := initial(t, f); !reflect.DeepEqual(again, objects) {
		t.Errorf("%d objects, not %d", len(again), len(objects))
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if out := string(w.Kinf("cursor", "ls")); !regexp.MustCompile(`(?m)^mine +1 +\d+ +\d+s`).MatchString(out) {
		t.Error(out)
	}
	if left, _ := os.ReadDir(w.Store + "/cursors"); len(left) != 1 {
		t.Errorf("%v", left)
	}

	// Missed: deletions with their last state, and through restarts of the daemons.
	var deleted string
	for key := range objects {
		deleted = key
		break
	}
	w.Delete("pods", deleted)
	w.Put("pods", map[string]any{"metadata": map[string]any{"name": "new", "namespace": "web"}})
	w.Stop(syscall.SIGKILL)
	w.Run()
	f = follow(t, store, named)
	first, gone, added := next(t, f), next(t, f), next(t, f)
	if first.Type != kinf.Synced || gone.Type != kinf.Deleted || gone.Object.Key != deleted ||
		gone.Object.ResourceVersion == "" || gone.Old.ResourceVersion != objects[deleted] || added.Type != kinf.Added ||
		added.Object.Key != "web/new" || added.Initial {
		t.Errorf("%+v %+v %+v", first, gone, added)
	}
	f.Close() // the last one was not handled
	f = follow(t, store, named)
	if first, again := next(t, f), next(t, f); first.Type != kinf.Synced || again.Number != added.Number {
		t.Errorf("%+v", again)
	}
	f.Close()

	// kinf goes on with it, and the other way round.
	w.WaitFor("pods", "live")
	out := string(w.Kinf("watch", "pods", "-o", "json", "--cursor", "mine", "--count", "1"))
	if !strings.Contains(out, `"name":"new"`) {
		t.Error(out)
	}
	touchPods(t, w, 1)
	f = follow(t, store, named)
	if first, touched := next(t, f), next(t, f); first.Type != kinf.Synced || touched.Type != kinf.Modified {
		t.Errorf("%+v %+v", first, touched)
	}
}

func TestABadCursorIsRefused(t *testing.T) {
	w := synced(t, 10)
	store := openStore(t, w.Store)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(w.Store+"/cursors/bad", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const journal = "kinf-cursor 1\njournal 00112233445566778899aabbccddeeff\nwritten 1\n"
	for text, want := range map[string]error{"": kinf.ErrFormat, "kinf-cursor 2\nend\n": kinf.ErrFormat,
		journal + "feed 1 2\n": kinf.ErrCorrupt, journal + "feed x 2\nend\n": kinf.ErrCorrupt,
		journal + strings.Repeat("feed 1 2\n", 40000) + "end\n": kinf.ErrCorrupt} {
		write(text)
		_, err := store.Follow(t.Context(), kinf.FollowOptions{Feed: "pods", Cursor: "bad"})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "kinf cursor rm bad") {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	for _, name := range []string{".", ".x", "a/b", strings.Repeat("x", 65), "grün"} {
		if _, err := store.Follow(t.Context(), kinf.FollowOptions{Feed: "pods", Cursor: name}); !errors.Is(err, kinf.ErrSyntax) {
			t.Errorf("%q: %v", name, err)
		}
	}

	// Of another journal, and of other feeds: a lapse.
	uuid := snapshot(t, store).Journal()
	for _, text := range []string{journal + "feed 1 2\nend\n", strings.Replace(journal, "00112233445566778899aabbccddeeff",
		hexOf(uuid), 1) + "feed 1 2\nfeed 999 2\nend\n"} {
		write(text)
		f := follow(t, store, kinf.FollowOptions{Feed: "pods", Cursor: "bad"})
		if e, err := f.Next(t.Context()); !errors.Is(err, kinf.ErrLapsed) {
			t.Errorf("%+v %v", e, err)
		}
		if objects, _ := initial(t, f); len(objects) != 10 {
			t.Errorf("%d objects", len(objects))
		}
		f.Close()
	}
}
