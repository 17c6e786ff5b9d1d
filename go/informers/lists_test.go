// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// listPods lists a namespace twice, so that the list is kept, and again.
func listPods(t *testing.T, i *Informer, namespace string) (pods []*corev1.Pod) {
	t.Helper()
	for range 3 {
		items, err := i.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
		if namespace == "" {
			items = i.GetIndexer().List()
		}
		if err != nil {
			t.Fatal(err)
		}
		pods = nil
		for _, item := range items {
			pods = append(pods, item.(*corev1.Pod))
		}
	}
	return pods
}

// A kept list gives what a list of the store gives, also when objects come, go, and enter and leave the
// selection. Those that have not changed are the same objects: no room is there to keep single ones.
func TestKeptLists(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 50)
	puts := 0
	pod := func(name, v string) {
		puts++
		w.Put("pods", map[string]any{"metadata": map[string]any{"name": name, "namespace": "web", "labels": map[string]string{"v": v},
			"annotations": map[string]string{"put": fmt.Sprint(puts)}}})
	}
	namespaced := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for _, c := range []struct {
		scope     Scope
		namespace string
	}{
		{Scope{}, ""}, {Scope{}, "web"}, {Scope{Namespace: "web"}, "web"},
		{Scope{Labels: labels.SelectorFromSet(labels.Set{"v": "a"})}, ""},
	} {
		objects := NewObjectCache(1)
		kept := pods(t, store, c.scope, Options{Indexers: namespaced, Objects: objects})
		plain := pods(t, store, c.scope, Options{Indexers: namespaced})
		for _, i := range []*Informer{kept, plain} {
			run(t, i)
			synchronize(t, i.HasSyncedChecker())
		}
		for n := range 20 {
			pod(fmt.Sprint("p", n), "a")
		}
		current := func() bool { // the last put is there
			list := listPods(t, kept, c.namespace)
			return slices.ContainsFunc(list, func(o *corev1.Pod) bool { return o.Annotations["put"] == fmt.Sprint(puts) }) &&
				reflect.DeepEqual(list, listPods(t, plain, c.namespace))
		}
		w.Eventually("the first list", current)
		before := listPods(t, kept, c.namespace)
		for n, o := range before {
			if o != listPods(t, kept, c.namespace)[n] {
				t.Fatalf("%s: the list is not kept", &c.scope)
			}
		}
		pod("p3", "b")
		w.Delete("pods", "web/p5")
		pod("p4", "b")
		pod("p4", "a")
		pod("p35", "a")
		w.Eventually("the changes", current)
		values := map[string]string{}
		for _, o := range listPods(t, kept, c.namespace) {
			values[o.Name] = o.Labels["v"]
		}
		want := map[string]string{"p3": "b", "p4": "a", "p5": "", "p35": "a"}
		if c.scope.Labels != nil {
			want["p3"] = ""
		}
		for name, v := range want {
			if values[name] != v {
				t.Errorf("%s: %s has '%s', not '%s'", &c.scope, name, values[name], v)
			}
		}
		same := map[*corev1.Pod]bool{}
		for _, o := range before {
			same[o] = true
		}
		others := 0
		for _, o := range listPods(t, kept, c.namespace) {
			if !same[o] {
				others++
			}
		}
		if others > 3 {
			t.Errorf("%s: %d objects were decoded again, not those that changed", &c.scope, others)
		}
		w.Kinf("rebuild-index")
		w.Delete("pods", "web/p35")
		pod("p5", "a")
		w.Eventually("another index", current)
	}
}

func TestEndedInformerKeepsNothing(t *testing.T) {
	t.Parallel()
	_, store, _ := world(t, 50)
	objects := NewObjectCache(1 << 20)
	options := Options{Objects: objects, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}}
	stays, ends := pods(t, store, Scope{}, options), pods(t, store, Scope{}, options)
	run(t, stays)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { ends.RunWithContext(ctx); close(ended) }()
	for _, i := range []*Informer{stays, ends} {
		synchronize(t, i.HasSyncedChecker())
		listPods(t, i, "")
	}
	if n := objects.size(t); n != 100 || len(objects.lists) != 2 {
		t.Errorf("%d objects, %d lists", n, len(objects.lists))
	}
	cancel()
	<-ended
	if n := objects.size(t); n != 50 || len(objects.lists) != 1 {
		t.Errorf("%d objects, %d lists", n, len(objects.lists))
	}
}
