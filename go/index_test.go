// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

// question is a query, and the words of `kinf get` for it.
type question struct {
	feed         string
	query        kinf.Query
	index, value string
}

func (q *question) words() []string {
	words := []string{"-A"}
	if q.query.Namespace != "" {
		words = []string{"-n", q.query.Namespace}
	}
	if q.query.LabelSelector != "" {
		words = append(words, "-l", q.query.LabelSelector)
	}
	if q.query.FieldSelector != "" {
		words = append(words, "--field-selector", q.query.FieldSelector)
	}
	if q.index != "" {
		words = append(words, "--index", q.index+"="+q.value)
	}
	return words
}

// ask returns the keys of the objects, in the order given.
func (q *question) ask(s *kinf.Snapshot) (keys []string, err error) {
	objects := s.List(q.feed, q.query)
	if q.index != "" {
		objects = s.ByIndex(q.feed, q.index, q.value, q.query)
	}
	for object, err := range objects {
		if err != nil {
			return nil, err
		}
		keys = append(keys, object.Key)
	}
	return keys, nil
}

// oracle returns the keys that `kinf get` prints.
func (q *question) oracle(w *lab.World) (keys []string) {
	words := append([]string{"get", q.feed, "--no-headers", "-o", "custom-columns=a:.metadata.namespace,b:.metadata.name"},
		q.words()...)
	for line := range strings.Lines(string(w.Kinf(words...))) {
		keys = append(keys, strings.TrimPrefix(strings.Join(strings.Fields(line), "/"), "<none>/"))
	}
	return keys
}

func labels(feed string, selectors ...string) (all []question) {
	for _, s := range selectors {
		all = append(all, question{feed: feed, query: kinf.Query{LabelSelector: s}})
	}
	return all
}

func fields(feed string, selectors ...string) (all []question) {
	for _, s := range selectors {
		all = append(all, question{feed: feed, query: kinf.Query{FieldSelector: s}})
	}
	return all
}

var longText = strings.Repeat("0123456789", 60)

