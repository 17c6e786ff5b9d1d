// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/tools/cache"

	"kinf"
	"kinf/informers"
)

// byResource is a factory of informers that are named by their resource.
type byResource struct {
	factory[schema.GroupVersionResource]
	example func() runtime.Object
	theirs  func(schema.GroupVersionResource) clientinformers.GenericInformer
	lister  func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

var byNamespace = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// NewDynamic makes a dynamic factory. The store may be nil: then client-go's informers watch.
func NewDynamic(store *kinf.Store, client dynamic.Interface, options Options) dynamicinformer.DynamicSharedInformerFactory {
	cluster := informers.NewClusterCheck(store, func(ctx context.Context, name string) (metav1.Object, error) {
		return client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	})
	return &byResource{newFactory[schema.GroupVersionResource](store, options, cluster),
		func() runtime.Object { return &unstructured.Unstructured{} },
		func(resource schema.GroupVersionResource) clientinformers.GenericInformer {
			return dynamicinformer.NewFilteredDynamicInformer(client, resource, options.Namespace, options.Resync, byNamespace,
				options.Tweak)
		},
		func(indexer cache.Indexer, resource schema.GroupVersionResource) cache.GenericLister {
			return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(indexer, resource))
		}}
}

// NewMetadata makes a factory of metadata informers. The store may be nil, as above.
func NewMetadata(store *kinf.Store, client metadata.Interface, options Options) metadatainformer.SharedInformerFactory {
	cluster := informers.NewClusterCheck(store, func(ctx context.Context, name string) (metav1.Object, error) {
		return client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	})
	return &byResource{newFactory[schema.GroupVersionResource](store, options, cluster),
		func() runtime.Object { return &metav1.PartialObjectMetadata{} },
		func(resource schema.GroupVersionResource) clientinformers.GenericInformer {
			return metadatainformer.NewFilteredMetadataInformer(client, resource, options.Namespace, options.Resync, byNamespace,
				options.Tweak)
		},
		func(indexer cache.Indexer, resource schema.GroupVersionResource) cache.GenericLister {
			return metadatalister.NewRuntimeObjectShim(metadatalister.New(indexer, resource))
		}}
}

func (f *byResource) ForResource(resource schema.GroupVersionResource) clientinformers.GenericInformer {
	informer := f.informer(resource, func() (cache.SharedIndexInformer, error) {
		scope, err := informers.ScopeFor(resource, f.options.Namespace, f.options.Tweak)
		if err != nil {
			return nil, err
		}
		return informers.New(f.store, scope, f.example(), f.ours(byNamespace))
	}, func() (cache.SharedIndexInformer, error) { return f.theirs(resource).Informer(), nil })
	return generic{informer, f.lister(informer.GetIndexer(), resource)}
}

// generic is an informer with its lister.
type generic struct {
	informer cache.SharedIndexInformer
	lister   cache.GenericLister
}

func (g generic) Informer() cache.SharedIndexInformer { return g.informer }
func (g generic) Lister() cache.GenericLister         { return g.lister }

func (f *byResource) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

func (f *byResource) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	return f.wait(wait.ContextForChannel(stop))
}
