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

// Unstructured decodes the object into a new map, with numbers as the JSON decoder of Kubernetes gives
// them: int64 where they are integers that fit, else float64.
func (o *Object) Unstructured() (map[string]any, error) {
	m, err := msgpack.Map(o.body)
	if err != nil {
		return nil, say(ErrCorrupt, "the body of '%s' (record %d): %v", o.Key, o.Event, err)
	}
	return m, nil
}
