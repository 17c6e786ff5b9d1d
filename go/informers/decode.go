// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

// decoder makes the objects that an informer gives out, each a new one.
type decoder struct {
	example   runtime.Object
	typed     reflect.Type // nil: unstructured
	kind      schema.GroupVersionKind
	keepKind  bool // a typed object that is read has its kind, which client-go's decoders clear
	transform cache.TransformFunc
	strip     bool // managedFields are left out
}

func newDecoder(example runtime.Object) (*decoder, error) {
	d := &decoder{example: example}
	if _, ok := example.(runtime.Unstructured); ok {
		if _, ok := example.(*unstructured.Unstructured); !ok {
			return nil, fmt.Errorf("%T is no type that can be decoded", example)
		}
		return d, nil
	}
	t := reflect.TypeOf(example)
	if _, ok := example.(metav1.Object); !ok || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is no pointer to a type of Kubernetes objects", example)
	}
	d.typed = t.Elem()
	return d, nil
}

func (d *decoder) isMetadata() bool {
	_, ok := d.example.(*metav1.PartialObjectMetadata)
	return ok
}

// empty makes an object of which only the key is known.
func (d *decoder) empty(key string) runtime.Object {
	var object runtime.Object
	if d.typed == nil {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(d.kind)
		object = u
	} else {
		object = reflect.New(d.typed).Interface().(runtime.Object)
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	accessor := object.(metav1.Object)
	accessor.SetNamespace(namespace)
	accessor.SetName(name)
	return object
}

// read is object for reads, which may give the kind as well.
func (d *decoder) read(o *kinf.Object) (any, error) {
	object, err := d.object(o)
	if typed, ok := object.(runtime.Object); ok && err == nil && d.keepKind {
		typed.GetObjectKind().SetGroupVersionKind(d.kind)
	}
	return object, err
}

// copy is read of an object that is shared.
func (d *decoder) copy(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	if d.keepKind {
		object.GetObjectKind().SetGroupVersionKind(d.kind)
	}
	return object
}

// errRefused says that the type, or the transform, does not take an object of the cluster.
var errRefused = errors.New("refused")

// object decodes one, and transforms it.
func (d *decoder) object(o *kinf.Object) (any, error) {
	object, err := d.decode(o)
	if err != nil && !errors.Is(err, kinf.ErrCorrupt) {
		err = fmt.Errorf("%w by %T: %w", errRefused, d.example, err)
	}
	if err == nil && d.strip {
		object.(metav1.Object).SetManagedFields(nil)
	}
	if err != nil || d.transform == nil {
		return object, err
	}
	transformed, err := d.transform(object)
	if err != nil {
		return nil, fmt.Errorf("%w by the transform: '%s': %w", errRefused, o.Key, err)
	}
	return transformed, nil
}

// nameApart gives an object a name of its own memory: programs keep names, as in work queues, and these
// would keep the object's record each.
func nameApart(object metav1.Object, key string) {
	namespace, name, namespaced := strings.Cut(strings.Clone(key), "/")
	if !namespaced {
		name = namespace
	} else {
		object.SetNamespace(namespace)
	}
	object.SetName(name)
}

func (d *decoder) decode(o *kinf.Object) (runtime.Object, error) {
	if d.typed == nil {
		body, err := o.Unstructured()
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: body}
		if u.GetResourceVersion() != o.ResourceVersion {
			u.SetResourceVersion(o.ResourceVersion)
		}
		u.SetGroupVersionKind(d.kind)
		nameApart(u, o.Key)
		return u, nil
	}
	value := reflect.New(d.typed).Interface()
	if err := o.Into(value); err != nil {
		return nil, err
	}
	object := value.(runtime.Object)
	object.(metav1.Object).SetResourceVersion(o.ResourceVersion)
	nameApart(object.(metav1.Object), o.Key)
	kind := schema.GroupVersionKind{}
	if d.isMetadata() {
		kind = d.kind
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object, nil
}
