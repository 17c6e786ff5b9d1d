// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kinf"
	"kinf/internal/lab"
)

const feeds = `
- {resource: pods, indexes: {node: spec.nodeName}}
- {resource: nodes}
- {resource: configmaps}
`

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

func world(t testing.TB, pods int) (*lab.World, *kinf.Store, *rest.Config) {
	t.Helper()
	w := lab.New(t, pods, feeds)
	w.WaitFor("pods", "synced")
	store, err := kinf.Open(w.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	config, err := clientcmd.BuildConfigFromFlags("", w.Directory+"/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	return w, store, config
}

func pods(t testing.TB, store *kinf.Store, scope Scope, options Options) *Informer {
	t.Helper()
	scope.Resource = podResource
	i, err := New(store, scope, &corev1.Pod{}, options)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// run runs an informer until the test ends.
func run(t testing.TB, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

func synchronize(t testing.TB, checkers ...cache.DoneChecker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	if !cache.WaitFor(ctx, "", checkers...) {
		t.Fatal("not synced")
	}
}

// seen is what a handler was told of pods. It complains of calls that do not follow from those before.
type seen struct {
	t        testing.TB
	informer cache.SharedIndexInformer // nil: reads are not compared
	mu       sync.Mutex
	pods     map[string]*corev1.Pod
	initial  int
	calls    int
	again    int // updates without a change
}

func watch(t testing.TB, informer cache.SharedIndexInformer) *seen {
	return &seen{t: t, informer: informer, pods: map[string]*corev1.Pod{}}
}

func (s *seen) OnAdd(object any, initial bool) {
	pod := object.(*corev1.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if initial {
		s.initial++
	}
	key := pod.Namespace + "/" + pod.Name
	if s.pods[key] != nil {
		s.t.Errorf("%s was added twice", key)
	}
	s.pods[key] = pod
	s.reads(key, pod)
}

func (s *seen) OnUpdate(old, object any) {
	pod, before := object.(*corev1.Pod), old.(*corev1.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	key := pod.Namespace + "/" + pod.Name
	if known := s.pods[key]; known == nil || known.ResourceVersion != before.ResourceVersion {
		s.t.Errorf("%s: updated from a version that was not known: %v", key, before.ResourceVersion)
	}
	if before.ResourceVersion == pod.ResourceVersion {
		s.again++
	}
	s.pods[key] = pod
	s.reads(key, pod)
}

func (s *seen) OnDelete(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	pod := object.(*corev1.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	key := pod.Namespace + "/" + pod.Name
	if s.pods[key] == nil {
		s.t.Errorf("%s was deleted and not known", key)
	}
	delete(s.pods, key)
}

// reads checks the rule: what a handler saw, a read shows.
func (s *seen) reads(key string, pod *corev1.Pod) {
	if s.informer == nil {
		return
	}
	read, exists, err := s.informer.GetStore().GetByKey(key)
	if err != nil {
		s.t.Errorf("%s: %v", key, err)
	} else if exists && version(read) < version(pod) {
		s.t.Errorf("%s: version %d is read, %d was seen", key, version(read), version(pod))
	}
}

func version(object any) uint64 {
	n, _ := strconv.ParseUint(object.(*corev1.Pod).ResourceVersion, 10, 64)
	return n
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pods)
}

func (s *seen) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pods))
}

func (s *seen) get(key string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[key]
}

func (s *seen) knows(pods map[string]*corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return reflect.DeepEqual(s.pods, pods)
}

// equals tells whether two handlers know the same.
func (s *seen) equals(other *seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	return reflect.DeepEqual(s.pods, other.pods)
}

func (s *seen) difference(other *seen) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	text := fmt.Sprintf("%d and %d pods;", len(s.pods), len(other.pods))
	for key, pod := range s.pods {
		if got := other.pods[key]; got == nil {
			text += " no " + key
		} else if !reflect.DeepEqual(pod, got) {
			return text + fmt.Sprintf(" %s: %v\n%v", key, pod, got)
		}
	}
	return text
}

func strip(object any) (any, error) {
	object.(*corev1.Pod).ManagedFields = nil
	return object, nil
}

// beside makes client-go's own informer of pods.
func beside(t testing.TB, config *rest.Config, options ...informers.SharedInformerOption) cache.SharedIndexInformer {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	options = append(options, informers.WithTransform(strip))
	return informers.NewSharedInformerFactoryWithOptions(client, 0, options...).Core().V1().Pods().Informer()
}

func handle(t testing.TB, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	handle, err := informer.AddEventHandler(handler)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

func touch(w *lab.World, n int) {
	w.Control("POST", "/touch", url.Values{"resource": {"pods"}, "count": {strconv.Itoa(n)}}, nil)
}

// isPresent tells whether the handler knows the newest version of all pods that it knows.
func (s *seen) isPresent(w *lab.World) bool {
	var truth []corev1.Pod
	if err := json.Unmarshal(w.Control("GET", "/objects", url.Values{"resource": {"pods"}}, nil), &truth); err != nil {
		s.t.Error(err)
	}
	versions := map[string]string{}
	for _, pod := range truth {
		versions[pod.Namespace+"/"+pod.Name] = pod.ResourceVersion
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, pod := range s.pods {
		if versions[key] != pod.ResourceVersion {
			return false
		}
	}
	return true
}

func same(t testing.TB, w *lab.World, ours, theirs *seen) {
	t.Helper()
	for end := time.Now().Add(lab.Patience); !theirs.isPresent(w) || !ours.equals(theirs); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not the same: %s", theirs.difference(ours))
		}
	}
}

// rounds halves a test with -short.
func rounds(n int) int {
	if testing.Short() {
		return n / 2
	}
	return n
}

// Handlers learn what those of client-go's informer learn, under changes and kills of the daemons.
func TestHandlersKnowWhatClientGoKnows(t *testing.T) {
	t.Parallel()
	w, store, config := world(t, 200)
	i, real := pods(t, store, Scope{}, Options{Objects: NewObjectCache(500_000)}), beside(t, config)
	ours, theirs := watch(t, i), watch(t, real)
	first, other := handle(t, i, ours), handle(t, real, theirs)
	if i.HasSynced() || first.HasSynced() {
		t.Error("synced before it runs")
	}
	run(t, i)
	run(t, real)
	synchronize(t, i.HasSyncedChecker(), first.HasSyncedChecker(), real.HasSyncedChecker(), other.HasSyncedChecker())
	if ours.initial != 200 {
		t.Errorf("%d in the initial list", ours.initial)
	}
	same(t, w, ours, theirs)
	victims := ours.keys()
	for round := range rounds(6) {
		touch(w, 100)
		w.Delete("pods", victims[round])
		w.Put("pods", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"new-%d"}}`, round))
		switch round {
		case 1, 3:
			w.Stop(syscall.SIGKILL)
			touch(w, 50)
			w.Delete("pods", victims[10+round])
			w.Run()
		}
		late := watch(t, i)
		registration := handle(t, i, late)
		synchronize(t, registration.HasSyncedChecker())
		same(t, w, ours, theirs)
		same(t, w, late, theirs)
		if err := i.RemoveEventHandler(registration); err != nil {
			t.Error(err)
		}
	}
	var listed []string
	for _, object := range i.GetStore().List() {
		pod := object.(*corev1.Pod)
		key := pod.Namespace + "/" + pod.Name
		listed = append(listed, key)
		if known := theirs.get(key); !reflect.DeepEqual(pod, known) {
			t.Errorf("%v, not %v", pod, known)
		}
	}
	if keys := theirs.keys(); !slices.Equal(keys, listed) || !slices.Equal(keys, i.GetStore().ListKeys()) {
		t.Errorf("%d listed, not %d", len(listed), len(keys))
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	w, store, config := world(t, 200)
	_ = w
	all := beside(t, config)
	run(t, all)
	synchronize(t, all.HasSyncedChecker())
	namespaces := all.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex)
	one := all.GetStore().List()[0].(*corev1.Pod)
	var key, value string
	for key, value = range one.Labels {
		break
	}
	for _, scope := range []Scope{
		{Namespace: namespaces[0]},
		{Labels: labels.SelectorFromSet(labels.Set{key: value})},
		{Fields: fields.OneTermEqualSelector("spec.nodeName", one.Spec.NodeName)},
		{Fields: fields.OneTermEqualSelector("metadata.name", one.Name), Namespace: one.Namespace},
	} {
		i := pods(t, store, scope, Options{Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
		handler := watch(t, i)
		registration := handle(t, i, handler)
		run(t, i)
		synchronize(t, registration.HasSyncedChecker())
		var want []string
		for _, object := range all.GetStore().List() {
			pod := object.(*corev1.Pod)
			if (scope.Namespace == "" || pod.Namespace == scope.Namespace) &&
				(scope.Labels == nil || scope.Labels.Matches(labels.Set(pod.Labels))) &&
				(scope.Fields == nil || scope.Fields.Matches(fields.Set{"spec.nodeName": pod.Spec.NodeName, "metadata.name": pod.Name})) {
				want = append(want, pod.Namespace+"/"+pod.Name)
			}
		}
		slices.Sort(want)
		if keys := i.GetStore().ListKeys(); !slices.Equal(keys, want) || len(want) == 0 || handler.count() != len(want) {
			t.Errorf("%s: %d keys and %d seen, not %d", &scope, len(keys), handler.count(), len(want))
		}
	}
}

// Field labels have the API server's defaults, and names that no member has.
func TestFieldLabels(t *testing.T) {
	t.Parallel()
	w := lab.New(t, 0, "\n- {resource: pods}\n- {resource: nodes}\n- {resource: events}\n")
	w.Put("nodes", `{"metadata":{"name":"open"}}`)
	w.Put("nodes", `{"metadata":{"name":"closed"},"spec":{"unschedulable":true}}`)
	w.Put("pods", `{"metadata":{"namespace":"a","name":"host"},"spec":{"hostNetwork":true,"nodeName":"open"}}`)
	w.Put("pods", `{"metadata":{"namespace":"a","name":"other"},"spec":{"nodeName":"closed"}}`)
	w.Put("events", `{"metadata":{"namespace":"a","name":"old"},"source":{"component":"kubelet"},"reason":"Pulled"}`)
	w.Put("events", `{"metadata":{"namespace":"a","name":"new"},"reportingComponent":"kubelet","reason":"Killed"}`)
	for _, resource := range []string{"nodes", "pods", "events"} {
		w.WaitFor(resource, "synced")
	}
	store, err := kinf.Open(w.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for _, c := range []struct{ resource, selector, want string }{
		{"nodes", "spec.unschedulable=false", "open"}, {"nodes", "spec.unschedulable!=false", "closed"},
		{"pods", "spec.hostNetwork=false", "a/other"}, {"pods", "spec.host=open", "a/host"},
		{"pods", "spec.nodeName!=open", "a/other"}, {"events", "source=kubelet", "a/new a/old"},
		{"events", "source=kubelet,reason!=Pulled", "a/new"}, {"events", "source=", ""},
	} {
		selector, err := fields.ParseSelector(c.selector)
		if err != nil {
			t.Fatal(err)
		}
		i, err := New(store, Scope{Resource: corev1.SchemeGroupVersion.WithResource(c.resource), Fields: selector},
			&unstructured.Unstructured{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan string, 2)
		handle(t, i, cache.ResourceEventHandlerFuncs{AddFunc: func(object any) { told <- object.(metav1.Object).GetName() }})
		run(t, i)
		want := strings.Fields(c.want)
		w.Eventually(c.selector, func() bool {
			return i.HasSynced() && slices.Equal(i.GetStore().ListKeys(), want) && len(told) == len(want)
		})
	}
}

func TestWhatIsNotCovered(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 10)
	secrets := Scope{Resource: corev1.SchemeGroupVersion.WithResource("secrets")}
	_, err := New(store, secrets, &corev1.Secret{}, Options{})
	const want = "secrets: not covered by a feed (add '- resource: secrets' to the feeds in kinf.yaml)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
	old := Scope{Resource: podResource}
	old.Resource.Version = "v1beta1"
	if _, err := New(store, old, &corev1.Pod{}, Options{}); err == nil || !strings.Contains(err.Error(), "it has the version v1, not v1beta1") {
		t.Error(err)
	}
	w.Control("POST", "/faults", nil, `{"path": "/secrets", "status": 403, "body": "{}"}`)
	w.Configure(feeds + "- {resource: secrets}\n")
	w.Eventually("a feed that may not be listed", func() bool {
		_, err := New(store, secrets, &corev1.Secret{}, Options{})
		return errors.Is(err, ErrNotCovered) && strings.Contains(err.Error(), "feed 'secrets' is forbidden")
	})
}

func TestAFeedOfMetadataHasNoOtherFields(t *testing.T) {
	feed := kinf.Feed{MetadataOnly: true}
	for field, covers := range map[string]bool{"metadata.name": true, "spec.nodeName": false} {
		scope := Scope{Metadata: true, Fields: fields.OneTermEqualSelector(field, "a")}
		if why := scope.misses(&feed); (why == "") != covers {
			t.Errorf("%s: %q", field, why)
		}
	}
}

func TestIndexes(t *testing.T) {
	t.Parallel()
	w, store, config := world(t, 200)
	byNode := func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil }
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "node": byNode}
	i, real := pods(t, store, Scope{}, Options{Indexers: indexers}), beside(t, config)
	if err := real.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
		t.Fatal(err)
	}
	if err := i.AddIndexers(cache.Indexers{"node": byNode}); err == nil {
		t.Error("the same name twice")
	}
	if got, err := i.GetIndexer().ByIndex("node", "none"); len(got) != 0 || err != nil {
		t.Error(got, err) // nothing before the list
	}
	run(t, i)
	run(t, real)
	synchronize(t, i.HasSyncedChecker(), real.HasSyncedChecker())
	for range rounds(4) {
		touch(w, 20)
		ours, theirs := watch(t, i), watch(t, real)
		one, other := handle(t, i, ours), handle(t, real, theirs)
		synchronize(t, one.HasSyncedChecker(), other.HasSyncedChecker())
		same(t, w, ours, theirs)
		for name := range indexers {
			values := real.GetIndexer().ListIndexFuncValues(name)
			slices.Sort(values)
			if got := i.GetIndexer().ListIndexFuncValues(name); !slices.Equal(got, values) {
				t.Errorf("%s: %v, not %v", name, got, values)
			}
			for _, value := range append(values, "none") {
				compareIndex(t, name, value, i.GetIndexer(), real.GetIndexer())
			}
		}
		if err := i.RemoveEventHandler(one); err != nil {
			t.Error(err)
		}
		w.Delete("pods", i.GetStore().ListKeys()[0])
		w.Eventually("the deletion", func() bool { return len(i.GetStore().ListKeys()) == len(real.GetStore().ListKeys()) })
	}
	if _, err := i.GetIndexer().ByIndex("color", "red"); err == nil || err.Error() != "Index with name color does not exist" {
		t.Error(err)
	}
}

// The maps of an index wait for a store that is behind what handlers were told.
func TestAnIndexIsFilledWhileEventsCome(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 20)
	byName := func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Name}, nil }
	i := pods(t, store, Scope{}, Options{Indexers: cache.Indexers{"name": byName}})
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	processor := w.Processes()["processor"]
	if err := syscall.Kill(processor, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.Put("pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"new"}}`)
	w.Eventually("the event", func() bool {
		return i.view(func(_ *kinf.Snapshot, _ *kinf.Feed, now position) error {
			i.mu.Lock()
			defer i.mu.Unlock()
			if now.before(i.at) {
				return nil
			}
			return errBehind
		}) == nil
	})
	time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(processor, syscall.SIGCONT) })
	if got, err := i.GetIndexer().ByIndex("name", "new"); len(got) != 1 || err != nil {
		t.Error(got, err)
	}
}

