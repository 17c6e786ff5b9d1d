// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"kinf"
	"kinf/informers"
)

const commitPeriod = time.Second

// SourceOptions of a Source.
type SourceOptions struct {
	Cursor    string          // its name, of one source: "my-operator.pods"
	Store     string          // its directory; "": kinf.DefaultStore
	Scheme    *runtime.Scheme // nil: client-go's
	Namespace string          // "": all
	Labels    labels.Selector
	Fields    fields.Selector
}

// A Source gives a controller what changed since a named cursor: also the changes and deletions that
// came while the program was away, each with its last state, and no list of all objects.
//
//	pods := kinf.NewSource(kinf.SourceOptions{Cursor: "web.pods"}, &corev1.Pod{}, &handler.EnqueueRequestForObject{})
//	err := ctrl.NewControllerManagedBy(m).Named("web").WatchesRawSource(pods).Complete(pods.Reconciler(r))
//
// An event is handled when the requests that its handler adds were reconciled without an error and
// without a result that asks for more. A killed program gets the others again.
type Source struct {
	options    SourceOptions
	object     client.Object
	handler    handler.EventHandler
	predicates []predicate.Predicate
	synced     chan struct{}
	ended      chan struct{} // the cursor is free

	mu       sync.Mutex
	open     map[reconcile.Request]uint64 // number of the oldest event; 0: of none that is in the journal
	running  map[reconcile.Request]uint64
	observed bool
}

var _ source.SyncingSource = &Source{}

// NewSource makes a source of the objects of a type.
func NewSource(options SourceOptions, object client.Object, handler handler.EventHandler, predicates ...predicate.Predicate) *Source {
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	return &Source{options: options, object: object, handler: handler, predicates: predicates, synced: make(chan struct{}),
		ended: make(chan struct{}), open: map[reconcile.Request]uint64{}, running: map[reconcile.Request]uint64{}}
}

func (s *Source) String() string {
	return fmt.Sprintf("kinf cursor '%s' of %T", s.options.Cursor, s.object)
}

// ---- what is worked on --------------------------------------------------------------

// Reconciler returns a reconciler that tells the source what it did. Several sources of a controller are
// told one by another.
func (s *Source) Reconciler(r reconcile.Reconciler) reconcile.Reconciler {
	s.observed = true
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		s.begin(request)
		done := false // nor if it panics
		defer func() { s.end(request, done) }()
		result, err := r.Reconcile(ctx, request)
		done = err == nil && result.IsZero() || errors.Is(err, reconcile.TerminalError(nil))
		return result, err
	})
}

func (s *Source) begin(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number, ours := s.open[request]; ours {
		delete(s.open, request)
		s.running[request] = number
	}
}

func (s *Source) end(request reconcile.Request, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number, ours := s.running[request]; ours && !done {
		s.open[request] = number // the oldest
	}
	delete(s.running, request)
}

// add notes that a request is of an event.
func (s *Source) add(request reconcile.Request, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.open[request]; !known {
		s.open[request] = number
	}
}

// oldest returns the number of the oldest event that is worked on; false: there is none.
func (s *Source) oldest() (number uint64, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, requests := range []map[reconcile.Request]uint64{s.open, s.running} {
		for _, n := range requests {
			if !found || n < number {
				number, found = n, true
			}
		}
	}
	return number, found
}

// renumber forgets the numbers, which are of lost history.
func (s *Source) renumber() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, requests := range []map[reconcile.Request]uint64{s.open, s.running} {
		for request := range requests {
			requests[request] = 0
		}
	}
}

// observedQueue notes what the handler of an event adds.
type observedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	source *Source
	number uint64
}

func (q *observedQueue) Add(r reconcile.Request) {
	q.source.add(r, q.number)
	q.TypedRateLimitingInterface.Add(r)
}

func (q *observedQueue) AddAfter(r reconcile.Request, after time.Duration) {
	q.source.add(r, q.number)
	q.TypedRateLimitingInterface.AddAfter(r, after)
}

