// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

// size checks what a cache counts, and returns how many objects it has.
func (c *ObjectCache) size(t *testing.T) int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := 0
	for e := c.used.Front(); e != nil; e = e.Next() {
		kept := e.Value.(*keptObject)
		bytes += kept.size()
		if c.objects[kept.objectVersion] != e {
			t.Error("an object that can't be found")
		}
	}
	if bytes != c.bytes || bytes > c.limit || len(c.objects) != c.used.Len() {
		t.Errorf("%d bytes of %d are counted as %d, %d objects as %d", bytes, c.limit, c.bytes, c.used.Len(), len(c.objects))
	}
	return len(c.objects)
}

func getPod(t *testing.T, i *Informer, key string) *corev1.Pod {
	t.Helper()
	object, exists, err := i.GetStore().GetByKey(key)
	if err != nil || !exists {
		t.Fatal(key, exists, err)
	}
	return object.(*corev1.Pod)
}

func TestObjectsAreShared(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 50)
	objects := NewObjectCache(1 << 20)
	shared := pods(t, store, Scope{}, Options{Objects: objects})
	alone := pods(t, store, Scope{}, Options{})
	stripped := pods(t, store, Scope{}, Options{Objects: objects})
	if err := stripped.SetTransform(func(object any) (any, error) {
		return &corev1.Pod{ObjectMeta: object.(*corev1.Pod).ObjectMeta}, nil
	}); err != nil {
		t.Fatal(err)
	}
	type pair struct{ old, new *corev1.Pod }
	updates := make(chan pair, 1)
	handle(t, shared, cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, new any) {
		updates <- pair{old.(*corev1.Pod), new.(*corev1.Pod)}
	}})
	for _, i := range []*Informer{shared, alone, stripped} {
		run(t, i)
		synchronize(t, i.HasSyncedChecker())
	}
	if n := objects.size(t); n != 0 {
		t.Errorf("%d objects are kept for handlers alone", n)
	}
	keys := shared.GetStore().ListKeys()
	first := getPod(t, shared, keys[0])
	if first != getPod(t, shared, keys[0]) || !reflect.DeepEqual(first, getPod(t, alone, keys[0])) {
		t.Error("another object, or a wrong one")
	}
	if own := getPod(t, alone, keys[0]); own == getPod(t, alone, keys[0]) {
		t.Error("one object for two readers that share none")
	}
	if list := shared.GetStore().List(); len(list) != 50 || list[0] != any(first) {
		t.Errorf("another object in a list of %d", len(list))
	}
	if pod := getPod(t, stripped, keys[0]); pod != getPod(t, stripped, keys[0]) || pod.Spec.NodeName != "" || pod.UID != first.UID {
		t.Error("the transform was left out, or the object is not shared")
	}
	if n := objects.size(t); n != 51 {
		t.Errorf("%d objects, not 51", n)
	}

	touch(w, 1)
	update := <-updates
	key := update.new.Namespace + "/" + update.new.Name
	w.Eventually("the handler's object", func() bool { return getPod(t, shared, key) == update.new })
	if reflect.DeepEqual(update.old, update.new) || update.old.UID != update.new.UID || !reflect.DeepEqual(update.new, getPod(t, alone, key)) {
		t.Errorf("from %v to %v", update.old, update.new)
	}
	if key == keys[0] && update.old != first {
		t.Error("the old state is not the object that was read")
	}
	w.Eventually("the old version is dropped", func() bool { return objects.size(t) <= 51 })
}

