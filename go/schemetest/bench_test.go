// SPDX-License-Identifier: Apache-2.0

package schemetest

import (
	"iter"
	"os"
	garbage "runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

// The store of $KINF_STORE, with pods, is read: `go test -bench .` beside `kinf run`.
func pods(b *testing.B) (*kinf.Store, []*kinf.Object) {
	if os.Getenv("KINF_STORE") == "" {
		b.Skip("no $KINF_STORE")
	}
	store, err := kinf.Open("", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	var all []*kinf.Object
	if err := store.View(func(s *kinf.Snapshot) error {
		for object, err := range s.List("pods", kinf.Query{}) {
			if err != nil {
				return err
			}
			all = append(all, object)
		}
		return nil
	}); err != nil || len(all) == 0 {
		b.Fatal(len(all), err)
	}
	return store, all
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure reports the CPU time of the whole process, the garbage collector's too. Other programs hardly
// change it.
func measure(b *testing.B, fn func(i int)) {
	b.ReportAllocs()
	garbage.GC()
	before, i := cpuTime(), 0
	for ; b.Loop(); i++ {
		fn(i)
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(i), "cpu-ns/op")
}

// get measures a read as a controller does it: the newest state, one object, decoded.
func get(b *testing.B, decode func(*kinf.Object) error) {
	store, all := pods(b)
	measure(b, func(i int) {
		err := store.View(func(s *kinf.Snapshot) error {
			object, err := s.Get("pods", all[i*7919%len(all)].Key)
			if err != nil {
				return err
			}
			return decode(object)
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkGet(b *testing.B) { get(b, func(*kinf.Object) error { return nil }) }
func BenchmarkGetTyped(b *testing.B) {
	get(b, func(o *kinf.Object) error { return o.Into(&corev1.Pod{}) })
}
func BenchmarkGetMetadata(b *testing.B) {
	get(b, func(o *kinf.Object) error { return o.Into(&metav1.PartialObjectMetadata{}) })
}
func BenchmarkGetUnstructured(b *testing.B) {
	get(b, func(o *kinf.Object) error { _, err := o.Unstructured(); return err })
}

// What a cached read of client-go costs today.
func BenchmarkDeepCopyTyped(b *testing.B) {
	_, all := pods(b)
	typed := make([]corev1.Pod, len(all))
	for i := range all {
		if err := all[i].Into(&typed[i]); err != nil {
			b.Fatal(err)
		}
	}
	measure(b, func(i int) { _ = typed[i*7919%len(typed)].DeepCopy() })
}

func BenchmarkDeepCopyUnstructured(b *testing.B) {
	_, all := pods(b)
	maps := make([]map[string]any, min(len(all), 2000))
	for i := range maps {
		maps[i], _ = all[i].Unstructured()
	}
	measure(b, func(i int) { _ = runtime.DeepCopyJSON(maps[i*7919%len(maps)]) })
}

// list measures a list as controller-runtime's cache gives it: each object is the caller's own.
func list(b *testing.B, want int, objects func(*kinf.Snapshot) iter.Seq2[*kinf.Object, error]) {
	store, all := pods(b)
	if want == 0 {
		want = len(all)
	}
	measure(b, func(int) {
		list := make([]corev1.Pod, 0, want)
		if err := store.View(func(s *kinf.Snapshot) error {
			for object, err := range objects(s) {
				if err != nil {
					return err
				}
				list = append(list, corev1.Pod{})
				if err := object.Into(&list[len(list)-1]); err != nil {
					return err
				}
			}
			return nil
		}); err != nil || len(list) != want {
			b.Fatal(len(list), want, err)
		}
	})
}

// indexer returns client-go's cache of the pods, with the indexes that an operator has.
func indexer(b *testing.B) cache.Indexer {
	_, all := pods(b)
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node": func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil }})
	for _, object := range all {
		pod := &corev1.Pod{}
		if err := object.Into(pod); err != nil {
			b.Fatal(err)
		}
		if err := indexer.Add(pod); err != nil {
			b.Fatal(err)
		}
	}
	return indexer
}

// listIndexer does what controller-runtime's CacheReader does.
func listIndexer(b *testing.B, index, value, selector string) {
	indexer := indexer(b)
	chosen, err := labels.Parse(selector)
	if err != nil {
		b.Fatal(err)
	}
	measure(b, func(int) {
		objects, err := indexer.ByIndex(index, value)
		if err != nil {
			b.Fatal(err)
		}
		var list []runtime.Object
		for _, object := range objects {
			accessor, _ := meta.Accessor(object)
			if chosen.Matches(labels.Set(accessor.GetLabels())) {
				list = append(list, object.(runtime.Object).DeepCopyObject())
			}
		}
		if len(list) == 0 {
			b.Fatal("none")
		}
	})
}

func BenchmarkListTyped(b *testing.B) {
	list(b, 0, func(s *kinf.Snapshot) iter.Seq2[*kinf.Object, error] { return s.List("pods", kinf.Query{}) })
}

// common returns the first pod's namespace or node, and how many have it.
func common(b *testing.B, of func(*corev1.Pod) string) (value string, n int) {
	_, all := pods(b)
	for _, object := range all {
		var pod corev1.Pod
		if err := object.Into(&pod); err != nil {
			b.Fatal(err)
		}
		if value == "" {
			value = of(&pod)
		}
		if of(&pod) == value {
			n++
		}
	}
	return value, n
}

func namespaceOf(p *corev1.Pod) string { return p.Namespace }
func nodeOf(p *corev1.Pod) string      { return p.Spec.NodeName }

func BenchmarkListNamespace(b *testing.B) {
	namespace, n := common(b, namespaceOf)
	list(b, n, func(s *kinf.Snapshot) iter.Seq2[*kinf.Object, error] {
		return s.List("pods", kinf.Query{Namespace: namespace})
	})
}

func BenchmarkClientGoListNamespace(b *testing.B) {
	namespace, _ := common(b, namespaceOf)
	listIndexer(b, cache.NamespaceIndex, namespace, "")
}

// selective returns the label of about ten of the pods for which is holds, and their number.
func selective(b *testing.B, is func(*corev1.Pod) bool) (selector string, n int) {
	_, all := pods(b)
	counts := map[string]int{}
	for _, object := range all {
		var pod corev1.Pod
		if err := object.Into(&pod); err != nil {
			b.Fatal(err)
		}
		for key, value := range pod.Labels {
			if is(&pod) {
				counts[key+"="+value]++
			}
		}
	}
	n = len(all)
	for label, count := range counts {
		if near, best := max(count-10, 10-count), max(n-10, 10-n); near < best || near == best && label < selector {
			selector, n = label, count
		}
	}
	b.Logf("%s: %d objects", selector, n)
	return selector, n
}

func BenchmarkByIndexSelector(b *testing.B) {
	node, _ := common(b, nodeOf)
	selector, n := selective(b, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
	list(b, n, func(s *kinf.Snapshot) iter.Seq2[*kinf.Object, error] {
		return s.ByIndex("pods", "node", node, kinf.Query{LabelSelector: selector})
	})
}

func BenchmarkClientGoByIndexSelector(b *testing.B) {
	node, _ := common(b, nodeOf)
	selector, _ := selective(b, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
	listIndexer(b, "node", node, selector)
}

func BenchmarkNamespaceSelector(b *testing.B) {
	namespace, _ := common(b, namespaceOf)
	selector, n := selective(b, func(p *corev1.Pod) bool { return p.Namespace == namespace })
	list(b, n, func(s *kinf.Snapshot) iter.Seq2[*kinf.Object, error] {
		return s.List("pods", kinf.Query{Namespace: namespace, LabelSelector: selector})
	})
}

func BenchmarkClientGoNamespaceSelector(b *testing.B) {
	namespace, _ := common(b, namespaceOf)
	selector, _ := selective(b, func(p *corev1.Pod) bool { return p.Namespace == namespace })
	listIndexer(b, cache.NamespaceIndex, namespace, selector)
}

// The decoder alone.
func BenchmarkDecodeTyped(b *testing.B) {
	_, all := pods(b)
	all = all[:100]
	measure(b, func(i int) {
		if err := all[i%len(all)].Into(&corev1.Pod{}); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkDecodeUnstructured(b *testing.B) {
	_, all := pods(b)
	all = all[:100]
	measure(b, func(i int) {
		if _, err := all[i%len(all)].Unstructured(); err != nil {
			b.Fatal(err)
		}
	})
}
