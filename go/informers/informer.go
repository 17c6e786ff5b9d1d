// SPDX-License-Identifier: Apache-2.0

// Package informers gives client-go's informers on the machine's cache. An Informer is a
// cache.SharedIndexInformer: its handlers get the same calls, and its Indexer reads the store, so that
// the process keeps no object.
package informers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kinf"
)

const (
	backoffLeast = 10 * time.Millisecond // between tries to read a store that can't be read
	backoffMost  = 2 * time.Second
	resyncLeast  = time.Second // as in client-go
	statePeriod  = 5 * time.Second
	readableMost = 10 * time.Second // a store is waited for
)

var readableAfter = readableMost

// Informer is a cache.SharedIndexInformer on a store.
type Informer struct {
	store   *kinf.Store
	scope   Scope
	decoder *decoder
	indexes *indexes
	objects *ObjectCache  // nil: each read gives objects of its own
	copies  bool          // so does each with a cache
	wasRead atomic.Bool   // else nothing is kept for reads
	resync  time.Duration // of handlers that name none
	strips  func(cache.TransformFunc) bool
	synced  chan struct{}

	reading   sync.Mutex // guards the next three
	journal   [16]byte
	epoch     int
	feed      string
	mu        sync.Mutex
	at        position      // handlers have been told of, or will be
	shown     position      // the newest that a handler was called for
	check     time.Duration // between checks for resyncs
	listeners map[*listener]struct{}
	running   sync.WaitGroup
	started   bool
	listed    bool
	stopped   bool
	watched   cache.WatchErrorHandlerWithContext
}

var _ cache.SharedIndexInformer = &Informer{}

// Options of an informer.
type Options struct {
	Resync   time.Duration // of handlers that name no period; 0: none
	Indexers cache.Indexers
	Objects  *ObjectCache            // decoded objects, which reads and handlers share; nil: each gets its own
	Copies   bool                    // reads get copies of what is shared
	Kind     schema.GroupVersionKind // what is read has this kind, also if it is typed; empty: as client-go's
	// Strips tells of a transform that it removes managedFields, and does nothing else; nil: of none. Nothing
	// is selected by these, so the store's indexes answer beside it.
	Strips func(cache.TransformFunc) bool
}

// New makes an informer of a scope. Its objects are of the type of example. An error says
// ErrNotCovered if no feed of the store holds the scope, or the one that does can't be listed.
func New(store *kinf.Store, scope Scope, example runtime.Object, options Options) (*Informer, error) {
	d, err := newDecoder(example)
	if err != nil {
		return nil, err
	}
	scope.Metadata = scope.Metadata || d.isMetadata()
	if err := scope.parse(); err != nil {
		return nil, err
	}
	i := &Informer{store: store, scope: scope, decoder: d, objects: options.Objects, copies: options.Copies, resync: options.Resync, check: options.Resync, strips: options.Strips,
		synced: make(chan struct{}), listeners: map[*listener]struct{}{}}
	i.indexes = newIndexes(i)
	if err := i.indexes.add(options.Indexers); err != nil {
		return nil, err
	}
	listed := false
	err = store.View(func(s *kinf.Snapshot) error {
		f, err := scope.find(s)
		if err != nil {
			return err
		}
		i.feed, listed = f.Name, f.Synced()
		if options.Kind.Empty() && d.typed == nil {
			options.Kind = schema.GroupVersionKind{Group: f.Group, Version: f.Version, Kind: f.Kind}
		}
		d.kind, d.keepKind = options.Kind, !options.Kind.Empty()
		return nil
	})
	if err == nil && !listed {
		if now := i.state(); now.State == kinf.StateForbidden || now.State == kinf.StateGone {
			err = fmt.Errorf("%s: %w (feed '%s' is %s: %s)", &scope, ErrNotCovered, now.Name, now.State, now.Reason)
		}
	}
	return i, err
}

// epochOf numbers the journals, as they are seen.
func (i *Informer) epochOf(journal [16]byte) int {
	i.reading.Lock()
	defer i.reading.Unlock()
	if journal != i.journal {
		i.journal = journal
		i.epoch++
	}
	return i.epoch
}

// locate finds the informer's feed in a snapshot, and the snapshot's position.
func (i *Informer) locate(s *kinf.Snapshot) (*kinf.Feed, position, error) {
	epoch := i.epochOf(s.Journal())
	i.reading.Lock()
	defer i.reading.Unlock()
	feeds, err := s.Feeds(i.feed)
	var found *kinf.Feed
	for n := range feeds {
		if f := &feeds[n]; f.Namespace == "" || f.Namespace == i.scope.Namespace {
			found = f
		}
	}
	if found == nil || i.scope.misses(found) != "" {
		if err != nil && !errors.Is(err, kinf.ErrNoFeed) {
			return nil, position{}, err
		}
		if found, err = i.scope.find(s); err != nil {
			return nil, position{}, err
		}
		i.feed = found.Name
	}
	if !found.Synced() {
		return nil, position{}, fmt.Errorf("feed '%s': %w", found.Name, kinf.ErrNotYet)
	}
	return found, position{epoch, found.Event}, nil
}

