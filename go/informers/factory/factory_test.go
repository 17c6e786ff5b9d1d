// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kinf"
	"kinf/informers"
	"kinf/internal/lab"
)

func world(t *testing.T) (*kinf.Store, *rest.Config) {
	t.Helper()
	w := lab.New(t, 100, "\n- {resource: pods, drop: []}\n- {resource: nodes, drop: []}\n")
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
	return store, config
}

func isOurs(informer cache.SharedIndexInformer) bool {
	_, ok := informer.(*informers.Informer)
	return ok
}

// asJSON makes lists comparable that have no order.
func asJSON(t *testing.T, objects []any) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		texts[object.(metav1.Object).GetNamespace()+"/"+object.(metav1.Object).GetName()] = string(text)
	}
	return texts
}

func TestTypedFactory(t *testing.T) {
	t.Parallel()
	store, config := world(t)
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := list.Items[0]
	factory := NewShared(store, client, Options{Namespace: first.Namespace, Tweak: func(o *metav1.ListOptions) {
		o.LabelSelector = labels.SelectorFromSet(first.Labels).String()
	}})
	lister := factory.Core().V1().Pods().Lister()
	if again, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods")); err != nil ||
		again.Informer() != factory.InformerFor(&corev1.Pod{}, nil) || !isOurs(again.Informer()) {
		t.Error("another informer for the same type", err)
	}
	if _, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("none")); err == nil {
		t.Error("an informer of no resource")
	}
	factory.Core().V1().Secrets().Informer()
	if isOurs(factory.InformerFor(&corev1.Secret{}, nil)) {
		t.Error("secrets have no feed")
	}
	typed := factory.Core().V1().Pods().Informer()
	if _, ok := typed.(cache.TypedSharedIndexInformer[*corev1.Pod]); !ok {
		t.Errorf("%T", typed)
	}
	factory.StartWithContext(ctx)
	if synced := factory.WaitForCacheSync(ctx.Done()); !synced[reflect.TypeFor[*corev1.Pod]()] {
		t.Fatal(synced)
	}
	want := 0
	for _, pod := range list.Items {
		if pod.Namespace == first.Namespace && reflect.DeepEqual(pod.Labels, first.Labels) {
			want++
		}
	}
	pods, err := lister.Pods(first.Namespace).List(labels.Everything())
	if err != nil || len(pods) != want || want == 0 {
		t.Errorf("%d pods, not %d: %v", len(pods), want, err)
	}
	if pod, err := lister.Pods(first.Namespace).Get(first.Name); err != nil || !reflect.DeepEqual(*pod, first) {
		t.Errorf("%v %v, not %v", err, pod, first)
	}
	cancel()
	factory.Shutdown()
}

// A factory that informer-gen has made: here client-go's own stands for one of custom resources.
func TestGeneratedFactory(t *testing.T) {
	t.Parallel()
	store, config := world(t)
	client := kubernetes.NewForConfigOrDie(config)
	generated := clientinformers.NewSharedInformerFactory(client, 0)
	if err := Use(store, generated, scheme.Scheme, Options{}, &corev1.Pod{}, &corev1.Secret{}); err != nil {
		t.Fatal(err)
	}
	if err := Use(store, generated, scheme.Scheme, Options{Require: true}, &corev1.Secret{}); !errors.Is(err, informers.ErrNotCovered) {
		t.Error(err)
	}
	if err := Use(nil, generated, scheme.Scheme, Options{Require: true}, &corev1.Pod{}); !errors.Is(err, kinf.ErrNoStore) {
		t.Error(err)
	}
	pods := generated.Core().V1().Pods()
	ours := generated.InformerFor(&corev1.Pod{}, nil)
	if !isOurs(ours) || isOurs(generated.Core().V1().Secrets().Informer()) {
		t.Error("not ours, or ours without a feed")
	}
	lister := pods.Lister()
	other := NewShared(store, client, Options{}).Core().V1().Pods().Informer()
	compare(t, ours, other)
	if list, err := lister.List(labels.Everything()); err != nil || len(list) != 100 {
		t.Errorf("%d pods, %v", len(list), err)
	}
}

