// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

// errReadOnly is the answer to all that would change the store.
var errReadOnly = errors.New("the informer's store is the machine's cache, which programs can't change")

// indexes is the informer's cache.Indexer. It reads the store.
type indexes struct {
	informer *Informer
	mu       sync.RWMutex // guards the map
	named    map[string]*index
}

// index answers by an IndexFunc. Its maps are filled at the first use, and kept by changes; they are
// guarded by Informer.mu.
type index struct {
	fn        cache.IndexFunc
	namespace bool // the store answers
	path      *indexPath
	filled    bool
	keys      map[string]map[string]struct{} // of a value
	values    map[string]indexed             // of a key
}

// indexed is what an IndexFunc gave for a version of an object.
type indexed struct {
	values []string
	at     position
}

var _ cache.Indexer = &indexes{}

func newIndexes(i *Informer) *indexes { return &indexes{informer: i, named: map[string]*index{}} }

func sameFunction(a, b cache.IndexFunc) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func (x *indexes) add(indexers cache.Indexers) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range indexers {
		if x.named[name] != nil {
			return fmt.Errorf("indexer conflict: %v", []string{name})
		}
	}
	for name, fn := range indexers {
		x.named[name] = &index{fn: fn, namespace: sameFunction(fn, cache.MetaNamespaceIndexFunc), path: pathOf(fn)}
	}
	return nil
}

func (x *indexes) AddIndexers(indexers cache.Indexers) error { return x.add(indexers) }

func (x *indexes) GetIndexers() cache.Indexers {
	x.mu.RLock()
	defer x.mu.RUnlock()
	indexers := cache.Indexers{}
	for name, index := range x.named {
		indexers[name] = index.fn
	}
	return indexers
}

func (x *indexes) find(name string) (*index, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if found := x.named[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name) // client-go's text
}

// ---- the maps of IndexFuncs ---------------------------------------------------------

// put replaces what is known of a key, unless that is of a newer version.
func (n *index) put(key string, at position, values []string) {
	before, known := n.values[key]
	if known && at.before(before.at) {
		return
	}
	for _, value := range before.values {
		delete(n.keys[value], key)
		if len(n.keys[value]) == 0 {
			delete(n.keys, value)
		}
	}
	delete(n.values, key)
	if len(values) == 0 {
		return
	}
	key = strings.Clone(key) // it may share an object's memory
	n.values[key] = indexed{values, at}
	for _, value := range values {
		if n.keys[value] == nil {
			n.keys[value] = map[string]struct{}{}
		}
		n.keys[value][key] = struct{}{}
	}
}

// valuesOf calls the IndexFunc. An error in it ends a program on client-go's informers.
func (n *index) valuesOf(object any) []string {
	values, err := n.fn(object)
	if err != nil {
		panic(fmt.Errorf("unable to calculate an index entry: %w", err))
	}
	own := make([]string, len(values)) // they may share the memory of the object
	for i, value := range values {
		own[i] = strings.Clone(value)
	}
	return own
}

// shown keeps the filled maps for an object that a handler is about to see ahead of the changes.
func (x *indexes) shown(key string, at position, object any) {
	x.informer.mu.Lock()
	defer x.informer.mu.Unlock()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, n := range x.named {
		if n.filled {
			n.put(key, at, n.valuesOf(object))
		}
	}
}

// change keeps the filled maps. The caller holds Informer.mu.
func (x *indexes) change(c *change) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, n := range x.named {
		if !n.filled {
			continue
		}
		if c.new == nil {
			n.put(c.key, c.at, nil)
			continue
		}
		object, err := x.informer.shared(c.at, c.new)
		if err != nil {
			utilruntime.HandleError(fmt.Errorf("indexing '%s': %w", c.key, err))
			continue
		}
		n.put(c.key, c.at, n.valuesOf(object))
	}
}

// fill fills the maps of an index, at its first use. The caller holds Informer.mu.
func (x *indexes) fill(n *index) error {
	if n.filled {
		return nil
	}
	i := x.informer
	n.keys, n.values = map[string]map[string]struct{}{}, map[string]indexed{}
	err := i.view(func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
		if now.before(i.at) {
			return errBehind
		}
		if i.shown.before(now) {
			i.shown = now
		}
		for o, err := range s.List(f.Name, i.scope.narrow(kinf.Query{Namespace: i.scope.Namespace})) {
			if err != nil {
				return err
			}
			object, _, err := i.pick(o, now.epoch, !i.copies)
			if err != nil {
				return err
			}
			if object != nil {
				n.put(o.Key, position{now.epoch, o.Event}, n.valuesOf(object))
			}
		}
		return nil
	})
	n.filled = err == nil
	return err
}

