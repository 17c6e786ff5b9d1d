// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reads of the store of $KINF_STORE, which is of the cluster of $KUBECONFIG, and of controller-runtime's
// own cache: `go test -run none -bench .`
func benchmark(b *testing.B, read func(cache.Cache, []corev1.Pod) error) {
	if os.Getenv("KINF_STORE") == "" || os.Getenv("KUBECONFIG") == "" {
		b.Skip("no $KINF_STORE or no $KUBECONFIG")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		b.Fatal(err)
	}
	for name, make := range map[string]cache.NewCacheFunc{"kinf": NewCache(Options{Require: true}), "own": cache.New} {
		b.Run(name, func(b *testing.B) {
			c := start(b, make, config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
			var pods corev1.PodList
			if err := c.List(context.Background(), &pods); err != nil || len(pods.Items) == 0 {
				b.Fatal(len(pods.Items), err)
			}
			if err := read(c, pods.Items); err != nil { // the first makes informers
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := read(c, pods.Items); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var turn int

// next returns the key of a pod, in no order.
func next(pods []corev1.Pod) client.ObjectKey {
	turn += 7919
	return client.ObjectKeyFromObject(&pods[turn%len(pods)])
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, func(c cache.Cache, pods []corev1.Pod) error {
		return c.Get(context.Background(), next(pods), &corev1.Pod{})
	})
}

func BenchmarkGetUnstructured(b *testing.B) {
	benchmark(b, func(c cache.Cache, pods []corev1.Pod) error {
		pod := &unstructured.Unstructured{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		return c.Get(context.Background(), next(pods), pod)
	})
}

func BenchmarkListNamespace(b *testing.B) {
	benchmark(b, func(c cache.Cache, pods []corev1.Pod) error {
		return c.List(context.Background(), &corev1.PodList{}, client.InNamespace(next(pods).Namespace))
	})
}

func BenchmarkListByIndex(b *testing.B) {
	benchmark(b, func(c cache.Cache, pods []corev1.Pod) error {
		turn += 7919
		node := pods[turn%len(pods)].Spec.NodeName
		return c.List(context.Background(), &corev1.PodList{}, client.MatchingFields{"spec.nodeName": node})
	})
}

// Of the 1,000 pods of a node the 10 with a label. "before" is controller-runtime's way: it decodes all
// of the node's pods, and compares their labels then.
func BenchmarkListByIndexAndLabels(b *testing.B) {
	w, config := world(b)
	var pods corev1.PodList
	own := start(b, cache.New, config, cache.Options{})
	if err := own.List(context.Background(), &pods); err != nil {
		b.Fatal(err)
	}
	pod := pods.Items[0]
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Spec.NodeName = "full"
	for n := range 1000 {
		pod.Name, pod.UID = fmt.Sprintf("one-%d", n), ""
		pod.Labels = map[string]string{"app": fmt.Sprintf("app-%d", n%100)}
		w.Put("pods", &pod)
	}
	ours := start(b, NewCache(Options{Store: w.Store, Require: true}), config, cache.Options{})
	for _, run := range []struct {
		name, field string
		cache       cache.Cache
	}{{"before", "spec.nodeName", ours.(selecting).Cache}, {"function", "spec.nodeName", ours}, {"path", "node", ours},
		{"own", "spec.nodeName", own}} {
		b.Run(run.name, func(b *testing.B) {
			list := func() int {
				err := run.cache.List(context.Background(), &pods, client.MatchingFields{run.field: "full"},
					client.MatchingLabels{"app": "app-7"})
				if err != nil {
					b.Fatal(err)
				}
				return len(pods.Items)
			}
			w.Eventually("10 pods", func() bool { return list() == 10 })
			b.ReportAllocs()
			for b.Loop() {
				list()
			}
		})
	}
}
