// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kinf"
	"kinf/informers"
	"kinf/internal/lab"
)

func world(t testing.TB) (*lab.World, *rest.Config) {
	t.Helper()
	w := lab.New(t, 100, "\n- {resource: pods, indexes: {node: spec.nodeName}}\n- {resource: nodes, indexes: {name: metadata.name}}\n")
	w.WaitFor("pods", "synced")
	config, err := clientcmd.BuildConfigFromFlags("", w.Directory+"/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	return w, config
}

// mapper knows the kinds of this test without discovery.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("PodList"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return m
}

func start(t testing.TB, make cache.NewCacheFunc, config *rest.Config, options cache.Options) cache.Cache {
	t.Helper()
	options.Mapper = mapper()
	c, err := make(config, options)
	if err != nil {
		t.Fatal(err)
	}
	byNode := func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }
	if err := c.IndexField(context.Background(), &corev1.Pod{}, "spec.nodeName", byNode); err != nil {
		t.Fatal(err)
	}
	if err := c.IndexField(context.Background(), &corev1.Pod{}, "node", Path("spec.nodeName")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := background(func() { _ = c.Start(ctx) })
	t.Cleanup(func() { cancel(); <-done })
	limit, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	if !c.WaitForCacheSync(limit) {
		t.Fatal("not synced")
	}
	return c
}

func background(fn func()) chan struct{} {
	done := make(chan struct{})
	go func() { fn(); close(done) }()
	return done
}

// equal compares what two caches list.
func equal(t *testing.T, ours, theirs cache.Cache, list client.ObjectList, options ...client.ListOption) int {
	t.Helper()
	other := list.DeepCopyObject().(client.ObjectList)
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	if err := ours.List(ctx, list, options...); err != nil {
		t.Fatal(err)
	}
	if err := theirs.List(ctx, other, options...); err != nil {
		t.Fatal(err)
	}
	got, want := extract(t, list), extract(t, other)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%T %v: %d objects, not the %d that they are:\n%v\n%v", list, options, len(got), len(want), got, want)
	}
	for _, object := range got[:min(len(got), 3)] {
		one, same := object.DeepCopyObject().(client.Object), object.DeepCopyObject().(client.Object)
		key := client.ObjectKeyFromObject(one)
		if err := ours.Get(ctx, key, one); err != nil {
			t.Error(err)
		}
		if err := theirs.Get(ctx, key, same); err != nil || !reflect.DeepEqual(one, same) {
			t.Errorf("%v, not %v: %v", one, same, err)
		}
	}
	return len(got)
}

func extract(t *testing.T, list client.ObjectList) (objects []client.Object) {
	t.Helper()
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		objects = append(objects, item.(client.Object))
	}
	slices.SortFunc(objects, func(a, b client.Object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return objects
}

// The cache lists and gets what controller-runtime's own does.
func TestReadsAreThoseOfControllerRuntime(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	theirs := start(t, cache.New, config, options)
	ours := start(t, NewCache(Options{Store: w.Store, Require: true}), config, cache.Options{}) // the feed drops them
	if c, ok := ours.(interface{ NeedLeaderElection() bool }); !ok || c.NeedLeaderElection() {
		t.Error("the cache waits for the program to lead")
	}
	var pods corev1.PodList
	if n := equal(t, ours, theirs, &pods); n != 100 {
		t.Errorf("%d pods", n)
	}
	first := pods.Items[slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != "" })]
	for _, list := range []client.ObjectList{&corev1.PodList{}, listOf("PodList"), metadataOf("PodList")} {
		for _, option := range []client.ListOption{client.InNamespace(first.Namespace), client.MatchingLabels(first.Labels)} {
			if n := equal(t, ours, theirs, list.DeepCopyObject().(client.ObjectList), option); n == 0 || n == 100 {
				t.Errorf("%d of %v", n, option)
			}
		}
	}
	for _, byNode := range []client.MatchingFields{{"spec.nodeName": first.Spec.NodeName}, {"node": first.Spec.NodeName}} {
		if n := equal(t, ours, theirs, &corev1.PodList{}, byNode); n == 0 || n == 100 {
			t.Errorf("%d of %v", n, byNode)
		}
		within := client.InNamespace(first.Namespace)
		equal(t, ours, theirs, &corev1.PodList{}, byNode, within)
		if n := equal(t, ours, theirs, &corev1.PodList{}, byNode, within, client.MatchingLabels(first.Labels)); n == 0 {
			t.Errorf("none of %v with the labels", byNode)
		}
		equal(t, ours, theirs, &corev1.PodList{}, byNode, client.MatchingLabelsSelector{Selector: labels.Nothing()})
	}
	if n := equal(t, ours, theirs, &corev1.NodeList{}); n == 0 {
		t.Error("no nodes")
	}
	for _, c := range []cache.Cache{ours, theirs} {
		if err := c.IndexField(context.Background(), &corev1.Node{}, "name", Path("metadata.name")); err != nil {
			t.Fatal(err)
		}
	}
	for options, want := range map[client.ListOption]int{&client.ListOptions{}: 1, client.InNamespace(first.Namespace): 0} {
		if n := equal(t, ours, theirs, &corev1.NodeList{}, client.MatchingFields{"name": "node-0"}, options); n != want {
			t.Errorf("%d nodes, not %d", n, want)
		}
	}
	equal(t, ours, theirs, &corev1.NodeList{}, client.InNamespace(first.Namespace)) // none
	informer, err := ours.GetInformer(context.Background(), &corev1.Pod{})
	if _, ok := informer.(*informers.Informer); !ok || err != nil {
		t.Errorf("%T %v", informer, err)
	}
}