// reader takes what is shared, or copies.
type reader struct {
	*indexes
	shares bool
}

func (x *indexes) reader() reader { return reader{x, !x.informer.copies} }

// selected gives an object to a reader; nil: it is not of the scope.
func (x reader) selected(o *kinf.Object, epoch int) (any, error) {
	i := x.informer
	object, shared, err := i.pick(o, epoch, x.shares)
	if typed, ok := object.(runtime.Object); ok && shared && !x.shares {
		object = i.decoder.copy(typed)
	}
	return object, err
}

// pick gives an object, and whether others have it; nil: it is not of the scope. If readers get copies, one
// read once costs less without: it is the reader's, and kept at a second time soon after.
func (i *Informer) pick(o *kinf.Object, epoch int, shares bool) (object any, shared bool, err error) {
	at := position{epoch, o.Event}
	if object := i.objects.get(i, at); object != nil {
		return object, true, nil
	}
	i.wasRead.Store(true)
	selected, err := i.scope.selects(o)
	if err != nil || !selected {
		return nil, false, err
	}
	if i.objects == nil || !shares && !i.objects.isRead(i, at, len(o.Raw())) {
		object, err = i.decoder.read(o)
		return object, false, err
	}
	if object, err = i.decoder.object(o.Apart()); err != nil {
		return nil, false, err
	}
	return i.objects.put(i, at, o, object), true, nil
}

// look calls fn with the filled maps of an index. The first time it waits until the store shows what
// handlers were told.
func (x *indexes) look(n *index, fn func()) error {
	i := x.informer
	if !i.HasSynced() {
		return nil
	}
	return i.retry(aWhile, func() error {
		i.mu.Lock()
		defer i.mu.Unlock()
		if err := x.fill(n); err != nil {
			return err
		}
		fn()
		return nil
	})
}

// keysOf returns the keys that an index has for values, in order.
func (x *indexes) keysOf(n *index, values ...string) (keys []string, err error) {
	if n.namespace {
		for _, namespace := range values {
			more, err := x.keysIn(namespace)
			if err != nil {
				return nil, err
			}
			if namespace == "" {
				more = slices.DeleteFunc(more, func(key string) bool { return strings.Contains(key, "/") })
			}
			keys = append(keys, more...)
		}
		return keys, nil
	}
	err = x.look(n, func() {
		for _, value := range values {
			keys = slices.AppendSeq(keys, maps.Keys(n.keys[value]))
		}
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// ---- reads ------------------------------------------------------------------------

// isEarly tells whether an error only says that there is nothing yet, as before client-go's first list.
func (x *indexes) isEarly(err error) bool {
	return errors.Is(err, kinf.ErrNotYet) && !x.informer.HasSynced()
}

func (x *indexes) GetByKey(key string) (item any, exists bool, err error) { return x.reader().get(key) }

// GetShared is GetByKey of the Indexer without a copy: nobody may change the object.
func (i *Informer) GetShared(key string) (item any, exists bool, err error) {
	return reader{i.indexes, true}.get(key)
}

func (x reader) get(key string) (item any, exists bool, err error) {
	i := x.informer
	err = i.read(aWhile, func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
		o, err := s.Get(f.Name, key)
		if errors.Is(err, kinf.ErrNotFound) {
			item = nil
			return nil
		}
		if err == nil {
			item, err = x.selected(o, now.epoch)
		}
		return err
	})
	if x.isEarly(err) {
		err = nil
	}
	return item, item != nil && err == nil, err
}

func (x *indexes) Get(object any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return nil, false, cache.KeyError{Obj: object, Err: err}
	}
	return x.GetByKey(key)
}

// isNone tells whether a feed's objects have no namespace, and one is asked for.
func isNone(f *kinf.Feed, namespace string) bool { return !f.Namespaced && namespace != "" }

// listIn returns the objects of the scope that a query finds, as of one instant.
func (x reader) listIn(patient patience, query kinf.Query) (items []any, err error) {
	i := x.informer
	if i.scope.Namespace != "" {
		if query.Namespace != "" && query.Namespace != i.scope.Namespace {
			return nil, nil
		}
		query.Namespace = i.scope.Namespace
	}
	keeps := i.objects != nil && x.shares && query.LabelSelector == ""
	err = i.read(patient, func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
		switch {
		case isNone(f, query.Namespace):
			items, err = nil, nil
		case keeps:
			items, err = i.listShared(s, f, now.epoch, query.Namespace)
		default:
			items, err = x.collect(now.epoch, s.List(f.Name, i.scope.narrow(query)))
		}
		return err
	})
	if x.isEarly(err) {
		err = nil
	}
	return items, err
}

