// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// copying is client-go's informer in a cache that does not copy what is read: its reads are copied here.
type copying struct {
	toolscache.SharedIndexInformer
	kind schema.GroupVersionKind
}

func (c copying) GetStore() toolscache.Store { return c.GetIndexer() }

func (c copying) GetIndexer() toolscache.Indexer {
	return copyingIndexer{c.SharedIndexInformer.GetIndexer(), c.kind}
}

type copyingIndexer struct {
	toolscache.Indexer
	kind schema.GroupVersionKind
}

func (c copyingIndexer) copy(item any) any {
	object, ok := item.(runtime.Object)
	if !ok {
		return item
	}
	object = object.DeepCopyObject()
	if !c.kind.Empty() {
		object.GetObjectKind().SetGroupVersionKind(c.kind)
	}
	return object
}

func (c copyingIndexer) all(items []any, err error) ([]any, error) {
	copies := make([]any, len(items))
	for i, item := range items {
		copies[i] = c.copy(item)
	}
	return copies, err
}

func (c copyingIndexer) List() []any {
	copies, _ := c.all(c.Indexer.List(), nil)
	return copies
}

func (c copyingIndexer) Index(name string, object any) ([]any, error) {
	return c.all(c.Indexer.Index(name, object))
}

func (c copyingIndexer) ByIndex(name, value string) ([]any, error) {
	return c.all(c.Indexer.ByIndex(name, value))
}

func (c copyingIndexer) Get(object any) (any, bool, error) {
	item, exists, err := c.Indexer.Get(object)
	return c.copy(item), exists, err
}

func (c copyingIndexer) GetByKey(key string) (any, bool, error) {
	item, exists, err := c.Indexer.GetByKey(key)
	return c.copy(item), exists, err
}