// start runs two informers, and compares what they list.
func compare(t *testing.T, ours, theirs cache.SharedIndexInformer) {
	t.Helper()
	if !isOurs(ours) {
		t.Fatalf("%T", ours)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	go ours.RunWithContext(ctx)
	go theirs.RunWithContext(ctx)
	if !cache.WaitFor(ctx, "", ours.HasSyncedChecker(), theirs.HasSyncedChecker()) {
		t.Fatal("not synced")
	}
	got, want := asJSON(t, ours.GetStore().List()), asJSON(t, theirs.GetStore().List())
	for key := range want {
		if got[key] != want[key] {
			t.Fatalf("%s:\n%s, not\n%s", key, got[key], want[key])
		}
	}
	if len(got) != len(want) || len(want) != 100 {
		t.Errorf("%d, not %d", len(got), len(want))
	}
}

// A request of an informer that was asked for its scope comes late, as from the goroutine in which
// client-go's reflector lists: it tells the scope of no other informer.
func TestALateRequestTellsNoScope(t *testing.T) {
	var used kubernetes.Interface
	if scope, _, err := scopeOf(func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		used = client
		return coreinformers.NewSecretInformer(client, "", resync, cache.Indexers{})
	}); err != nil || scope.Resource.Resource != "secrets" {
		t.Errorf("%s, not secrets: %v", &scope, err)
	}
	if _, err := used.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !errors.Is(err, informers.ErrCaptured) {
		t.Error(err)
	}
	if scope, _, err := scopeOf(func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewNodeInformer(client, resync, cache.Indexers{})
	}); err != nil || scope.Resource.Resource != "nodes" {
		t.Errorf("%s, not nodes: %v", &scope, err)
	}
}

func TestATransformOfTheConstructor(t *testing.T) {
	t.Parallel()
	store, config := world(t)
	client := kubernetes.NewForConfigOrDie(config)
	makes := func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		informer := coreinformers.NewPodInformer(client, "", resync, cache.Indexers{})
		err := informer.SetTransform(func(object any) (any, error) {
			pod := object.(*corev1.Pod).DeepCopy()
			pod.Spec, pod.Labels = corev1.PodSpec{}, map[string]string{"transformed": pod.Name}
			return pod, nil
		})
		if err != nil {
			t.Error(err)
		}
		return informer
	}
	compare(t, NewShared(store, client, Options{}).InformerFor(&corev1.Pod{}, makes), makes(client, 0))
}

func TestDynamicAndMetadataFactories(t *testing.T) {
	t.Parallel()
	store, config := world(t)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	dynamicClient, metadataClient := dynamic.NewForConfigOrDie(config), metadata.NewForConfigOrDie(config)
	own := NewDynamic(store, dynamicClient, Options{}).ForResource(pods)
	compare(t, own.Informer(), dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0).ForResource(pods).Informer())
	list, err := own.Lister().List(labels.Everything())
	if err != nil || len(list) != 100 {
		t.Fatal(len(list), err)
	}
	if _, ok := list[0].(*unstructured.Unstructured); !ok {
		t.Errorf("%T", list[0])
	}
	compare(t, NewMetadata(store, metadataClient, Options{}).ForResource(pods).Informer(),
		metadatainformer.NewSharedInformerFactory(metadataClient, 0).ForResource(pods).Informer())
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	if isOurs(NewMetadata(store, metadataClient, Options{}).ForResource(secrets).Informer()) {
		t.Error("secrets have no feed")
	}
	if isOurs(NewDynamic(nil, dynamicClient, Options{}).ForResource(pods).Informer()) {
		t.Error("there is no store")
	}
}

func TestStoreOfAnotherCluster(t *testing.T) {
	t.Parallel()
	store, config := world(t)
	_, other := world(t)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for _, c := range []struct {
		config *rest.Config
		ours   bool
	}{{config, true}, {other, false}, {&rest.Config{Host: "http://127.0.0.1:1"}, true}} { // the last one gives no answer
		typed := NewShared(store, kubernetes.NewForConfigOrDie(c.config), Options{})
		typed.Core().V1().Pods().Informer()
		for n, informer := range []cache.SharedIndexInformer{
			typed.InformerFor(&corev1.Pod{}, nil),
			NewDynamic(store, dynamic.NewForConfigOrDie(c.config), Options{}).ForResource(pods).Informer(),
			NewMetadata(store, metadata.NewForConfigOrDie(c.config), Options{}).ForResource(pods).Informer(),
		} {
			if isOurs(informer) != c.ours {
				t.Errorf("%s, factory %d: %T", c.config.Host, n, informer)
			}
		}
	}
}