func (q *observedQueue) AddRateLimited(r reconcile.Request) {
	q.source.add(r, q.number)
	q.TypedRateLimitingInterface.AddRateLimited(r)
}

// ---- running ------------------------------------------------------------------------

// Start claims the cursor, and follows.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if !s.observed {
		return fmt.Errorf("%s: pass the controller's reconciler through its Reconciler", s)
	}
	store, err := kinf.Open(s.options.Store, nil)
	if err != nil {
		return err
	}
	changes, err := s.follow(ctx, store)
	if err != nil {
		store.Close()
		return err
	}
	go func() {
		defer close(s.ended)
		defer store.Close()
		s.run(ctx, changes, &observedQueue{queue, s, 0})
	}()
	return nil
}

func (s *Source) follow(ctx context.Context, store *kinf.Store) (*informers.Changes, error) {
	kind, err := apiutil.GVKForObject(s.object, s.options.Scheme)
	if err != nil {
		return nil, err
	}
	scope, err := informers.ScopeOfKind(store, kind)
	if err != nil {
		return nil, err
	}
	scope.Namespace, scope.Labels, scope.Fields = s.options.Namespace, s.options.Labels, s.options.Fields
	return informers.Follow(ctx, store, scope, s.object, s.options.Cursor)
}

// WaitForSync waits until all objects that there were at the start of a new cursor were given.
func (s *Source) WaitForSync(ctx context.Context) error {
	select {
	case <-s.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Source) run(ctx context.Context, changes *informers.Changes, queue *observedQueue) {
	logger := log.FromContext(ctx).WithValues("source", s.String())
	committed := time.Now()
	for ctx.Err() == nil {
		turn, cancel := context.WithTimeout(ctx, commitPeriod)
		change, err := changes.Next(turn)
		cancel()
		switch {
		case err == nil:
			s.give(ctx, &change, queue)
		case errors.Is(err, kinf.ErrLapsed):
			logger.Info("All objects come again, and deletions may be missing", "reason", err.Error())
			s.renumber()
		case !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			logger.Error(err, "Changes can't be read")
		}
		if time.Since(committed) >= commitPeriod {
			s.commit(logger, changes)
			committed = time.Now()
		}
	}
	s.commit(logger, changes)
	if err := changes.Close(); err != nil {
		logger.Error(err, "The cursor can't be closed")
	}
}

func (s *Source) commit(logger logr.Logger, changes *informers.Changes) {
	number, found := s.oldest()
	var err error
	switch {
	case !found:
		err = changes.Commit()
	case number > 0:
		err = changes.CommitBefore(number)
	}
	if err != nil && !errors.Is(err, kinf.ErrNotYet) {
		logger.Error(err, "The cursor can't be written")
	}
}

// give calls the handler.
func (s *Source) give(ctx context.Context, c *informers.Change, queue *observedQueue) {
	queue.number = c.Number
	if c.Initial {
		queue.number = 0
	}
	before, _ := c.Old.(client.Object)
	object, _ := c.New.(client.Object)
	switch {
	case c.Type == kinf.Synced:
		select {
		case <-s.synced: // again, after a lapse
		default:
			close(s.synced)
		}
	case before == nil:
		e := event.CreateEvent{Object: object, IsInInitialList: c.Initial}
		if s.pass(func(p predicate.Predicate) bool { return p.Create(e) }) {
			s.handler.Create(ctx, e, queue)
		}
	case object == nil:
		e := event.DeleteEvent{Object: before, DeleteStateUnknown: c.Unknown}
		if s.pass(func(p predicate.Predicate) bool { return p.Delete(e) }) {
			s.handler.Delete(ctx, e, queue)
		}
	default:
		e := event.UpdateEvent{ObjectOld: before, ObjectNew: object}
		if s.pass(func(p predicate.Predicate) bool { return p.Update(e) }) {
			s.handler.Update(ctx, e, queue)
		}
	}
}

func (s *Source) pass(accepts func(predicate.Predicate) bool) bool {
	for _, p := range s.predicates {
		if !accepts(p) {
			return false
		}
	}
	return true
}