// collect gives those objects that are of the scope.
func (x reader) collect(epoch int, objects iter.Seq2[*kinf.Object, error]) (items []any, err error) {
	for o, err := range objects {
		if err != nil {
			return nil, err
		}
		item, err := x.selected(o, epoch)
		if err != nil {
			return nil, err
		}
		if item != nil {
			items = append(items, item)
		}
	}
	return items, nil
}

// List has no way to return an error: it waits for a store that can be read. An empty list would make
// controllers delete what they should keep.
func (x *indexes) List() []any {
	items, err := x.reader().listIn(forever, kinf.Query{})
	if err != nil {
		utilruntime.HandleError(err)
	}
	return items
}

// names gives the names of the scope in a namespace. Objects are read for selectors only.
func (i *Informer) names(s *kinf.Snapshot, f *kinf.Feed, namespace string) iter.Seq2[kinf.Name, error] {
	if i.scope.isWhole() {
		return s.Names(f, namespace)
	}
	return func(yield func(kinf.Name, error) bool) {
		for o, err := range s.List(f.Name, i.scope.narrow(kinf.Query{Namespace: namespace})) {
			selected := false
			if err == nil {
				selected, err = i.scope.selects(o)
			}
			if (err != nil || selected) && !yield(named(o), err) || err != nil {
				return
			}
		}
	}
}

func named(o *kinf.Object) (name kinf.Name) {
	if o != nil {
		name = kinf.Name{Key: strings.Clone(o.Key), Event: o.Event}
	}
	return name
}

func (x *indexes) keysIn(namespace string) (keys []string, err error) {
	i := x.informer
	if i.scope.Namespace != "" && namespace != "" && namespace != i.scope.Namespace {
		return nil, nil
	}
	namespace = cmp.Or(namespace, i.scope.Namespace)
	err = i.read(forever, func(s *kinf.Snapshot, f *kinf.Feed, _ position) error {
		keys = nil
		if isNone(f, namespace) {
			return nil
		}
		for name, err := range i.names(s, f, namespace) {
			if err != nil {
				return err
			}
			keys = append(keys, name.Key)
		}
		return nil
	})
	if x.isEarly(err) {
		err = nil
	}
	return keys, err
}

func (x *indexes) ListKeys() []string {
	keys, err := x.keysIn("")
	if err != nil {
		utilruntime.HandleError(err)
	}
	return keys
}

// byValues returns the objects that have one of the values and meet a selector. Those that have changed
// since the maps did are asked again.
func (x reader) byValues(n *index, values []string, selector *kinf.Selector) (items []any, err error) {
	keys, err := x.keysOf(n, values...)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	i := x.informer
	err = i.read(aWhile, func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
		items = nil
		for _, key := range keys {
			o, err := s.Get(f.Name, key)
			if errors.Is(err, kinf.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if matches, err := selector.Matches(o); err != nil || !matches {
				if err != nil {
					return err
				}
				continue
			}
			item, err := x.selected(o, now.epoch)
			if err != nil {
				return err
			}
			if item != nil && slices.ContainsFunc(n.valuesOf(item), func(v string) bool { return slices.Contains(values, v) }) {
				items = append(items, item)
			}
		}
		return nil
	})
	return items, err
}

func (x *indexes) ByIndex(name, value string) ([]any, error) {
	n, err := x.find(name)
	if err != nil {
		return nil, err
	}
	if n.namespace {
		return x.reader().inNamespace(value, "")
	}
	return x.reader().byValue(n, value, "")
}

func (x *indexes) Index(name string, object any) ([]any, error) {
	n, err := x.find(name)
	if err != nil {
		return nil, err
	}
	values, err := n.fn(object)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 { // as a lister asks for a namespace
		return x.ByIndex(name, values[0])
	}
	return x.reader().byValues(n, values, &kinf.Selector{})
}

func (x *indexes) IndexKeys(name, value string) ([]string, error) {
	n, err := x.find(name)
	if err != nil {
		return nil, err
	}
	return x.keysOf(n, value)
}

func (x *indexes) ListIndexFuncValues(name string) (values []string) {
	n, err := x.find(name)
	if err != nil {
		return nil
	}
	if err := x.look(n, func() { values = slices.Sorted(maps.Keys(n.keys)) }); err != nil {
		utilruntime.HandleError(err)
	}
	return values
}

func (x *indexes) LastStoreSyncResourceVersion() string { return x.informer.LastSyncResourceVersion() }

func (x *indexes) Bookmark(string)             {}
func (x *indexes) Add(any) error               { return errReadOnly }
func (x *indexes) Update(any) error            { return errReadOnly }
func (x *indexes) Delete(any) error            { return errReadOnly }
func (x *indexes) Replace([]any, string) error { return errReadOnly }
func (x *indexes) Resync() error               { return nil }
