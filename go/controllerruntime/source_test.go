// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kinf/internal/lab"
)

// follower is a controller on a Source, as a program of its own would run it.
type follower struct {
	handler.EnqueueRequestForObject
	w      *lab.World
	config *rest.Config
	fails  string // reconciling this name does

	mu         sync.Mutex
	events     []string
	reconciled map[string]int
	failed     int
}

func (f *follower) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf(format, args...))
}

func mark(object client.Object) string { return object.GetName() + object.GetAnnotations()["mark"] }

func (f *follower) Create(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	f.note("create %s %t", mark(e.Object), e.IsInInitialList)
	f.EnqueueRequestForObject.Create(ctx, e, q)
}

func (f *follower) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	f.note("update %s %s", mark(e.ObjectOld), mark(e.ObjectNew))
	f.EnqueueRequestForObject.Update(ctx, e, q)
}

func (f *follower) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	f.note("delete %s %t", mark(e.Object), e.DeleteStateUnknown)
	f.EnqueueRequestForObject.Delete(ctx, e, q)
}

func (f *follower) Reconcile(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Name == f.fails {
		f.failed++
		return reconcile.Result{}, errors.New("on purpose")
	}
	f.reconciled[r.Name]++
	return reconcile.Result{}, nil
}

// run runs the controller until done says so, and returns the events.
func (f *follower) run(t *testing.T, done func() bool) []string {
	t.Helper()
	f.events, f.reconciled, f.failed = nil, map[string]int{}, 0
	yes := true
	m, err := ctrl.NewManager(f.config, ctrl.Options{Metrics: server.Options{BindAddress: "0"},
		NewCache:       NewCache(Options{Store: f.w.Store, Require: true}),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
		Controller:     config.Controller{SkipNameValidation: &yes}})
	if err != nil {
		t.Fatal(err)
	}
	pods := NewSource(SourceOptions{Store: f.w.Store, Cursor: "operator.pods"}, &corev1.Pod{}, f)
	err = ctrl.NewControllerManagedBy(m).Named("pods").WatchesRawSource(pods).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(pods.Reconciler(f))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := background(func() {
		if err := m.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	f.w.Eventually("the events", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return done()
	})
	f.w.Eventually("the last reconcile", func() bool {
		_, found := pods.oldest()
		return found == (f.fails != "")
	})
	cancel()
	<-ended
	<-pods.ended
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

func pod(name, marked string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":%q,"annotations":{"mark":%q}}}`, name, marked)
}

// A controller that was away gets what it missed, and what it did not finish.
func TestSourceGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	w, config := world(t)
	f := &follower{w: w, config: config}
	for _, name := range []string{"a", "b", "c"} {
		w.Put("pods", pod(name, "0"))
	}
	if events := f.run(t, func() bool { return len(f.reconciled) == 103 }); len(events) != 103 ||
		events[0] != "create pod-0 true" {
		t.Errorf("%d events at first: %v", len(events), events[:1])
	}
	w.Put("pods", pod("a", "1"))
	w.Delete("pods", "web/b")
	w.Put("pods", pod("d", "0"))
	w.Stop(syscall.SIGKILL)
	w.Put("pods", pod("a", "2"))
	w.Put("pods", pod("e", "0"))
	w.Run()
	want := []string{"update a0 a1", "delete b0 false", "create d0 false", "update a1 a2", "create e0 false"}
	f.fails = "d"
	missed := f.run(t, func() bool { return len(f.events) == 5 && f.failed > 0 && f.reconciled["e"] == 1 })
	if !slices.Equal(missed, want) {
		t.Errorf("%v, not %v", missed, want)
	}
	w.Delete("pods", "web/c")
	f.fails = ""
	want = []string{"create d0 false", "update a1 a2", "create e0 false", "delete c0 false"}
	if again := f.run(t, func() bool { return len(f.events) == 4 && len(f.reconciled) == 4 }); !slices.Equal(again, want) {
		t.Errorf("%v, not %v", again, want)
	}
	w.Control("POST", "/touch", url.Values{"resource": {"pods"}, "count": {"3"}}, nil)
	if events := f.run(t, func() bool { return len(f.events) == 3 && len(f.reconciled) == 3 }); len(events) != 3 {
		t.Errorf("%d events, not 3: %v", len(events), events)
	}
	unwrapped := NewSource(SourceOptions{Store: w.Store, Cursor: "other"}, &corev1.Pod{}, f)
	const text = "kinf cursor 'other' of *v1.Pod: pass the controller's reconciler through its Reconciler"
	if err := unwrapped.Start(t.Context(), nil); err == nil || err.Error() != text {
		t.Errorf("%v, not %s", err, text)
	}
}