// view calls fn with a snapshot of the newest state.
func (i *Informer) view(fn func(*kinf.Snapshot, *kinf.Feed, position) error) error {
	return i.store.View(func(s *kinf.Snapshot) error {
		f, now, err := i.locate(s)
		if err != nil {
			return err
		}
		if i.objects != nil {
			s.Keep(func(event uint64) *kinf.Object { return i.objects.stored(i, position{now.epoch, event}) })
		}
		return fn(s, f, now)
	})
}

var errBehind = errors.New("the store is behind what handlers were told")

// patience tells whether a read that fails is tried again, after it has waited for some time.
type patience func(waited time.Duration) bool

func aWhile(waited time.Duration) bool { return waited < readableAfter }
func forever(time.Duration) bool       { return true }

// read calls fn with a snapshot that shows all that handlers were called for. It waits for the store
// as long as patient.
func (i *Informer) read(patient patience, fn func(*kinf.Snapshot, *kinf.Feed, position) error) error {
	i.mu.Lock()
	least := i.shown
	i.mu.Unlock()
	return i.retry(patient, func() error {
		return i.view(func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
			if now.before(least) {
				return errBehind
			}
			return fn(s, f, now)
		})
	})
}

// retry calls a function that reads until it succeeds.
func (i *Informer) retry(patient patience, try func() error) error {
	began := time.Now()
	for pause, warned := 50*time.Microsecond, false; ; pause = min(2*pause, backoffMost/10) {
		err := try()
		waited := time.Since(began)
		if errors.Is(err, kinf.ErrSyntax) || errors.Is(err, errRefused) {
			waited = max(waited, readableAfter) // it would be in vain
		}
		if err == nil || !patient(waited) || errors.Is(err, kinf.ErrNotYet) && !i.HasSynced() {
			return err
		}
		if !aWhile(waited) && !warned {
			warned = true
			klog.Background().Error(err, "Reading the store waits", "scope", i.scope.String(), "store", i.store.Path())
		}
		time.Sleep(pause)
	}
}

// show notes that a handler is about to see the store at a position.
func (i *Informer) show(at position) {
	i.mu.Lock()
	if i.shown.before(at) {
		i.shown = at
	}
	i.mu.Unlock()
}

// ---- running ----------------------------------------------------------------------

func (i *Informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

func (i *Informer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	i.mu.Lock()
	if i.started {
		i.mu.Unlock()
		klog.FromContext(ctx).Info("Warning: the informer has started, run more than once is not allowed")
		return
	}
	i.started = true
	watched := i.watched
	for l := range i.listeners {
		i.running.Go(l.run)
	}
	check := i.check
	i.mu.Unlock()
	if watched == nil {
		watched = cache.DefaultWatchErrorHandler
	}
	if check > 0 {
		i.running.Go(func() { i.resyncs(ctx, check) })
	}
	idle := cache.NewReflectorWithOptions(&cache.ListWatch{}, i.decoder.example, cache.NewStore(cache.MetaNamespaceKeyFunc),
		cache.ReflectorOptions{Name: i.store.Path() + " " + i.scope.String()})
	var failing sync.Mutex
	failed := func(err error) { // called by two goroutines; client-go's reflector is one
		failing.Lock()
		defer failing.Unlock()
		watched(ctx, idle, err) // the handler reads fields of a Reflector
	}
	i.running.Go(func() { i.states(ctx, failed) })
	i.follow(ctx, failed)

	i.mu.Lock()
	i.stopped = true
	for l := range i.listeners {
		l.close()
	}
	clear(i.listeners)
	i.mu.Unlock()
	i.running.Wait()
	i.objects.forget(i)
}

// follow tells the listeners what happens, until the context ends.
func (i *Informer) follow(ctx context.Context, failed func(error)) {
	changes := &source{informer: i}
	defer changes.stop()
	pause := backoffLeast
	for ctx.Err() == nil {
		err := i.step(ctx, changes)
		if err == nil {
			pause = backoffLeast
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, kinf.ErrNotYet) && !errors.Is(err, kinf.ErrExpired) {
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, backoffMost)
	}
}

// states tells when the feed is not current any more, once for each state that it gets.
func (i *Informer) states(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(statePeriod)
	defer ticker.Stop()
	for before := kinf.StateLive; ; {
		if now := i.state(); now.State != before {
			before = now.State
			if before != kinf.StateLive && before != kinf.StateListing {
				failed(fmt.Errorf("feed '%s' is %s: %s", now.Name, now.State, now.Reason))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// state returns the state of the feed. A store that can't be read is told of by follow.
func (i *Informer) state() kinf.FeedStatus {
	i.reading.Lock()
	feed := i.feed
	i.reading.Unlock()
	statuses, err := i.store.Status(feed)
	for n := range statuses {
		if f := &statuses[n]; err == nil && (f.Namespace == "" || f.Namespace == i.scope.Namespace) {
			return *f
		}
	}
	return kinf.FeedStatus{State: kinf.StateLive}
}

// step starts the source, then hands on one event of it. Handlers list what was there at the start.
func (i *Informer) step(ctx context.Context, changes *source) error {
	if !i.HasSynced() {
		at, err := changes.start(ctx)
		if err != nil {
			return err
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.at, i.listed = at, true
		for l := range i.listeners {
			l.add(note{list: true, from: at})
		}
		close(i.synced)
		return nil
	}
	batch, at, err := changes.next(ctx)
	if err == nil && len(batch) > 0 {
		i.distribute(batch, at)
	}
	return err
}

// distribute hands changes to the listeners.
func (i *Informer) distribute(batch []change, at position) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.at = at
	for n := range batch {
		i.indexes.change(&batch[n])
		d := &delivery{change: &batch[n]}
		for l := range i.listeners {
			l.add(note{delivery: d})
		}
	}
}

func (i *Informer) resyncs(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			i.mu.Lock()
			for l := range i.listeners {
				if i.listed && l.isDue(now) {
					l.add(note{resync: true})
				}
			}
			i.mu.Unlock()
		}
	}
}

// ---- handlers ---------------------------------------------------------------------

func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, period time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &period})
}

