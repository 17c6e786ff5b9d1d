// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kinf"
	"kinf/informers"
)

// Generated is a SharedInformerFactory that informer-gen has made, such as one of custom resources. C
// is its clientset, F its NewInformerFunc.
type Generated[C any, F ~func(C, time.Duration) cache.SharedIndexInformer] interface {
	InformerFor(runtime.Object, F) cache.SharedIndexInformer
}

// Use puts informers on the store into a generated factory, one for the type of each example, whose
// kind the scheme knows. A factory keeps the first informer of a type, so it comes right after the
// factory was made. Transform is the factory's own; the other options have to be those of the factory.
// Types that no feed covers, and all of them if the store is nil, stay with client-go's informers, or
// are an error if options.Require.
func Use[C any, F ~func(C, time.Duration) cache.SharedIndexInformer](
	store *kinf.Store, generated Generated[C, F], scheme *runtime.Scheme, options Options, examples ...runtime.Object,
) error {
	objects := informers.NewObjectCache(cmp.Or(options.CacheBytes, DefaultCacheBytes))
	for _, example := range examples {
		kinds, _, err := scheme.ObjectKinds(example)
		if err != nil {
			return err
		}
		informer, err := ofKind(store, kinds[0], example, options, objects)
		switch {
		case err == nil:
			generated.InformerFor(example, func(C, time.Duration) cache.SharedIndexInformer { return informer })
		case options.Require:
			return err
		default:
			klog.Background().Info("client-go's own informer watches", "type", kinds[0], "reason", err)
		}
	}
	return nil
}

// ofKind makes an informer of all objects of a kind that the options select.
func ofKind(
	store *kinf.Store, kind schema.GroupVersionKind, example runtime.Object, options Options, objects *informers.ObjectCache,
) (*informers.Informer, error) {
	if store == nil {
		return nil, kinf.ErrNoStore
	}
	all, err := informers.ScopeOfKind(store, kind)
	if err != nil {
		return nil, err
	}
	scope, err := informers.ScopeFor(all.Resource, options.Namespace, options.Tweak)
	if err != nil {
		return nil, err
	}
	return informers.New(store, scope, example,
		informers.Options{Resync: options.Resync, Indexers: byNamespace, Objects: objects})
}