// Beside the usual transform lists are still answered by the store's indexes.
func TestManagedFieldsAreStripped(t *testing.T) {
	t.Parallel()
	w := lab.New(t, 20, "\n- {resource: pods, drop: []}\n")
	w.Put("pods", `{"metadata":{"namespace":"web","name":"one","labels":{"app":"one"},"managedFields":[{"manager":"m","operation":"Update"}]}}`)
	w.WaitFor("pods", "synced")
	config, err := clientcmd.BuildConfigFromFlags("", w.Directory+"/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	ours, theirs := start(t, NewCache(Options{Store: w.Store, Require: true}), config, options), start(t, cache.New, config, options)
	byLabel := client.MatchingLabels{"app": "one"}
	for _, list := range []client.ObjectList{&corev1.PodList{}, listOf("PodList"), metadataOf("PodList")} {
		w.Eventually("the pod", func() bool { return theirs.List(t.Context(), list, byLabel) == nil && meta.LenList(list) == 1 })
		equal(t, ours, theirs, list, byLabel)
	}
	_, answered, err := ours.(selecting).maker.find(&corev1.PodList{}, "").Select(informers.Selection{Labels: labels.SelectorFromSet(labels.Set(byLabel))})
	if !answered || err != nil {
		t.Error("not answered by the store", err)
	}
	other := func(object any) (any, error) { return object, nil }
	if stripsManagedFields(other) || !stripsManagedFields(options.DefaultTransform) {
		t.Error("another transform is taken for the usual one")
	}
}

// UnsafeDisableDeepCopy gives what others read so as well, and no other read shares it.
func TestReadsWithoutCopies(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	theirs := start(t, cache.New, config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	ours := start(t, NewCache(Options{Store: w.Store, Require: true}), config, cache.Options{})
	var pods corev1.PodList
	if err := theirs.List(context.Background(), &pods); err != nil {
		t.Fatal(err)
	}
	first := pods.Items[slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != "" && len(p.Labels) > 0 })]
	for _, options := range [][]client.ListOption{{}, {client.InNamespace(first.Namespace)}, {client.MatchingLabels(first.Labels)},
		{client.MatchingFields{"node": first.Spec.NodeName}}, {client.MatchingFields{"spec.nodeName": first.Spec.NodeName},
			client.InNamespace(first.Namespace), client.MatchingLabels(first.Labels)}} {
		for range 3 { // the second list is kept
			if n := equal(t, ours, theirs, &corev1.PodList{}, append(options, client.UnsafeDisableDeepCopy)...); n == 0 {
				t.Errorf("none of %v", options)
			}
		}
	}
	get := func(mark string, options ...client.GetOption) string {
		t.Helper()
		var pod corev1.Pod
		if err := ours.Get(context.Background(), client.ObjectKeyFromObject(&first), &pod, options...); err != nil {
			t.Fatal(err)
		}
		before := pod.Labels["mark"]
		pod.Labels["mark"] = mark
		return before
	}
	for n, read := range []struct {
		set, want string
		options   []client.GetOption
	}{{"a", "", []client.GetOption{client.UnsafeDisableDeepCopy}}, {"b", "a", nil}, {"c", "a", []client.GetOption{client.UnsafeDisableDeepCopy}}} {
		if got := get(read.set, read.options...); got != read.want {
			t.Errorf("read %d: %q, not %q", n, got, read.want)
		}
	}
	err := ours.Get(context.Background(), client.ObjectKey{Namespace: "none", Name: "none"}, &corev1.Pod{}, client.UnsafeDisableDeepCopy)
	if !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// Reads without copies know the states of the cache, and a cache that ended has no file open.
func TestStatesOfTheCache(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	c, err := NewCache(Options{Store: w.Store, Require: true})(config, cache.Options{Mapper: mapper(), ReaderFailOnMissingInformer: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetInformer(t.Context(), &corev1.Node{}); err != nil {
		t.Fatal(err)
	}
	get := func() error {
		return c.Get(t.Context(), client.ObjectKey{Name: "node-0"}, &corev1.Node{}, client.UnsafeDisableDeepCopy)
	}
	if err := get(); !errors.As(err, new(*cache.ErrCacheNotStarted)) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := background(func() { _ = c.Start(ctx) })
	if !c.WaitForCacheSync(ctx) || get() != nil {
		t.Error("not synced, or not read")
	}
	if err := c.RemoveInformer(ctx, &corev1.Node{}); err != nil {
		t.Error(err)
	}
	w.Eventually("the informer is gone", func() bool { return errors.As(get(), new(*cache.ErrResourceNotCached)) })
	if _, err := c.GetInformer(t.Context(), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), w.Store) {
		t.Errorf("%v: the store is open", err)
	}
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods); err != nil || len(pods.Items) != 100 {
		t.Errorf("%d pods, %v", len(pods.Items), err)
	}
}

// A program that sets options of copies gets those of lists by labels too.
func TestListsByLabelsAreCopiedAsOthers(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	w.Put("pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"one","labels":{"app":"one"}}}`)
	yes, no := true, false
	for _, options := range []cache.Options{{DefaultUnsafeDisableDeepCopy: &no}, {DefaultUnsafeDisableDeepCopy: &yes},
		{DefaultUnsafeDisableDeepCopy: &yes, ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {UnsafeDisableDeepCopy: &no}}},
		{DefaultUnsafeDisableDeepCopy: &yes, DefaultNamespaces: map[string]cache.Config{"web": {UnsafeDisableDeepCopy: &no}}}} {
		list := func(make cache.NewCacheFunc, transform toolscache.TransformFunc) (corev1.Pod, bool) {
			own := options
			own.DefaultTransform = transform
			c := start(t, make, config, own)
			var pods corev1.PodList
			w.Eventually("the pod", func() bool {
				err := c.List(t.Context(), &pods, client.InNamespace("web"), client.MatchingLabels{"app": "one"})
				return err == nil && len(pods.Items) == 1
			})
			for range 2 { // it is kept
				if err := c.List(t.Context(), &pods, client.InNamespace("web"), client.MatchingLabels{"app": "one"}); err != nil {
					t.Fatal(err)
				}
			}
			one, again := *pods.Items[0].DeepCopy(), corev1.Pod{}
			pods.Items[0].Labels["mark"] = "a"
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(&one), &again); err != nil {
				t.Fatal(err)
			}
			return one, again.Labels["mark"] == ""
		}
		got, copied := list(NewCache(Options{Store: w.Store, Require: true}), nil)
		want, areCopied := list(cache.New, cache.TransformStripManagedFields())
		if !reflect.DeepEqual(got, want) || copied != areCopied {
			t.Errorf("%v, copied %t, not %v, copied %t", got, copied, want, areCopied)
		}
	}
}

