// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kinf/informers"
)

// Path returns an IndexerFunc of a field path, as in the indexes of kinf.yaml:
//
//	m.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", kinf.Path("spec.nodeName"))
//
// If the store has an index of the path, a List by it is answered there, and the program keeps none. It
// works with each cache. A path that can't be parsed panics.
func Path(path string) client.IndexerFunc {
	values, err := informers.PathValues(path)
	if err != nil {
		panic(err)
	}
	return func(object client.Object) []string { return values(object) }
}

// selecting is controller-runtime's cache, but for two kinds of reads of what one of our informers has:
// lists by labels, which are compared before objects are decoded, and reads with UnsafeDisableDeepCopy,
// of which an informer is not told.
type selecting struct {
	cache.Cache
	maker *maker
}

// NeedLeaderElection says that the cache also runs in a program that waits to lead.
func (selecting) NeedLeaderElection() bool { return false }

// Start runs the informers. Reads after its end open the store's files again.
func (c selecting) Start(ctx context.Context) error {
	defer c.maker.store.Release()
	return c.Cache.Start(ctx)
}

func isSet(option *bool) bool { return option != nil && *option }

func (c selecting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	o := client.GetOptions{}
	o.ApplyOptions(options)
	if !isSet(o.UnsafeDisableDeepCopy) {
		return c.Cache.Get(ctx, key, object, options...)
	}
	informer := c.maker.find(object, key.Namespace)
	if informer == nil { // the first read makes it
		err := c.Cache.Get(ctx, key, object, options...)
		if informer = c.maker.find(object, key.Namespace); err != nil || informer == nil {
			return err
		}
	}
	item, exists, err := informer.GetShared(strings.TrimPrefix(key.String(), "/"))
	if err != nil || !exists || reflect.TypeOf(item) != reflect.TypeOf(object) {
		return c.Cache.Get(ctx, key, object, options...) // with the errors of controller-runtime
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(item).Elem())
	return nil
}

func (c selecting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	s := informers.Selection{Namespace: o.Namespace, Labels: o.LabelSelector,
		Shared: c.maker.shares || isSet(o.UnsafeDisableDeepCopy)}
	byLabels := o.LabelSelector != nil && !o.LabelSelector.Empty()
	if o.Continue != "" || !byLabels && !isSet(o.UnsafeDisableDeepCopy) || !byField(&s, &o) {
		return c.Cache.List(ctx, list, options...)
	}
	informer := c.maker.find(list, o.Namespace)
	if informer == nil {
		return c.Cache.List(ctx, list, options...)
	}
	items, answered, err := informer.Select(s)
	if err != nil || !answered {
		return c.Cache.List(ctx, list, options...) // with the errors of controller-runtime
	}
	if o.Limit > 0 && int64(len(items)) > o.Limit {
		items = items[:o.Limit]
	}
	objects := make([]runtime.Object, len(items))
	for i, item := range items {
		objects[i] = item.(runtime.Object)
	}
	list.SetContinue("continue-not-supported")
	return meta.SetList(list, objects)
}

// byField puts the field selector into a selection; false: it has more than one value.
func byField(s *informers.Selection, o *client.ListOptions) bool {
	if o.FieldSelector == nil {
		return true
	}
	wanted := o.FieldSelector.Requirements()
	if len(wanted) != 1 || wanted[0].Operator != selection.Equals && wanted[0].Operator != selection.DoubleEquals {
		return false
	}
	namespace := o.Namespace
	if namespace == "" {
		namespace = "__all_namespaces"
	}
	s.Index, s.Value = "field:"+wanted[0].Field, namespace+"/"+wanted[0].Value // as controller-runtime does
	return true
}

// made is what an informer was made for.
type made struct {
	kind schema.GroupVersionKind
	form form
}

// form is how objects are decoded: controller-runtime has an informer for each.
type form int

const (
	formTyped form = iota
	formUnstructured
	formMetadata
)

func formOf(object any) form {
	switch object.(type) {
	case runtime.Unstructured:
		return formUnstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return formMetadata
	}
	return formTyped
}

// note keeps an informer for reads.
func (m *maker) note(of made, namespace string, informer *informers.Informer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made[of] = append(slices.DeleteFunc(m.made[of], func(i informerOf) bool { return i.IsStopped() }), informerOf{informer, namespace})
}

// informerOf is an informer of a namespace; "": of all.
type informerOf struct {
	*informers.Informer
	namespace string
}

// find returns the informer of an object, or of a list's objects, in a namespace; nil: there is not
// exactly one, or it does not run.
func (m *maker) find(object runtime.Object, namespace string) *informers.Informer {
	found := m.only(object, namespace)
	if found == nil || !found.HasSynced() || found.IsStopped() {
		return nil
	}
	return found
}

// only returns the one informer that was made for the objects of a namespace. Beside others, one of all
// namespaces does not have theirs.
func (m *maker) only(object runtime.Object, namespace string) (found *informers.Informer) {
	kind, err := apiutil.GVKForObject(object, m.scheme)
	if err != nil {
		return nil
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.made[made{kind, formOf(object)}]
	if len(all) == 1 && all[0].namespace == "" {
		return all[0].Informer
	}
	for _, i := range all {
		if namespace == "" || i.namespace != namespace {
			continue
		}
		if found != nil {
			return nil
		}
		found = i.Informer
	}
	return found
}