// Kinds without namespaces have none, and others have nothing without one.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	_, store, config := world(t, 20)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	nodes, err := New(store, Scope{Resource: corev1.SchemeGroupVersion.WithResource("nodes")}, &corev1.Node{}, Options{Indexers: indexers})
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	for ours, theirs := range map[*Informer]cache.SharedIndexInformer{
		nodes: factory.Core().V1().Nodes().Informer(),
		pods(t, store, Scope{}, Options{Indexers: indexers}): factory.Core().V1().Pods().Informer(),
	} {
		if err := theirs.AddIndexers(cache.Indexers{"all": cache.MetaNamespaceIndexFunc}); err != nil {
			t.Fatal(err)
		}
		run(t, ours)
		run(t, theirs)
		synchronize(t, ours.HasSyncedChecker(), theirs.HasSyncedChecker())
		for _, namespace := range []string{"", "ns-0"} {
			got, err := ours.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace)
			want, theirErr := theirs.GetIndexer().IndexKeys("all", namespace)
			slices.Sort(want)
			if err != nil || theirErr != nil || !slices.Equal(got, want) {
				t.Errorf("'%s': %v, not %v: %v", namespace, got, want, err)
			}
			items, err := ours.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
			if err != nil || len(items) != len(want) {
				t.Errorf("'%s': %d objects, not %d: %v", namespace, len(items), len(want), err)
			}
		}
	}
}