func listOf(kind string) client.ObjectList {
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return u
}

func metadataOf(kind string) client.ObjectList {
	m := &metav1.PartialObjectMetadataList{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

func TestScopesOfTheCache(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	all := start(t, cache.New, config, cache.Options{})
	var pods corev1.PodList
	if err := all.List(context.Background(), &pods); err != nil {
		t.Fatal(err)
	}
	first, last := pods.Items[0], pods.Items[len(pods.Items)-1]
	selector := labels.SelectorFromSet(first.Labels)
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Namespaces: map[string]cache.Config{first.Namespace: {LabelSelector: selector}, last.Namespace: {}}}}}
	ours, theirs := start(t, NewCache(Options{Store: w.Store, Require: true}), config, options), start(t, cache.New, config, options)
	if n := equal(t, ours, theirs, &corev1.PodList{}); n == 0 || n == 100 {
		t.Errorf("%d pods", n)
	}
	withoutTransform := options // the feed drops them
	withoutTransform.DefaultTransform = nil
	ours = start(t, NewCache(Options{Store: w.Store, Require: true}), config, withoutTransform)
	for _, namespace := range []string{first.Namespace, last.Namespace} {
		for range 2 { // the first list makes the informers
			equal(t, ours, theirs, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels(first.Labels))
		}
		equal(t, ours, theirs, &corev1.PodList{}, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	}
	clear(options.ByObject) // the first informer has all but the second one's
	options.ByObject[&corev1.Pod{}] = cache.ByObject{Namespaces: map[string]cache.Config{
		cache.AllNamespaces: {}, last.Namespace: {LabelSelector: labels.SelectorFromSet(last.Labels)}}}
	ours = start(t, NewCache(Options{Store: w.Store, Require: true}), config, withoutTransform)
	theirs = start(t, cache.New, config, options)
	for range 2 {
		if n := equal(t, ours, theirs, &corev1.PodList{}, client.MatchingLabels(last.Labels)); n == 0 {
			t.Error("no pods")
		}
		equal(t, ours, theirs, &corev1.PodList{}, client.MatchingLabels(last.Labels), client.InNamespace(last.Namespace))
	}
}

