// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime gives controller-runtime a cache on the machine's store, by one line:
//
//	ctrl.NewManager(config, ctrl.Options{NewCache: kinf.NewCache(kinf.Options{})})
package controllerruntime

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	goruntime "runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"kinf"
	"kinf/informers"
)

// Options of the cache; the zero value has none.
type Options struct {
	Store   string // its directory; "": kinf.DefaultStore
	Require bool   // it is an error if there is no store, or if no feed covers what is watched
	// Objects that were used last are kept decoded, and reads copy them. Their records have at most so
	// many bytes, their memory some three times as much. 0: DefaultCacheBytes, negative: none are kept.
	CacheBytes int
}

// DefaultCacheBytes is what a cache keeps.
const DefaultCacheBytes = 2 << 20

// NewCache returns a function for ctrl.Options.NewCache. Its informers read the machine's store. What
// no feed of it covers, or all if there is no store, is watched as without it, with a line in the log.
func NewCache(options Options) cache.NewCacheFunc {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		store, err := kinf.Open(options.Store, nil)
		if err != nil && options.Require {
			return nil, err
		}
		if err != nil {
			log.Log.WithName("kinf").Info("There is no store: informers watch the API server", "reason", err.Error())
			return cache.New(config, o)
		}
		m, err := newMaker(store, options, config, &o)
		if err != nil {
			store.Close()
			return nil, err
		}
		o.NewInformer = m.informer
		c, err := cache.New(config, o)
		if err != nil {
			store.Close()
			return nil, err
		}
		return selecting{c, m}, nil
	}
}

// maker makes a cache's informers.
type maker struct {
	store   *kinf.Store
	require bool
	scheme  *runtime.Scheme
	capture *informers.Capture
	cluster *informers.ClusterCheck
	theirs  func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
	objects *informers.ObjectCache
	shares  bool // the user wants the objects of all informers uncopied
	copies  bool // controller-runtime does not copy what is read

	mu   sync.Mutex
	made map[made][]informerOf
}

// newMaker changes options of the cache: its client tells the scope of each informer, and what is read
// is not copied again.
func newMaker(store *kinf.Store, options Options, config *rest.Config, o *cache.Options) (*maker, error) {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.HTTPClient == nil {
		own := rest.CopyConfig(config)
		if own.UserAgent == "" {
			own.UserAgent = rest.DefaultKubernetesUserAgent()
		}
		client, err := rest.HTTPClientFor(own)
		if err != nil {
			return nil, fmt.Errorf("could not create HTTP client from config: %w", err)
		}
		o.HTTPClient = client
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	metadata, err := metadata.NewForConfigAndClient(config, o.HTTPClient)
	if err != nil {
		return nil, err
	}
	cluster := informers.NewClusterCheck(store, func(ctx context.Context, name string) (metav1.Object, error) {
		return metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	})
	capture := &informers.Capture{Next: o.HTTPClient.Transport, Prefix: prefix(host)}
	if capture.Next == nil {
		capture.Next = http.DefaultTransport
	}
	client := *o.HTTPClient
	client.Transport = capture
	o.HTTPClient = &client
	m := &maker{store: store, require: options.Require, objects: informers.NewObjectCache(cmp.Or(options.CacheBytes, DefaultCacheBytes)),
		scheme: o.Scheme, capture: capture, cluster: cluster, theirs: o.NewInformer, made: map[made][]informerOf{}}
	if m.theirs == nil {
		m.theirs = toolscache.NewSharedIndexInformer
	}
	if o.DefaultUnsafeDisableDeepCopy == nil {
		yes := true
		o.DefaultUnsafeDisableDeepCopy = &yes
		m.copies = true
	} else {
		m.shares = *o.DefaultUnsafeDisableDeepCopy && !hasCopies(o)
	}
	return m, nil
}

// hasCopies tells whether the user wants the objects of some informer copied.
func hasCopies(o *cache.Options) bool {
	within := func(namespaces map[string]cache.Config) bool {
		for _, config := range namespaces {
			if config.UnsafeDisableDeepCopy != nil && !*config.UnsafeDisableDeepCopy {
				return true
			}
		}
		return false
	}
	for _, by := range o.ByObject {
		if by.UnsafeDisableDeepCopy != nil && !*by.UnsafeDisableDeepCopy || within(by.Namespaces) {
			return true
		}
	}
	return within(o.DefaultNamespaces)
}

func prefix(host *url.URL) string {
	if host == nil {
		return ""
	}
	return host.Path
}

func (m *maker) informer(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer, err := m.ours(lw, object, resync, indexers)
	if err == nil {
		return informer
	}
	theirs := m.theirs(lw, object, resync, indexers)
	if m.require {
		return refused{theirs, err}
	}
	log.Log.WithName("kinf").Info("An informer watches the API server", "type", fmt.Sprintf("%T", object), "reason", err.Error())
	if m.shares {
		return theirs
	}
	kind, _ := apiutil.GVKForObject(object, m.scheme) // empty: as decoded
	return copying{theirs, kind}
}

func (m *maker) ours(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) (
	toolscache.SharedIndexInformer, error) {
	if err := m.cluster.Err(); err != nil {
		return nil, err
	}
	scope, err := m.capture.Scope(lw)
	if err != nil {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(object, m.scheme)
	if err != nil {
		return nil, err
	}
	informer, err := informers.New(m.store, scope, object, informers.Options{Resync: resync, Indexers: indexers, Kind: kind,
		Objects: m.objects, Copies: m.copies, Strips: stripsManagedFields})
	if err == nil {
		m.note(made{kind, formOf(object)}, scope.Namespace, informer)
	}
	return informer, err
}

// stripsManagedFields tells whether a transform is controller-runtime's TransformStripManagedFields. Its
// function is found by its place in the source: where it is inlined there is a copy.
func stripsManagedFields(transform toolscache.TransformFunc) bool {
	return placeOf(transform) == placeOf(cache.TransformStripManagedFields())
}

func placeOf(transform toolscache.TransformFunc) string {
	code := goruntime.FuncForPC(reflect.ValueOf(transform).Pointer())
	file, line := code.FileLine(code.Entry())
	return fmt.Sprint(file, line)
}

// refused is the informer of a scope that no feed covers, if that is an error: controller-runtime takes
// errors of SetTransform only.
type refused struct {
	toolscache.SharedIndexInformer
	err error
}

func (r refused) SetTransform(toolscache.TransformFunc) error { return r.err }
