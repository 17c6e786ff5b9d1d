// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

// ---- indexes by a path --------------------------------------------------------------

// allNamespaces is controller-runtime's namespace of values of all namespaces: it puts one and a slash
// before each value of a field.
const allNamespaces = "__all_namespaces"

// indexPath is what an index has the values of. The store answers if it has an index of the path.
type indexPath struct {
	path   *kinf.FieldPath
	scoped bool // the values are controller-runtime's
}

// question is an object that asks an IndexFunc whether it is of a path.
type question struct{ metav1.PartialObjectMetadata }

const answerMark = "\x00path:"

var pathsMade atomic.Bool

// Path makes an IndexFunc of a field path, as in the indexes of kinf.yaml. If the store has an index of
// it, no map is kept in the process.
func Path(text string) (cache.IndexFunc, error) {
	values, err := PathValues(text)
	if err != nil {
		return nil, err
	}
	return func(object any) ([]string, error) { return values(object), nil }, nil
}

// PathValues makes a function that gives the values of a field path in an object. IndexFuncs that call
// it, and give what it gives, are known as Path's.
func PathValues(text string) (func(object any) []string, error) {
	path, err := kinf.ParsePath(text)
	if err != nil {
		return nil, err
	}
	pathsMade.Store(true)
	return func(object any) []string {
		if _, ok := object.(*question); ok {
			return []string{answerMark + path.String()}
		}
		document, err := json.Marshal(object)
		if err != nil {
			return nil // no object of a cluster
		}
		values, _ := path.ValuesOfJSON(document)
		return values
	}, nil
}

// pathOf asks an IndexFunc for its path; nil: it is one of another kind, which may panic.
func pathOf(fn cache.IndexFunc) (found *indexPath) {
	if !pathsMade.Load() {
		return nil
	}
	defer func() { _ = recover() }()
	values, err := fn(&question{})
	if err != nil || len(values) != 1 {
		return nil
	}
	before, text, ok := strings.Cut(values[0], answerMark)
	path, err := kinf.ParsePath(text)
	if !ok || err != nil || before != "" && before != allNamespaces+"/" {
		return nil
	}
	return &indexPath{path, before != ""}
}

// indexOf returns the name of the store's index of a path; "": it has none.
func indexOf(s *kinf.Snapshot, feed string, path *kinf.FieldPath) (string, error) {
	indexes, err := s.Indexes(feed)
	for _, index := range indexes {
		if index.Ready && len(index.Paths) == 1 && index.Paths[0] == path.String() {
			return index.Name, err
		}
	}
	return "", err
}

// byPath answers by the store's index; false: there is none.
func (x reader) byPath(p *indexPath, value, selector string) (items []any, answered bool, err error) {
	i := x.informer
	query := kinf.Query{Namespace: i.scope.Namespace, LabelSelector: selector}
	if p.scoped {
		namespace, rest, _ := strings.Cut(value, "/")
		value = rest
		if namespace != allNamespaces {
			if query.Namespace != "" && namespace != query.Namespace {
				return nil, true, nil
			}
			query.Namespace = namespace
		}
	}
	err = i.read(aWhile, func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
		name, err := indexOf(s, f.Name, p.path)
		if answered = name != ""; err != nil || !answered {
			return err
		}
		if isNone(f, query.Namespace) {
			items = nil
			return nil
		}
		items, err = x.collect(now.epoch, s.ByIndex(f.Name, name, value, i.scope.narrow(query)))
		return err
	})
	if x.isEarly(err) {
		return nil, true, nil
	}
	return items, answered, err
}

// byValue returns the objects with a value in an index that meet a label selector.
func (x reader) byValue(n *index, value, selector string) ([]any, error) {
	if n.path != nil && x.informer.decoder.transform == nil {
		if items, answered, err := x.byPath(n.path, value, selector); answered || err != nil {
			return items, err
		}
	}
	parsed, err := kinf.ParseSelector(selector, "")
	if err != nil {
		return nil, err
	}
	return x.byValues(n, []string{value}, parsed)
}

// inNamespace returns the objects of a namespace, "" for those without, that meet a label selector.
func (x reader) inNamespace(namespace, selector string) ([]any, error) {
	items, err := x.listIn(aWhile, kinf.Query{Namespace: namespace, LabelSelector: selector})
	if namespace == "" {
		items = slices.DeleteFunc(items, func(item any) bool { return item.(metav1.Object).GetNamespace() != "" })
	}
	return items, err
}

// ---- selections ---------------------------------------------------------------------

// A Selection of an informer's objects. The store's indexes find them.
type Selection struct {
	Namespace    string          // "": all
	Labels       labels.Selector // nil: all
	Index, Value string          // as of Indexer.ByIndex, instead of a namespace
	Shared       bool            // without copies: nobody may change the objects
}

// isInvalid tells whether a requirement is one that its text is not parsed to, as of values of no label.
func isInvalid(r labels.Requirement) bool {
	_, err := labels.NewRequirement(r.Key(), r.Operator(), r.ValuesUnsorted())
	return err != nil
}

// Select returns the objects of a selection; false: the informer can't tell more than its Indexer, since
// it has not synced, or transforms what is selected by, or is asked for values that no label has.
func (i *Informer) Select(s Selection) (items []any, answered bool, err error) {
	selects := s.Index != "" || s.Labels != nil && !s.Labels.Empty()
	if !i.HasSynced() || i.IsStopped() || selects && i.decoder.transform != nil {
		return nil, false, nil
	}
	x := reader{i.indexes, s.Shared}
	text := ""
	if s.Labels != nil {
		requirements, selectable := s.Labels.Requirements()
		if !selectable {
			return nil, true, nil
		}
		if slices.ContainsFunc(requirements, isInvalid) {
			return nil, false, nil
		}
		text = s.Labels.String()
	}
	if s.Index == "" {
		items, err = x.listIn(aWhile, kinf.Query{Namespace: s.Namespace, LabelSelector: text})
		return items, true, err
	}
	n, err := i.indexes.find(s.Index)
	if err != nil || n.namespace {
		return nil, false, err
	}
	items, err = x.byValue(n, s.Value, text)
	if err != nil {
		err = fmt.Errorf("by index %s: %w", s.Index, err)
	}
	return items, true, err
}