// picky takes no pod of node "bad".
type picky struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		NodeName node `json:"nodeName"`
	} `json:"spec"`
}

type node string

func (n *node) UnmarshalJSON(text []byte) error {
	if *n = node(text); *n == `"bad"` {
		return errors.New("bad node")
	}
	return nil
}

func (p *picky) DeepCopyObject() runtime.Object { c := *p; return &c }

// An object that a type refuses is an error for who gets it, and is told of when it has been mended, or deleted.
func TestAnObjectThatItsTypeRefuses(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 1)
	i, err := New(store, Scope{Resource: podResource}, &picky{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 10)
	handle(t, i, cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) { told <- "update " + string(object.(*picky).Spec.NodeName) },
		DeleteFunc: func(object any) { told <- "delete " + object.(cache.DeletedFinalStateUnknown).Key },
	})
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	put := func(node string) {
		w.Put("pods", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"x"},"spec":{"nodeName":%q}}`, node))
	}
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Errorf("%s, not %s", got, want)
			}
		case <-time.After(lab.Patience):
			t.Fatalf("no %s", want)
		}
	}
	put("bad")
	w.Eventually("the error", func() bool {
		began := time.Now()
		_, exists, err := i.GetStore().GetByKey("web/x")
		return !exists && errors.Is(err, errRefused) && time.Since(began) < readableMost/2
	})
	put("a")
	expect(`update "a"`)
	put("bad")
	w.Delete("pods", "web/x")
	expect("delete web/x")
}

func compareIndex(t *testing.T, name, value string, ours, theirs cache.Indexer) {
	t.Helper()
	keys := func(x cache.Indexer) []string {
		objects, err := x.ByIndex(name, value)
		if err != nil {
			t.Fatal(err)
		}
		named := []string{}
		for _, object := range objects {
			named = append(named, object.(*corev1.Pod).Namespace+"/"+object.(*corev1.Pod).Name)
		}
		slices.Sort(named)
		indexed, err := x.IndexKeys(name, value)
		slices.Sort(indexed)
		if err != nil || !slices.Equal(indexed, named) {
			t.Errorf("%s %s: %v, but the keys %v: %v", name, value, named, indexed, err)
		}
		return named
	}
	if got, want := keys(ours), keys(theirs); !slices.Equal(got, want) {
		t.Errorf("%s %s: %v, not %v", name, value, got, want)
	}
}

// Selectors that are not validated may have values that no label has, whose text is of other requirements.
func TestSelectionsByValuesOfNoLabel(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 1)
	w.Put("pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"one","labels":{"app":"a","tier":"b"}}}`)
	i := pods(t, store, Scope{}, Options{})
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	w.Eventually("the pod", func() bool {
		items, answered, err := i.Select(Selection{Labels: labels.SelectorFromSet(labels.Set{"app": "a", "tier": "b"})})
		return len(items) == 1 && answered && err == nil
	})
	for _, value := range []string{"a,tier=b", strings.Repeat("a", 64), "a b"} {
		items, answered, err := i.Select(Selection{Labels: labels.SelectorFromValidatedSet(labels.Set{"app": value})})
		if len(items) > 0 || answered || err != nil {
			t.Errorf("%s: %v, answered %t: %v", value, items, answered, err)
		}
	}
	began := time.Now()
	if _, _, err := i.Select(Selection{Namespace: "a/b"}); !errors.Is(err, kinf.ErrSyntax) || time.Since(began) > readableMost/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// What the store has an index of is not kept again.