func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (
	cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
	}
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	period := i.resync
	if options.ResyncPeriod != nil {
		period = *options.ResyncPeriod
	}
	l := newListener(i, handler, logger)
	l.period = i.resyncPeriod(logger, period)
	l.due = time.Now().Add(l.period)
	i.listeners[l] = struct{}{}
	if i.listed {
		l.add(note{list: true, from: i.at})
	}
	if i.started {
		i.running.Go(l.run)
	}
	return l, nil
}

// resyncPeriod applies client-go's limits to a period. The caller holds i.mu.
func (i *Informer) resyncPeriod(logger klog.Logger, period time.Duration) time.Duration {
	if period <= 0 {
		return 0
	}
	if period < resyncLeast {
		logger.Info("Warning: resync period is too small. Changing it to the minimum allowed value", "resyncPeriod", period,
			"minimumResyncPeriod", resyncLeast)
		period = resyncLeast
	}
	switch {
	case i.check == 0:
		logger.Info("Warning: the specified resyncPeriod is invalid because this shared informer doesn't support resyncing",
			"desired", period)
		return 0
	case period >= i.check:
	case i.started:
		logger.Info("Warning: resync period is smaller than resync check period and the informer has already started. "+
			"Changing it to the resync check period", "resyncPeriod", period, "resyncCheckPeriod", i.check)
		period = i.check
	default:
		i.check = period
	}
	return period
}

func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	l, ok := handle.(*listener)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.listeners[l]; ok {
		delete(i.listeners, l)
		l.close()
		if !i.started {
			close(l.finished)
		}
	}
	return nil
}

// ---- the rest of the interface ------------------------------------------------------

func (i *Informer) GetStore() cache.Store     { return i.indexes }
func (i *Informer) GetIndexer() cache.Indexer { return i.indexes }

func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if i.IsStopped() {
		return fmt.Errorf("indexer was not added because it has stopped already")
	}
	return i.indexes.AddIndexers(indexers)
}

func (i *Informer) HasSynced() bool { return cache.IsDone(informerSynced{i}) }

func (i *Informer) HasSyncedChecker() cache.DoneChecker { return informerSynced{i} }

type informerSynced struct{ informer *Informer }

func (s informerSynced) Name() string {
	return fmt.Sprintf("SharedIndexInformer %T", s.informer.decoder.example)
}
func (s informerSynced) Done() <-chan struct{} { return s.informer.synced }

// LastSyncResourceVersion returns the version that the store shows.
func (i *Informer) LastSyncResourceVersion() (version string) {
	if i.HasSynced() {
		_ = i.view(func(_ *kinf.Snapshot, f *kinf.Feed, _ position) error { // "" while it can't be read
			version = f.ResourceVersion
			return nil
		})
	}
	return version
}

func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

var errStarted = errors.New("informer has already started")

func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return errStarted
	}
	i.watched = handler
	return nil
}

// SetTransform sets what each object passes before it is given out: at each event and at each read, so
// it has to be a pure function.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return errStarted
	}
	i.decoder.transform, i.decoder.strip = transform, false
	if transform != nil && i.strips != nil && i.strips(transform) {
		i.decoder.transform, i.decoder.strip = nil, true
	}
	return nil
}

// GetController returns what code of the time before informers were shared expects.
func (i *Informer) GetController() cache.Controller { return controller{i} }

type controller struct{ *Informer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}
