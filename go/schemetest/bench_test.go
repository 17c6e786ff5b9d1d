// SPDX-License-Identifier: Apache-2.0

package schemetest

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
	b.ReportAllocs()
	b.ResetTimer()
	return store, all
}

// get measures a read as a controller does it: the newest state, one object, decoded.
func get(b *testing.B, decode func(*kinf.Object) error) {
	store, all := pods(b)
	for i := 0; b.Loop(); i++ {
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
	}
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
	for i := 0; b.Loop(); i++ {
		_ = typed[i*7919%len(typed)].DeepCopy()
	}
}

func BenchmarkDeepCopyUnstructured(b *testing.B) {
	_, all := pods(b)
	maps := make([]map[string]any, min(len(all), 2000))
	for i := range maps {
		maps[i], _ = all[i].Unstructured()
	}
	for i := 0; b.Loop(); i++ {
		_ = runtime.DeepCopyJSON(maps[i*7919%len(maps)])
	}
}

func BenchmarkListTyped(b *testing.B) {
	store, all := pods(b)
	for b.Loop() {
		list := make([]corev1.Pod, 0, len(all))
		if err := store.View(func(s *kinf.Snapshot) error {
			for object, err := range s.List("pods", kinf.Query{}) {
				if err != nil {
					return err
				}
				list = append(list, corev1.Pod{})
				if err := object.Into(&list[len(list)-1]); err != nil {
					return err
				}
			}
			return nil
		}); err != nil || len(list) != len(all) {
			b.Fatal(len(list), err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	store, all := pods(b)
	for b.Loop() {
		n := 0
		if err := store.View(func(s *kinf.Snapshot) error {
			for _, err := range s.List("pods", kinf.Query{}) {
				if err != nil {
					return err
				}
				n++
			}
			return nil
		}); err != nil || n != len(all) {
			b.Fatal(n, err)
		}
	}
}
