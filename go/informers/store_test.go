// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

// The index is made again, the journal is compacted, and the store is removed and made again, while an
// informer runs: its handlers end up with what the cluster has. What was read is kept, so they get the old
// states.
func TestAStoreThatIsReplaced(t *testing.T) {
	t.Parallel()
	w, store, config := world(t, 100)
	i, real := pods(t, store, Scope{}, Options{Objects: NewObjectCache(8 << 20)}), beside(t, config)
	var failures, tombstones atomic.Int64
	if err := i.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(t.Context(), r, err)
		failures.Add(1)
	}); err != nil {
		t.Fatal(err)
	}
	ours, theirs := watch(t, i), watch(t, real)
	handle(t, i, cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok && last.Obj.(*corev1.Pod).ResourceVersion != "" {
			tombstones.Add(1)
		}
	}})
	first, other := handle(t, i, ours), handle(t, real, theirs)
	run(t, i)
	run(t, real)
	synchronize(t, first.HasSyncedChecker(), other.HasSyncedChecker())
	for _, command := range [][]string{{"rebuild-index"}, {"compact"}} {
		w.Kinf(command...)
		touch(w, 30)
		same(t, w, ours, theirs)
	}

	w.Stop(syscall.SIGTERM)
	touch(w, 30)
	keys := ours.keys()
	w.Delete("pods", keys[0])
	if err := os.RemoveAll(w.Store); err != nil {
		t.Fatal(err)
	}
	w.Eventually("an error for the handler of errors", func() bool { return failures.Load() > 0 })
	w.Run()
	same(t, w, ours, theirs)
	if tombstones.Load() != 1 {
		t.Errorf("%d tombstones for the pod that was deleted unseen", tombstones.Load())
	}
	touch(w, 30)
	same(t, w, ours, theirs)
	w.Eventually("the same list", func() bool {
		listed := map[string]*corev1.Pod{}
		for _, object := range i.GetStore().List() {
			listed[object.(*corev1.Pod).Namespace+"/"+object.(*corev1.Pod).Name] = object.(*corev1.Pod)
		}
		return len(listed) == 99 && theirs.knows(listed)
	})
}

// A feed that does not hold the scope any more deletes nothing. One of another name goes on, and the old
// objects of its updates are whole.
func TestAFeedThatIsConfiguredAnew(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 20)
	i := pods(t, store, Scope{}, Options{})
	var failed, updated, deleted, partial atomic.Int64
	if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if errors.Is(err, ErrNotCovered) {
			failed.Add(1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	registration := handle(t, i, cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			updated.Add(1)
			pod, now := before.(*corev1.Pod), after.(*corev1.Pod)
			same := pod.ResourceVersion == now.ResourceVersion || pod.ResourceVersion == "" && reflect.DeepEqual(pod.Labels, now.Labels)
			if pod.UID == "" || len(pod.Spec.Containers) == 0 || same {
				partial.Add(1)
			}
		},
		DeleteFunc: func(any) { deleted.Add(1) },
	})
	run(t, i)
	synchronize(t, i.HasSyncedChecker(), registration.HasSyncedChecker())
	w.Configure("\n- {resource: pods, labelSelector: 'no=such'}\n- {resource: nodes}\n")
	w.Eventually("the word that no feed holds the scope", func() bool { return failed.Load() > 0 })
	w.Configure("\n- {resource: pods, name: others}\n- {resource: nodes}\n")
	w.WaitFor("others", "live")
	w.Eventually("all pods again", func() bool { return updated.Load() >= 20 })
	before := updated.Load()
	touch(w, 5)
	w.Eventually("changes of the feed with the new name", func() bool { return updated.Load() > before })
	if deleted.Load() != 0 || partial.Load() != 0 {
		t.Errorf("%d deletions, %d updates without the old object, or without a change", deleted.Load(), partial.Load())
	}
}

// An informer ends while a handler's list waits for a store that can't be read.
func TestAnInformerEndsWithoutItsStore(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 20)
	i := pods(t, store, Scope{}, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { i.RunWithContext(ctx); close(done) }()
	synchronize(t, i.HasSyncedChecker())
	w.Stop(syscall.SIGTERM)
	if err := os.Rename(w.Store, w.Store+".away"); err != nil {
		t.Fatal(err)
	}
	w.Eventually("an error", func() bool {
		return i.view(func(*kinf.Snapshot, *kinf.Feed, position) error { return nil }) != nil
	})
	handle(t, i, watch(t, i))
	time.Sleep(100 * time.Millisecond) // it lists
	cancel()
	select {
	case <-done:
	case <-time.After(readableMost / 2):
		t.Error("it runs on")
		if err := os.Rename(w.Store+".away", w.Store); err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

// A store that can't be read gives errors, and no empty answers.
func TestAStoreThatIsGone(t *testing.T) {
	w, store, _ := world(t, 20)
	i := pods(t, store, Scope{}, Options{})
	said := make(chan string, 1)
	if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		select {
		case said <- err.Error():
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.Stop(syscall.SIGKILL)
	run(t, i)
	synchronize(t, i.HasSyncedChecker())
	w.Eventually("the word that nothing watches", func() bool { // the daemons end after their supervisor
		select {
		case text := <-said:
			return strings.HasPrefix(text, "feed 'pods' is offline: ")
		default:
			return false
		}
	})
	key := i.GetStore().ListKeys()[0]
	if _, exists, err := i.GetStore().GetByKey(key); !exists || err != nil {
		t.Errorf("without daemons: %v %v", exists, err)
	}
	store.Close()
	readableAfter = 0
	t.Cleanup(func() { readableAfter = readableMost })
	if _, exists, err := i.GetStore().GetByKey(key); exists || !errors.Is(err, kinf.ErrClosed) {
		t.Errorf("closed: %v %v", exists, err)
	}
}
