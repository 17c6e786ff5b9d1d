// SPDX-License-Identifier: Apache-2.0

// Package factory gives client-go's informer factories on the machine's cache: typed listers and
// informers of the generated groups, dynamic and metadata informers. What no feed covers is watched by
// client-go's own informers.
package factory

import (
	"cmp"
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kinf"
	"kinf/informers"
)

// Options of a factory; the zero value has none.
type Options struct {
	Resync    time.Duration // of handlers that name no period
	Namespace string        // "": all
	Tweak     func(*metav1.ListOptions)
	Transform cache.TransformFunc // pure: it runs at each read and event
	Require   bool                // what no feed covers gives a panic instead of client-go's informer
	// Decoded objects are kept for listers and handlers, which share them, as long as their records have
	// no more bytes than this; 0: DefaultCacheBytes, negative: none are kept.
	CacheBytes int
}

// DefaultCacheBytes is what a factory keeps.
const DefaultCacheBytes = 4 << 20

// factory is what the factories have in common.
type factory[K comparable] struct {
	store     *kinf.Store // nil: there is none
	options   Options
	objects   *informers.ObjectCache
	cluster   *informers.ClusterCheck
	mu        sync.Mutex
	informers map[K]cache.SharedIndexInformer
	started   map[K]bool
	stopping  bool
	running   sync.WaitGroup
}

func newFactory[K comparable](store *kinf.Store, options Options, cluster *informers.ClusterCheck) factory[K] {
	objects := informers.NewObjectCache(cmp.Or(options.CacheBytes, DefaultCacheBytes))
	return factory[K]{store: store, options: options, objects: objects, cluster: cluster,
		informers: map[K]cache.SharedIndexInformer{}, started: map[K]bool{}}
}

// ours are the options of an informer on the store.
func (f *factory[K]) ours(indexers cache.Indexers) informers.Options {
	return informers.Options{Resync: f.options.Resync, Indexers: indexers, Objects: f.objects}
}

// informer returns the one of a key, made by ours, else by theirs.
func (f *factory[K]) informer(key K, ours, theirs func() (cache.SharedIndexInformer, error)) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if informer := f.informers[key]; informer != nil {
		return informer
	}
	informer, err := cache.SharedIndexInformer(nil), kinf.ErrNoStore
	if f.store != nil {
		if err = f.cluster.Err(); err == nil {
			informer, err = ours()
		}
	}
	if err != nil {
		if f.options.Require {
			panic(err)
		}
		klog.Background().Info("client-go's own informer watches", "type", key, "reason", err)
		informer, _ = theirs()
	}
	if f.options.Transform != nil {
		_ = informer.SetTransform(f.options.Transform) // fails after its start only
	}
	f.informers[key] = informer
	return informer
}

func (f *factory[K]) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping {
		return
	}
	for key, informer := range f.informers {
		if !f.started[key] {
			f.started[key] = true
			f.running.Go(func() { informer.RunWithContext(ctx) })
		}
	}
}

func (f *factory[K]) Shutdown() {
	f.mu.Lock()
	f.stopping = true
	f.mu.Unlock()
	f.running.Wait()
}

// wait waits until all started informers have synced.
func (f *factory[K]) wait(ctx context.Context) map[K]bool {
	f.mu.Lock()
	started := map[K]cache.SharedIndexInformer{}
	for key := range f.started {
		started[key] = f.informers[key]
	}
	f.mu.Unlock()
	synced := map[K]bool{}
	for key, informer := range started {
		synced[key] = cache.WaitFor(ctx, "", informer.HasSyncedChecker())
	}
	return synced
}