func TestSelectionsUseTheStore(t *testing.T) {
	t.Parallel()
	_, store, _ := world(t, 200)
	path, err := Path("spec.nodeName")
	if err != nil {
		t.Fatal(err)
	}
	phase, _ := Path("status.phase")
	i := pods(t, store, Scope{}, Options{Indexers: cache.Indexers{"node": path, "phase": phase}})
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	var one *corev1.Pod
	for _, object := range i.GetStore().List() {
		if one = object.(*corev1.Pod); one.Spec.NodeName != "" {
			break
		}
	}
	selector := labels.SelectorFromSet(one.Labels)
	for name, of := range map[string]func(*corev1.Pod) string{
		"node":  func(p *corev1.Pod) string { return p.Spec.NodeName },
		"phase": func(p *corev1.Pod) string { return string(p.Status.Phase) },
	} {
		var want, wantSelected []any
		for _, object := range i.GetStore().List() {
			if pod := object.(*corev1.Pod); of(pod) == of(one) {
				want = append(want, pod)
				if selector.Matches(labels.Set(pod.Labels)) {
					wantSelected = append(wantSelected, pod)
				}
			}
		}
		got, err := i.GetIndexer().ByIndex(name, of(one))
		if err != nil || !reflect.DeepEqual(got, want) || len(got) == 0 || len(got) == 200 {
			t.Errorf("%s: %d pods, not %d: %v", name, len(got), len(want), err)
		}
		if again, err := i.GetIndexer().Index(name, one); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%s: %d pods like one, not %d: %v", name, len(again), len(want), err)
		}
		got, answered, err := i.Select(Selection{Index: name, Value: of(one), Labels: selector})
		if err != nil || !answered || !reflect.DeepEqual(got, wantSelected) || len(got) == 0 || len(got) == len(want) {
			t.Errorf("%s with labels: %d pods, not %d: %v", name, len(got), len(wantSelected), err)
		}
	}
	if i.indexes.named["node"].filled || !i.indexes.named["phase"].filled {
		t.Error("the index of the store is kept again, or there is none of phases")
	}
}

