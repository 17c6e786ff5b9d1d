// SPDX-License-Identifier: Apache-2.0

// What client-go's tests of tools/cache need to run on Informers: scripts/check-go-suites.sh puts this
// file and them into a copy of the package.
package informers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/utils/clock"

	"kinf"
	"kinf/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ---- an API server of a FakeControllerSource ----------------------------------------

// worlds are those of the sources.
var worlds = struct {
	sync.Mutex
	of map[*fcache.FakeControllerSource]func() *lab.World
}{of: map[*fcache.FakeControllerSource]func() *lab.World{}}

// newFakeControllerSource makes a source. The first informer of it starts its server and its daemons.
func newFakeControllerSource(tb testing.TB) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	tb.Cleanup(source.Shutdown)
	worlds.Lock()
	defer worlds.Unlock()
	worlds.of[source] = sync.OnceValue(func() *lab.World {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(source, w, r) }))
		tb.Cleanup(server.Close)
		tb.Cleanup(server.CloseClientConnections)
		tb.Cleanup(http.DefaultClient.CloseIdleConnections)
		return lab.Beside(tb, server.URL, "\n- {resource: pods, drop: []}\n")
	})
	return source
}

func storeOf(source *fcache.FakeControllerSource) *kinf.Store {
	worlds.Lock()
	world := worlds.of[source]
	worlds.Unlock()
	w := world()
	if source.ListError == nil {
		w.WaitFor("pods", "synced")
	}
	var store *kinf.Store
	w.Eventually("the feed", func() bool {
		var err error
		if store == nil {
			if store, err = kinf.Open(w.Store, nil); err != nil {
				return false
			}
		}
		return store.View(func(s *kinf.Snapshot) error {
			_, err := s.Feeds("pods")
			return err
		}) == nil
	})
	return store
}

// serve answers as an API server whose pods have no namespaces.
func serve(source *fcache.FakeControllerSource, w http.ResponseWriter, r *http.Request) {
	var answer any
	query := r.URL.Query()
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/version":
		answer = map[string]string{"major": "1", "minor": "30", "gitVersion": "v1.30.0"}
	case path == "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "/apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	case path == "/api/v1":
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Verbs: []string{"get", "list", "watch"}}}}
	case path != "/api/v1/pods":
		fail(w, apierrors.NewNotFound(corev1.Resource("paths"), path))
		return
	case query.Get("sendInitialEvents") != "":
		fail(w, apierrors.NewBadRequest("no initial events"))
		return
	case query.Get("watch") != "":
		serveWatch(source, w, r)
		return
	default:
		list, err := listOf(source)
		if err != nil {
			// Of a feed that is forbidden, client-go's informer would take over.
			fail(w, apierrors.NewInternalError(err))
			return
		}
		answer = list
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func listOf(source *fcache.FakeControllerSource) (*corev1.PodList, error) {
	listed, err := source.List(metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	list.ResourceVersion = listed.(*corev1.List).ResourceVersion
	return list, meta.EachListItem(listed, func(o apiruntime.Object) error {
		list.Items = append(list.Items, *o.(*corev1.Pod))
		return nil
	})
}

func serveWatch(source *fcache.FakeControllerSource, w http.ResponseWriter, r *http.Request) {
	events, err := source.Watch(metav1.ListOptions{ResourceVersion: r.URL.Query().Get("resourceVersion")})
	if err != nil {
		fail(w, apierrors.NewResourceExpired(err.Error()))
		return
	}
	defer events.Stop()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event, ok := <-events.ResultChan():
			if !ok {
				return
			}
			sendEvent(w, event)
			flusher.Flush()
		}
	}
}

func sendEvent(w http.ResponseWriter, event watch.Event) {
	pod := event.Object.DeepCopyObject().(*corev1.Pod)
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	_ = json.NewEncoder(w).Encode(map[string]any{"type": event.Type, "object": pod})
}

// ---- what the tests know of an informer ----------------------------------------------

// sharedIndexInformer has the members that the tests name.
type sharedIndexInformer struct {
	*Informer
	clock     clock.Clock // of the source's retries, which are the reflector's here
	processor processor
}

type processor struct {
	clock    clock.Clock
	informer *Informer
}

// kinfSharedInformer stands for client-go's NewSharedInformer.
func kinfSharedInformer(source *fcache.FakeControllerSource, example apiruntime.Object,
	resync time.Duration) cache.SharedInformer {
	scope := Scope{Resource: corev1.SchemeGroupVersion.WithResource("pods")}
	i, err := newInformer(storeOf(source), scope, example, Options{Resync: resync})
	if err != nil {
		panic(err)
	}
	return &sharedIndexInformer{i, nil, processor{nil, i}}
}

func eventHandlerCount(i cache.SharedInformer) int {
	s := i.(*sharedIndexInformer)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listeners)
}