func questions() []question {
	all := labels("pods", "app=app-1", "app==app-1,tier=front", "app!=app-1", "!app", "app", "step", "!step",
		"tier in (front,back)", "tier notin (front)", "tier in ()", "app in (none,nobody)", "app in (app-1, app-2,),tier", "step=s1,app", "tier=",
		"app.kubernetes.io/name=app-3", "none=x", "app>3", "step,tier!=front,app notin (app-1,app-2)")
	all = append(all, labels("nodes", "node-role.kubernetes.io/control-plane=", "kubernetes.io/hostname=node-1", "app>0")...)
	all = append(all, labels("widgets.example.com", "a=b", "!a")...)
	all = append(all, fields("pods", "spec.nodeName=node-1", "spec.nodeName!=node-1", "status.phase=Running",
		"spec.nodeName=node-1,status.phase!=Running", "spec.nodeName=", "metadata.name=pod-7",
		"metadata.name=pod-7,metadata.namespace=ns-7", "metadata.namespace=ns-7", "metadata.namespace=ns-7,metadata.name!=pod-7",
		"metadata.name=pod-7,metadata.namespace=ns-1", "metadata.name=pod", "metadata.name=", "metadata.namespace=a/b",
		"metadata.name=pod-7,metadata.name=pod-8", "spec.nodeName=node-1,metadata.namespace=ns-1", "spec.host=node-2",
		"spec.hostNetwork=false", "status.conditions[type=Ready].status=True",
		"status.conditions[?(@.type==\"Ready\")].status!=True", "spec.containers[*].ports[*].containerPort=8080",
		"spec.containers[0].name=main", "spec.containers[-1].name=main", "..containerPort=8080", "metadata.labels['app']=app-1",
		"metadata.labels.app\\.kubernetes\\.io/name=app-1", "['metadata.name','spec.nodeName']=node-1",
		"spec.containers[0:1].name=main", "metadata.generation>0", "metadata.generation<=0", "age<10000d", "age<1s",
		"metadata.creationTimestamp<2026-06-02", "metadata.creationTimestamp>=2026-06-01T00:00:00Z",
		"spec.containers[*].resources.requests.memory>=1Gi", "spec.containers[*].resources.limits.cpu<500m",
		"metadata.resourceVersion > 150", "status.phase=Running,", ",", "")...)
	all = append(all, fields("nodes", "spec.unschedulable=false", "status.allocatable.memory>30Gi", "metadata.name=node-1",
		"metadata.namespace=ns-1", "metadata.namespace=",
		"status.capacity.cpu=8", "spec.taints[?(@.effect==\"NoSchedule\")].key!=x")...)
	all = append(all, fields("widgets.example.com", "spec.float=1.0", "spec.float=1", "spec.exponent=100000", "spec.small=1e-7",
		"spec.minus-zero=-0", "spec.uint64-max=18446744073709551615", "spec.beyond=12345678901234567890123", "spec.null=",
		"spec.true=true", "spec.empty-map=", "spec.uint64-max>18446744073709551614", "spec['dots.and/slashes']['a.b/c']=1",
		"spec.unicode=grün 日本 😀", "spec.nested[2][1][0]>=1", "spec.nested[*][?(@<2)]=1.0")...)
	all = append(all, fields("configmaps", "data.text="+longText+"1", "data.text="+longText, "data.text="+longText[:480],
		"data.text=a\\,b\\=c\\\\d", "data.text!=x")...)
	for i := range 5 {
		value := fmt.Sprintf("node-%d", i)
		all = append(all, question{feed: "pods", index: "node", value: value},
			question{feed: "pods", index: "node", value: value, query: kinf.Query{Namespace: "ns-1"}},
			question{feed: "pods", index: "node", value: value, query: kinf.Query{LabelSelector: "app in (app-1,app-4),step!=s1"}},
			question{feed: "pods", index: "node-phase", value: value + ",Running"},
			question{feed: "pods", index: "label", value: fmt.Sprintf("app=app-%d", i), query: kinf.Query{
				FieldSelector: "spec.nodeName=" + value, LabelSelector: "tier=front"}})
	}
	return append(all, question{feed: "pods", index: "ports", value: "8080"}, question{feed: "pods", index: "ready", value: "True"},
		question{feed: "pods", index: "namespace", value: "ns-2"}, question{feed: "pods", index: "node", value: "none"},
		question{feed: "pods", index: "node", value: ""},
		question{feed: "configmaps", index: "text", value: longText}, question{feed: "configmaps", index: "text", value: longText + "1"},
		question{feed: "configmaps", index: "text", value: longText[:481]}, question{feed: "configmaps", index: "text", value: longText[:480]},
		question{feed: "configmaps", index: "text", value: "a,b=c\\d"},
		question{feed: "configmaps", index: "pair", value: kinf.CompoundValue("long-1", longText+"1")},
		question{feed: "configmaps", index: "pair", value: kinf.CompoundValue("comma", "a,b=c\\d")})
}

// texts are values of configmaps: long ones that begin alike, and one with what selectors escape.
func texts(w *lab.World) {
	for name, text := range map[string]string{"long-0": longText, "long-1": longText + "1", "long-2": longText + "2",
		"long-same": longText, "short": longText[:480], "comma": "a,b=c\\d"} {
		w.Put("configmaps", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name,
			"namespace": "ns-0"}, "data": map[string]any{"text": text}})
		w.WaitFor("configmaps", "object=ns-0/"+name)
	}
}

func TestQueriesGiveWhatTheLibraryGives(t *testing.T) {
	w := synced(t, 200)
	texts(w)
	s := snapshot(t, openStore(t, w.Store))
	given := 0
	for i, q := range questions() {
		if testing.Short() && i%3 != 0 {
			continue
		}
		want := q.oracle(w)
		got, err := q.ask(s)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s %q: %v\n%q, not\n%q", q.feed, q.words(), err, got, want)
		}
		given += len(got)

		// The same in pages, and by an object's selector.
		selector, err := kinf.ParseSelector(q.query.LabelSelector, q.query.FieldSelector)
		if err != nil {
			t.Fatal(err)
		}
		var paged []string
		for page := q; ; {
			page.query.Limit = 7
			some, err := page.ask(s)
			paged = append(paged, some...)
			if err != nil || len(some) < 7 {
				break
			}
			page.query.After = some[len(some)-1]
		}
		if !slices.Equal(paged, got) {
			t.Errorf("%s %q: in pages %q, not %q", q.feed, q.words(), paged, got)
		}
		for object, err := range s.List(q.feed, kinf.Query{Namespace: q.query.Namespace}) {
			if err != nil {
				t.Fatal(err)
			}
			matches, err := selector.Matches(object)
			if err != nil || q.index == "" && matches != slices.Contains(got, object.Key) {
				t.Errorf("%q: %s: %v %v", q.words(), object.Key, matches, err)
			}
		}
	}
	if given < 1000 {
		t.Errorf("%d objects in all answers", given)
	}
	sameIndexes(t, w, s)
	sameErrors(t, w, s)
}

