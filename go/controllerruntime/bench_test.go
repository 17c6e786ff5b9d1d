// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