func isStarted(i cache.SharedInformer) bool {
	s := i.(*sharedIndexInformer)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

func isRegistered(i cache.SharedInformer, h cache.ResourceEventHandlerRegistration) bool {
	return i.(*sharedIndexInformer).processor.getListener(h) != nil
}

func (p processor) getListener(h cache.ResourceEventHandlerRegistration) *listener {
	p.informer.mu.Lock()
	defer p.informer.mu.Unlock()
	if _, found := p.informer.listeners[h.(*listener)]; found {
		return h.(*listener)
	}
	return nil
}

type threadSafeBuffer struct {
	buffer bytes.Buffer
	mu     sync.Mutex
}

func (b *threadSafeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *threadSafeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// ---- stores that can be changed -------------------------------------------------------

// written is an informer's Indexer whose changes go to its source, and are shown when they return.
type written struct {
	cache.Indexer
	source  *fcache.FakeControllerSource
	toPod   func(any) *corev1.Pod
	fromPod func(any) any
}

// kinfIndexer stands for client-go's NewIndexer. OBJECTS are there from the beginning.
func kinfIndexer(t testing.TB, toPod func(any) *corev1.Pod, fromPod func(any) any, indexers cache.Indexers,
	objects ...*corev1.Pod) cache.Indexer {
	source := newFakeControllerSource(t)
	for _, object := range objects {
		source.Add(object)
	}
	i := kinfSharedInformer(source, &corev1.Pod{}, 0).(*sharedIndexInformer)
	own := cache.Indexers{}
	for name, fn := range indexers {
		own[name] = func(pod any) ([]string, error) { return fn(fromPod(pod)) }
	}
	if err := i.AddIndexers(own); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { i.Run(stop); close(done) }()
	t.Cleanup(func() { close(stop); <-done })
	cache.WaitForCacheSync(stop, i.HasSynced)
	return &written{i.GetIndexer(), source, toPod, fromPod}
}

// podIndexer is a kinfIndexer of pods.
func podIndexer(t testing.TB, indexers cache.Indexers, objects ...*corev1.Pod) cache.Indexer {
	return kinfIndexer(t, func(o any) *corev1.Pod { return o.(*corev1.Pod) }, func(o any) any { return o }, indexers, objects...)
}

const valueOf = "value"

// smallIndexer is a kinfIndexer of testStoreObjects.
func smallIndexer(t testing.TB, indexers cache.Indexers) cache.Indexer {
	toPod := func(o any) *corev1.Pod {
		small := o.(testStoreObject)
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: small.id, Annotations: map[string]string{valueOf: small.val}}}
	}
	fromPod := func(o any) any {
		pod := o.(*corev1.Pod)
		return testStoreObject{pod.Name, pod.Annotations[valueOf]}
	}
	return kinfIndexer(t, toPod, fromPod, indexers)
}

func (w *written) shown(what string, check func() bool) error {
	for end := time.Now().Add(10 * time.Second); !check(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s is not shown after 10 s", what)
		}
	}
	return nil
}

func (w *written) change(pod *corev1.Pod, change func(apiruntime.Object)) error {
	change(pod)
	return w.shown(pod.Name, func() bool {
		got, found, _ := w.Indexer.GetByKey(pod.Name)
		return found && got.(*corev1.Pod).ResourceVersion == pod.ResourceVersion
	})
}

func (w *written) Add(o any) error    { return w.change(w.toPod(o), w.source.Add) }
func (w *written) Update(o any) error { return w.change(w.toPod(o), w.source.Modify) }

func (w *written) Delete(o any) error {
	pod := w.toPod(o)
	w.source.Delete(pod)
	return w.shown(pod.Name, func() bool {
		_, found, _ := w.Indexer.GetByKey(pod.Name)
		return !found
	})
}

func (w *written) Replace(objects []any, _ string) error {
	for _, key := range w.ListKeys() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: key}}
		w.source.Delete(pod)
	}
	for _, o := range objects {
		if err := w.Add(o); err != nil {
			return err
		}
	}
	return w.shown("the list", func() bool { return len(w.ListKeys()) == len(objects) })
}

func (w *written) Get(o any) (any, bool, error) {
	item, found, err := w.Indexer.Get(w.toPod(o))
	if found {
		item = w.fromPod(item)
	}
	return item, found, err
}

func (w *written) all(items []any, err error) ([]any, error) {
	for i := range items {
		items[i] = w.fromPod(items[i])
	}
	return items, err
}

func (w *written) List() []any {
	items, _ := w.all(w.Indexer.List(), nil)
	return items
}

func (w *written) Index(name string, o any) ([]any, error) {
	return w.all(w.Indexer.Index(name, w.toPod(o)))
}

func (w *written) ByIndex(name, value string) ([]any, error) {
	return w.all(w.Indexer.ByIndex(name, value))
}

// mustCreateStore makes the store that the tests of listers list.
func mustCreateStore(t testing.TB, objects, matching int, labels map[string]string) cache.Store {
	pods := make([]*corev1.Pod, objects)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("obj-%d", i)}}
		if i < matching {
			pods[i].Labels = labels
		}
	}
	return podIndexer(t, nil, pods...)
}