// sameIndexes compares the indexes and their values with those that `kinf index` prints.
func sameIndexes(t *testing.T, w *lab.World, s *kinf.Snapshot) {
	for _, feed := range []string{"pods", "nodes", "configmaps"} {
		indexes, err := s.Indexes(feed)
		if err != nil || len(indexes) < 2 {
			t.Fatal(indexes, err)
		}
		for _, index := range indexes {
			var text strings.Builder
			values, err := s.IndexValues(feed, index.Name, "")
			if err != nil || !index.Ready {
				t.Error(index, err)
			}
			for _, v := range values {
				fmt.Fprintf(&text, "%s\t%d\n", v.Value, v.Count)
			}
			if want := string(w.Kinf("index", feed, index.Name)); text.String() != want {
				t.Errorf("%s %s:\n%s, not\n%s", feed, index.Name, text.String(), want)
			}
			if len(index.Paths) != 1 {
				continue
			}
			path, err := kinf.ParsePath(index.Paths[0])
			if err != nil || path.String() != index.Paths[0] {
				t.Fatal(path, err)
			}
			counts := map[string]uint64{}
			for object, err := range s.List(feed, kinf.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				found, err := path.Values(object)
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(found)
				for _, value := range slices.Compact(found) {
					counts[value[:min(len(value), 480)]]++
				}
			}
			want := map[string]uint64{}
			for _, v := range values {
				want[v.Value] += v.Count
			}
			if !reflect.DeepEqual(counts, want) {
				t.Errorf("%s %s: %v, not %v", feed, index.Name, counts, want)
			}
		}
	}
	some, err := s.IndexValues("pods", "node", "node-1")
	if err != nil || len(some) == 0 || some[0].Value != "node-1" {
		t.Error(some, err)
	}
}

// badQuestions are refused.
func badQuestions() []question {
	bad := labels("pods", "a b", "=x", "app in front", "app in (front", "app in (,=)", "app,,tier", "app=-x", "-app=x",
		"app>x", "app in (-a,b-)", "a/b/c=x", "/x=y", "A_/x=y", "!app=x", "app=x y", "(", "app=("+strings.Repeat("x", 70)+")",
		strings.Repeat("k", 70)+"=x", "app="+strings.Repeat("x", 70), "x\"y=z")
	bad = append(bad, fields("pods", "spec.nodeName", "=x", "a[=x", "a=b=c", "a=b\\c", "a=b\\", "age=3", "age<x", "a<b",
		"a[1:2:0]=x", "a['x=y", "a[?(@.x)=y", "a[?(@.x ~ 1)]=y", "....=x", "a.=x", "a[99999999999]=1", "a[]=1", "{a=1", "a[?(x)]=1",
		"a..b..c..d..e=1")...)
	return append(bad, question{feed: "pods", index: "color", value: "x"}, question{feed: "pods", index: "node-phase", value: "a"},
		question{feed: "pods", index: "node-phase", value: "a\\,b"})
}

// sameErrors compares what is wrong with a query with what `kinf get` says.
func sameErrors(t *testing.T, w *lab.World, s *kinf.Snapshot) {
	for i, q := range badQuestions() {
		if testing.Short() && i%3 != 0 {
			continue
		}
		said := w.KinfError(append([]string{"get", q.feed}, q.words()...)...)
		_, err := q.ask(s)
		if !errors.Is(err, kinf.ErrSyntax) && !errors.Is(err, kinf.ErrNoIndex) || !strings.Contains(said, err.Error()) {
			t.Errorf("%q: %v\n%s", q.words(), err, said)
		}
	}
}