func TestReadsOfCopies(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 50)
	objects := NewObjectCache(1 << 20)
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	copies := pods(t, store, Scope{}, Options{Objects: objects, Copies: true, Kind: kind})
	alone := pods(t, store, Scope{}, Options{Kind: kind})
	added, updates := make(chan struct{}, 50), make(chan *corev1.Pod, 1)
	handle(t, copies, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { added <- struct{}{} },
		UpdateFunc: func(_, new any) { updates <- new.(*corev1.Pod) }})
	for _, i := range []*Informer{copies, alone} {
		run(t, i)
		synchronize(t, i.HasSyncedChecker())
	}
	for range 50 { // what handlers get after the first read is kept
		<-added
	}
	key := copies.GetStore().ListKeys()[0]
	for read, kept := range []int{0, 1, 1} {
		pod := getPod(t, copies, key)
		if n := objects.size(t); n != kept {
			t.Errorf("after read %d %d objects are kept", read, n)
		}
		if !reflect.DeepEqual(pod, getPod(t, alone, key)) || pod.Kind != "Pod" {
			t.Errorf("read %d: %v", read, pod)
		}
		pod.Name, pod.Labels = "changed", nil
	}
	for n, kept := range []int{1, 50} { // of each version the second read
		if list := copies.GetStore().List(); len(list) != 50 || objects.size(t) != kept {
			t.Errorf("list %d of %d objects, %d are kept", n, len(list), objects.size(t))
		}
	}

	touch(w, 1)
	shared := <-updates
	key = shared.Namespace + "/" + shared.Name
	w.Eventually("the handler's object", func() bool { return getPod(t, alone, key).ResourceVersion == shared.ResourceVersion })
	pod := getPod(t, copies, key)
	if pod == shared || shared.Kind != "" || pod.Kind != "Pod" || !reflect.DeepEqual(pod.Spec, shared.Spec) {
		t.Errorf("%v, not a copy of %v", pod, shared)
	}
}

// Of copies those are kept that are read again while the cache would still have them: to keep others is to
// decode and copy each.
func TestReadsOfMoreThanTheCacheKeepNothing(t *testing.T) {
	t.Parallel()
	_, store, _ := world(t, 50)
	objects := NewObjectCache(64 << 10) // of 12 pods
	i := pods(t, store, Scope{}, Options{Objects: objects, Copies: true})
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	for range 3 {
		if list := i.GetStore().List(); len(list) != 50 || objects.size(t) != 0 {
			t.Errorf("%d objects, %d are kept", len(list), objects.size(t))
		}
	}
	keys := i.GetStore().ListKeys()
	for range 3 {
		for _, key := range keys[:3] {
			getPod(t, i, key)
		}
	}
	if n := objects.size(t); n != 3 {
		t.Errorf("%d objects are kept of 3 that are read again", n)
	}
}

// A cache of 10 of 50 pods drops those that were not used for the longest time.
func TestTheObjectsUsedLastAreKept(t *testing.T) {
	t.Parallel()
	_, store, _ := world(t, 50)
	objects := NewObjectCache(1 << 20)
	i := pods(t, store, Scope{}, Options{Objects: objects})
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	keys := i.GetStore().ListKeys()
	for _, key := range keys[:10] {
		getPod(t, i, key)
	}
	objects.mu.Lock()
	objects.limit = objects.bytes
	objects.mu.Unlock()
	oldest, second := getPod(t, i, keys[0]), getPod(t, i, keys[1])
	for _, key := range keys[10:18] { // as large as those before, but for a few bytes
		getPod(t, i, key)
	}
	if n := objects.size(t); n < 8 || n > 10 {
		t.Errorf("%d objects", n)
	}
	if getPod(t, i, keys[1]) != second {
		t.Error("an object that was used is gone")
	}
	for _, key := range keys[18:] {
		getPod(t, i, key)
	}
	objects.size(t)
	if again := getPod(t, i, keys[0]); again == oldest || !reflect.DeepEqual(again, oldest) {
		t.Error("an object is kept beyond the limit, or is another one now")
	}
	if NewObjectCache(0) != nil {
		t.Error("a cache of nothing")
	}
	objects.mu.Lock()
	objects.limit = 1
	objects.mu.Unlock()
	if getPod(t, i, keys[30]) == nil {
		t.Error("an object larger than the cache can't be read")
	}
}

// What a work queue keeps does not keep the record.
func TestNamesAreApart(t *testing.T) {
	t.Parallel()
	_, store, _ := world(t, 1)
	err := store.View(func(s *kinf.Snapshot) error {
		for o, err := range s.List("pods", kinf.Query{}) {
			if err != nil {
				return err
			}
			for _, example := range []runtime.Object{&corev1.Pod{}, &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}} {
				d, _ := newDecoder(example)
				object, err := d.object(o)
				if err != nil {
					return err
				}
				for _, word := range []string{object.(metav1.Object).GetName(), object.(metav1.Object).GetNamespace()} {
					at, record := uintptr(unsafe.Pointer(unsafe.StringData(word))), uintptr(unsafe.Pointer(unsafe.StringData(o.Key)))
					end := uintptr(unsafe.Pointer(unsafe.SliceData(o.Raw()))) + uintptr(len(o.Raw()))
					if word == "" || at >= record && at < end {
						t.Errorf("%T: '%s' is in the record", example, word)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
