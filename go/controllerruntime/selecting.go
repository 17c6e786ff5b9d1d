// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
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

// selecting is controller-runtime's cache, but for lists by labels of what one of our informers has: the
// labels are compared before objects are decoded.
type selecting struct {
	cache.Cache
	maker *maker
}

// NeedLeaderElection says that the cache also runs in a program that waits to lead.
func (selecting) NeedLeaderElection() bool { return false }

func (c selecting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	s := informers.Selection{Namespace: o.Namespace, Labels: o.LabelSelector}
	if o.Continue != "" || o.LabelSelector == nil || o.LabelSelector.Empty() || !byField(&s, &o) {
		return c.Cache.List(ctx, list, options...)
	}
	informer := c.maker.find(list)
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

// note keeps an informer for lists.
func (m *maker) note(of made, namespace string, informer *informers.Informer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if namespace != "" {
		informer = nil // one of several
	}
	m.made[of] = append(slices.DeleteFunc(m.made[of], func(i *informers.Informer) bool { return i != nil && i.IsStopped() }), informer)
}

// find returns the informer of a list's objects; nil: there is not exactly one.
func (m *maker) find(list client.ObjectList) *informers.Informer {
	kind, err := apiutil.GVKForObject(list, m.scheme)
	if err != nil {
		return nil
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.made[made{kind, formOf(list)}]; len(all) == 1 {
		return all[0]
	}
	return nil
}
