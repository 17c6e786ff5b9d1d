// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

const feeds = `
- {resource: pods, drop: [], indexes: {node: spec.nodeName, node-phase: [spec.nodeName, status.phase],
    ports: "spec.containers[*].ports[*].containerPort", ready: "status.conditions[type=Ready].status"}}
- {resource: nodes, drop: []}
- {resource: configmaps, drop: [], indexes: {text: data.text, pair: [metadata.name, data.text]}}
- {resource: widgets.example.com, drop: []}
`

func openStore(t testing.TB, path string) *kinf.Store {
	t.Helper()
	store, err := kinf.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// touch changes n random pods, and waits until the store has them.
func touch(t testing.TB, w *lab.World, store *kinf.Store, n int) {
	t.Helper()
	out := w.Control("POST", "/touch", url.Values{"resource": {"pods"}, "count": {strconv.Itoa(n)}}, nil)
	var answer struct{ ResourceVersion string }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the newest version", func() (done bool) {
		err := store.View(func(s *kinf.Snapshot) error {
			f, err := s.Feeds("pods")
			done = err == nil && f[0].ResourceVersion == answer.ResourceVersion
			return err
		})
		return err == nil && done
	})
}

// synced makes a world whose feeds have been listed, with some pods changed since.
func synced(t testing.TB, pods int) *lab.World {
	t.Helper()
	w := lab.New(t, pods, feeds)
	w.Put("widgets.example.com", oddWidget)
	w.Control("POST", "/create", url.Values{"resource": {"configmaps"}, "count": {"20"}, "namespaces": {"3"}}, nil)
	for _, feed := range []string{"pods", "nodes", "configmaps", "widgets.example.com"} {
		w.WaitFor(feed, "synced")
	}
	store, err := kinf.Open(w.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	touch(t, w, store, pods/4)
	return w
}

// An object of values that a careless decoder changes.
const oddWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"odd","namespace":"web"},"spec":{
"float":1.0,"exponent":1E5,"small":1e-7,"minus-zero":-0.0,"int-minus-zero":-0,"int64-max":9223372036854775807,
"int64-min":-9223372036854775808,"uint64-max":18446744073709551615,"beyond":12345678901234567890123,
"digits":0.12345678901234567890,"null":null,"true":true,"empty-map":{},"empty-list":[],"empty":"",
"nested":[[],{"a":[{}]},[null,[1.0]]],"unicode":"grün 日本 \ud83d\ude00","dots.and/slashes":{"a.b/c":1,"":3}}}`

// numbers converts a tree as the JSON decoder of Kubernetes does.
func numbers(t testing.TB, v any) any {
	switch x := v.(type) {
	case map[string]any:
		for key := range x {
			x[key] = numbers(t, x[key])
		}
	case []any:
		for i := range x {
			x[i] = numbers(t, x[i])
		}
	case json.Number:
		if !strings.ContainsAny(string(x), ".eE") {
			if i, err := x.Int64(); err == nil {
				return i
			}
		}
		f, err := x.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	return v
}

// oracle returns the objects that `kinf get` prints, by key.
func oracle(t testing.TB, w *lab.World, feed string, words ...string) map[string]map[string]any {
	t.Helper()
	out := w.Kinf(append([]string{"get", feed, "-A", "-o", "json", "--show-managed-fields"}, words...)...)
	if feed == "widgets.example.com" { // kinf spells numbers as kubectl does: the cluster tells 1.0 from 1
		truth := w.Control("GET", "/objects", url.Values{"resource": {feed}}, nil)
		out = fmt.Appendf(nil, `{"items": %s}`, truth)
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	var list struct{ Items []map[string]any }
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for _, item := range list.Items {
		metadata := item["metadata"].(map[string]any)
		key, _ := metadata["namespace"].(string)
		if key != "" {
			key += "/"
		}
		objects[key+metadata["name"].(string)] = numbers(t, item).(map[string]any)
	}
	return objects
}

// difference names the first member that differs.
func difference(got, want any) string {
	g, ok := got.(map[string]any)
	w, also := want.(map[string]any)
	if !ok || !also {
		return fmt.Sprintf("%T %.200v, not %T %.200v", got, got, want, want)
	}
	for key := range w {
		if !reflect.DeepEqual(g[key], w[key]) {
			return key + ": " + difference(g[key], w[key])
		}
	}
	return "more members"
}

// sameAsOracle compares all objects of all feeds, listed and one by one, with those of libkinf.
func sameAsOracle(t testing.TB, w *lab.World, s *kinf.Snapshot) {
	t.Helper()
	for _, feed := range []string{"pods", "nodes", "configmaps", "widgets.example.com"} {
		want := oracle(t, w, feed)
		last, n := "", 0
		for object, err := range s.List(feed, kinf.Query{}) {
			if err != nil {
				t.Fatalf("%s: %v", feed, err)
			}
			if object.Key <= last {
				t.Fatalf("%s: '%s' after '%s'", feed, object.Key, last)
			}
			last = object.Key
			n++
			got, err := object.Unstructured()
			if err != nil || !reflect.DeepEqual(got, want[object.Key]) {
				t.Fatalf("%s %s: %v: %s", feed, object.Key, err, difference(got, want[object.Key]))
			}
			metadata := got["metadata"].(map[string]any)
			if object.UID != metadata["uid"] || object.ResourceVersion != metadata["resourceVersion"] {
				t.Fatalf("%+v", object)
			}
			var typed struct {
				Metadata struct {
					Name      string            `json:"name"`
					Namespace string            `json:"namespace"`
					Labels    map[string]string `json:"labels"`
				} `json:"metadata"`
			}
			if err := object.Into(&typed); err != nil || typed.Metadata.Name != object.Name() ||
				typed.Metadata.Namespace != object.Namespace() {
				t.Fatalf("%s: %v %v", object.Key, typed, err)
			}
			same, err := s.Get(feed, object.Key)
			if err != nil || !reflect.DeepEqual(same, object) {
				t.Fatalf("%s %s: %v", feed, object.Key, err)
			}
		}
		if n != len(want) || n == 0 {
			t.Fatalf("%s: %d objects, not %d", feed, n, len(want))
		}
	}
}

func snapshot(t testing.TB, store *kinf.Store) *kinf.Snapshot {
	t.Helper()
	s, err := store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestObjectsAreThoseOfTheLibrary(t *testing.T) {
	w := synced(t, 200)
	s := snapshot(t, openStore(t, w.Store))
	sameAsOracle(t, w, s)

	for key, want := range map[string]error{"web/none": kinf.ErrNotFound, "": kinf.ErrNotFound,
		strings.Repeat("x", 600): kinf.ErrNotFound} {
		if _, err := s.Get("pods", key); !errors.Is(err, want) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if _, err := s.Get("gadgets", "a/b"); !errors.Is(err, kinf.ErrNoFeed) {
		t.Error(err)
	}
	for _, name := range []string{"po", "Pod", "pod", "pods.v1", "pods"} {
		if f, err := s.Feeds(name); err != nil || len(f) != 1 || f[0].Kind != "Pod" || f[0].Objects != 200 || !f[0].Namespaced {
			t.Errorf("%s: %v %v", name, f, err)
		}
	}
	all, err := s.Feeds("")
	if err != nil || len(all) != 4 {
		t.Errorf("%v %v", all, err)
	}

	// Without daemons, after their end in order and after a kill.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		w.Stop(signal)
		sameAsOracle(t, w, snapshot(t, openStore(t, w.Store)))
		if err := s.Renew(); err != nil {
			t.Fatal(err)
		}
		w.Run()
		w.WaitFor("pods", "live")
	}
	if err := s.Renew(); err != nil {
		t.Fatal(err)
	}
	sameAsOracle(t, w, s)
}

func TestListsByNamespaceAndInPages(t *testing.T) {
	w := synced(t, 120)
	s := snapshot(t, openStore(t, w.Store))
	var all []string
	namespaces := map[string]int{}
	for object, err := range s.List("pods", kinf.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, object.Key)
		namespaces[object.Namespace()]++
	}
	for namespace, n := range namespaces {
		var paged []string
		for query := (kinf.Query{Namespace: namespace, Limit: 7}); ; {
			before := len(paged)
			for object, err := range s.List("pods", query) {
				if err != nil {
					t.Fatal(err)
				}
				paged = append(paged, object.Key)
			}
			if len(paged)-before < 7 {
				break
			}
			query.After = paged[len(paged)-1]
		}
		if len(paged) != n {
			t.Errorf("%s: %d, not %d", namespace, len(paged), n)
		}
	}
	first := strings.SplitN(all[0], "/", 2)
	for object, err := range s.List("pods", kinf.Query{Namespace: first[0], Prefix: first[1]}) {
		if err != nil || object.Namespace() != first[0] || !strings.HasPrefix(object.Name(), first[1]) {
			t.Error(object, err)
		}
	}
	feeds, err := s.Feeds("pods")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for name, err := range s.Names(&feeds[0], "") {
		object, wrong := s.Get("pods", name.Key)
		if err != nil || wrong != nil || object.Event != name.Event || name.Key != all[names] {
			t.Fatalf("%v, not '%s': %v %v", name, all[names], err, wrong)
		}
		names++
	}
	for namespace, n := range namespaces {
		for range s.Names(&feeds[0], namespace) {
			n--
		}
		if n != 0 {
			t.Errorf("%s: %d names not given", namespace, n)
		}
	}
	if names != len(all) {
		t.Errorf("%d names, not %d", names, len(all))
	}
	for object, err := range s.List("pods", kinf.Query{Namespace: "none"}) {
		t.Error(object, err)
	}
}
