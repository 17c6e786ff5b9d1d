// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"strings"

	"kinf/internal/msgpack"
)

// An Object is one version of a Kubernetes object. It never changes, and may be kept: it is a copy.
type Object struct {
	Key             string // "namespace/name" or "name"
	UID             string
	ResourceVersion string
	Event           uint64 // number of the record that holds this version
	Feed            uint32 // id of the feed it is of
	body            []byte
	apart           bool
}

// Namespace returns the namespace, "" for kinds without.
func (o *Object) Namespace() string {
	namespace, _, found := strings.Cut(o.Key, "/")
	if !found {
		return ""
	}
	return namespace
}

// Name returns the name.
func (o *Object) Name() string { return o.Key[strings.IndexByte(o.Key, '/')+1:] }

// Raw returns the stored msgpack document (store/FORMAT.md, Bodies). It must not be changed. It is
// empty for a deletion found by a list, whose last state is not known.
func (o *Object) Raw() []byte { return o.body }

// Apart returns the object for values that are kept for long: they share no memory with it, so they do not
// keep all of it. Their short strings share blocks of 1 KiB.
func (o *Object) Apart() *Object {
	apart := *o
	apart.ResourceVersion, apart.apart = strings.Clone(o.ResourceVersion), true
	return &apart
}

// Into decodes the object into a typed one, such as a *corev1.Pod, which should be empty; into a
// *metav1.PartialObjectMetadata it decodes the metadata alone. Names of fields are compared exactly, as
// Kubernetes does. The strings share the object's memory, unless it is Apart.
func (o *Object) Into(v any) error { return o.result(msgpack.Decode(o.body, v, o.apart)) }

// Unstructured decodes the object into a new map, with numbers as the JSON decoder of Kubernetes gives
// them: int64 where they are integers that fit, else float64.
func (o *Object) Unstructured() (map[string]any, error) {
	m, err := msgpack.Map(o.body, o.apart)
	return m, o.result(err)
}

// JSON returns the object as JSON, with its members in the order and its numbers in the spelling of the
// API server.
func (o *Object) JSON() ([]byte, error) {
	text, err := msgpack.JSON(o.body)
	return text, o.result(err)
}

func (o *Object) result(err error) error {
	switch {
	case err == nil:
		return nil
	case len(o.body) == 0:
		return say(ErrNotFound, "no state of '%s' is kept", o.Key)
	case err == msgpack.ErrMalformed:
		return say(ErrCorrupt, "the body of '%s' (record %d): %v", o.Key, o.Event, err)
	}
	return wrap(err, "'%s'", o.Key)
}