func TestResyncGivesEachObjectAgain(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 50)
	i := pods(t, store, Scope{}, Options{Resync: time.Second})
	handler := watch(t, i)
	handle(t, i, handler)
	run(t, i)
	w.Eventually("a resync", func() bool {
		handler.mu.Lock()
		defer handler.mu.Unlock()
		return handler.again >= 100 && handler.initial == 50
	})
}

// Checks are a little early and late, and no period is left out.
func TestResyncsAreDueOnceAPeriod(t *testing.T) {
	begin := time.Now()
	l := &listener{period: time.Second, due: begin.Add(time.Second)}
	for n, at := range []time.Duration{1000_030, 2000_010, 3000_020, 4000_000, 9000_040, 10_000_050} {
		if !l.isDue(begin.Add(at * time.Microsecond)) {
			t.Errorf("none at check %d", n)
		}
	}
	if l.isDue(begin.Add(10_900 * time.Millisecond)) {
		t.Error("one before its time")
	}
}

func TestUnstructuredAndStates(t *testing.T) {
	t.Parallel()
	_, store, config := world(t, 20)
	i, err := New(store, Scope{Resource: podResource}, &unstructured.Unstructured{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i.IsStopped() || i.LastSyncResourceVersion() != "" {
		t.Error(i.IsStopped(), i.LastSyncResourceVersion())
	}
	real := beside(t, config)
	run(t, real)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { i.RunWithContext(ctx); close(done) }()
	synchronize(t, i.HasSyncedChecker(), real.HasSyncedChecker())
	if i.LastSyncResourceVersion() != real.LastSyncResourceVersion() || i.LastSyncResourceVersion() == "" {
		t.Errorf("'%s', not '%s'", i.LastSyncResourceVersion(), real.LastSyncResourceVersion())
	}
	list := i.GetStore().List()
	if len(list) != 20 {
		t.Fatal(len(list))
	}
	for _, object := range list {
		u := object.(*unstructured.Unstructured)
		if u.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
			t.Error(u.GroupVersionKind())
		}
		if _, exists, err := real.GetStore().Get(u); err != nil || !exists {
			t.Error(u.GetName(), err)
		}
	}
	if err := i.SetTransform(strip); err != errStarted {
		t.Error(err)
	}
	if err := i.GetStore().Add(list[0]); err != errReadOnly {
		t.Error(err)
	}
	cancel()
	<-done
	if _, err := i.AddEventHandler(watch(t, nil)); err == nil || !i.IsStopped() {
		t.Error("a handler was added to a stopped informer")
	}
}