func TestWhatNoFeedCovers(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	w.Put("secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"web","name":"one"}}`)
	c := start(t, NewCache(Options{Store: w.Store}), config, cache.Options{})
	for range 2 { // what is read is the reader's own
		var secret corev1.Secret
		if err := c.Get(context.Background(), client.ObjectKey{Namespace: "web", Name: "one"}, &secret); err != nil || secret.Labels != nil {
			t.Error(err, secret.Labels)
		}
		secret.Labels = map[string]string{"a": "b"}
	}
	strict := start(t, NewCache(Options{Store: w.Store, Require: true}), config, cache.Options{})
	if _, err := strict.GetInformer(context.Background(), &corev1.Secret{}); !errors.Is(err, informers.ErrNotCovered) {
		t.Error(err)
	}
	if _, err := NewCache(Options{Store: w.Directory + "/none", Require: true})(config, cache.Options{}); !errors.Is(err, kinf.ErrNoStore) {
		t.Error(err)
	}
	without := start(t, NewCache(Options{Store: w.Directory + "/none"}), config, cache.Options{})
	if err := without.Get(context.Background(), client.ObjectKey{Namespace: "web", Name: "one"}, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
}

func TestStoreOfAnotherCluster(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	other, config := world(t)
	other.Put("nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"of-the-other"}}`)
	c := start(t, NewCache(Options{Store: w.Store}), config, cache.Options{})
	if err := c.Get(t.Context(), client.ObjectKey{Name: "of-the-other"}, &corev1.Node{}); err != nil {
		t.Error(err)
	}
	strict, err := NewCache(Options{Store: w.Store, Require: true})(config, cache.Options{Mapper: mapper()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strict.GetInformer(t.Context(), &corev1.Node{}); !errors.Is(err, informers.ErrOtherCluster) {
		t.Error(err)
	}
}
