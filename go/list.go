// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bytes"
	"iter"
	"runtime/debug"
	"slices"
	"strings"

	"kinf/internal/env"
)

// listing is a walk over the objects of a query, feed by feed.
type listing struct {
	s        *Snapshot
	query    Query
	selector *Selector
	set      []*Feed
	feed     *Feed
	plan     *plan
	name     string      // of the objects; "": any
	walk     nameWalk    // of a plan by names
	found    []candidate // of a plan by value, left
	given    int
}

// nameWalk is a walk over the names of a feed that begin with a prefix.
type nameWalk struct {
	cursor  env.Cursor
	prefix  []byte
	started bool
	counted bool   // all names of the feed: they are as many as its row says
	left    uint64 // of them
	leaf    *byte  // the last leaf that was found whole
}

func (w *nameWalk) open(s *Snapshot, feed uint32, prefix, after string) error {
	*w = nameWalk{prefix: nameKey(nil, feed, prefix)}
	from := w.prefix
	if after >= prefix {
		after = after[:min(len(after), keyMost)]
		from = nameKey(nil, feed, after)
	}
	if row := s.feeds.of(feed); prefix == "" && after == "" && !row.removed {
		w.counted, w.left = true, row.objects
	}
	found, err := w.cursor.Seek(&s.index, dbName, from)
	if err == nil {
		err = checkAround(&w.cursor, &s.index, dbName, from, found)
	}
	if err == nil && found && after != "" && bytes.Equal(w.cursor.Key(), from) {
		found, err = w.cursor.Next()
	}
	w.started = found
	return err
}

// next returns the next key, in the mapping, and its entry; false: there is none.
func (w *nameWalk) next() (key []byte, e entry, found bool, err error) {
	if !w.started {
		return nil, e, false, w.end()
	}
	full := w.cursor.Key()
	row, err := indexRow(full, w.cursor.Value())
	if err != nil {
		return nil, e, false, err
	}
	if leaf := w.cursor.Leaf(); leaf != w.leaf {
		if !w.cursor.LeafIsWhole() {
			return nil, e, false, badRow("name")
		}
		w.leaf = leaf
	}
	if !bytes.HasPrefix(full, w.prefix) {
		return nil, e, false, w.end()
	}
	if w.counted && w.left == 0 {
		return nil, e, false, say(ErrCorrupt, "index: more names of a feed than are counted: %s", remedy)
	}
	w.left--
	if e, err = readNameRow(row); err != nil {
		return nil, e, false, err
	}
	return full[4:], e, true, nil
}

// step goes on to the next row.
func (w *nameWalk) step() (err error) {
	w.started, err = w.cursor.Next()
	return err
}

// end checks the count. A damaged tree may lack rows without looking damaged.
func (w *nameWalk) end() error {
	if w.counted && w.left != 0 {
		return say(ErrCorrupt, "index: fewer names of a feed than are counted: %s", remedy)
	}
	return nil
}

func (l *listing) openFeed() (bool, error) {
	if len(l.set) == 0 {
		return false, nil
	}
	f, q := l.set[0], l.query
	l.set = l.set[1:]
	if f.Namespaced && q.Namespace == "" && q.Prefix != "" {
		return false, say(ErrSyntax, "a prefix of names needs a namespace")
	}
	if q.Namespace == "" {
		q.Namespace = l.selector.wantsField("metadata.namespace")
	}
	l.name = l.selector.wantsField("metadata.name")
	prefix := q.Prefix
	if prefix == "" && (!f.Namespaced || q.Namespace != "") {
		prefix = l.name
	}
	if f.Namespaced && q.Namespace != "" {
		prefix = q.Namespace + "/" + prefix
	}
	plan, err := l.s.plan(f, &q, l.selector)
	if err != nil {
		return false, err
	}
	l.feed, l.plan = f, plan
	if plan.byValue {
		l.found, err = l.s.candidates(plan, []byte(prefix), q.After)
		return true, err
	}
	return true, l.walk.open(l.s, f.ID, prefix, q.After)
}

// relevant returns the listed feeds of a set that a query depends on. One whose first list is under way
// refuses the query: a result without its objects would not be complete. One that can't be listed, such
// as a forbidden one, does so only if there is no other.
func (q *Query) relevant(set []*Feed) (listed []*Feed, err error) {
	var unlisted *Feed
	for _, f := range set {
		switch {
		case f.Namespace != "" && q.Namespace != "" && f.Namespace != q.Namespace:
		case f.Synced():
			listed = append(listed, f)
		case unlisted == nil || f.listing:
			unlisted = f
		}
	}
	if unlisted != nil && (unlisted.listing || len(listed) == 0) {
		return nil, say(ErrNotYet, "feed '%s' was never listed so far", unlisted.Name)
	}
	return listed, nil
}

// candidate returns the next object that may be one of the query; false: there is none.
func (l *listing) candidate() (c candidate, found bool, err error) {
	if l.plan.byValue {
		if len(l.found) == 0 {
			return c, false, nil
		}
		c, l.found = l.found[0], l.found[1:]
		return c, true, nil
	}
	for {
		key, e, found, err := l.walk.next()
		if err != nil || !found {
			return c, false, err
		}
		wanted := l.name == "" || string(key[bytes.LastIndexByte(key, '/')+1:]) == l.name
		if wanted && l.plan.ids != nil {
			_, wanted = slices.BinarySearch(l.plan.ids, e.object)
		}
		if wanted {
			c = candidate{string(key), e}
		}
		if err := l.walk.step(); err != nil || wanted {
			return c, wanted, err
		}
	}
}

// next returns the next object; nil: there is none.
func (l *listing) next() (object *Object, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := l.s.mustHold(); err != nil {
		return nil, err
	}
	for l.query.Limit == 0 || l.given < l.query.Limit {
		if l.feed == nil {
			if found, err := l.openFeed(); err != nil || !found {
				return nil, l.s.result(err)
			}
		}
		c, found, err := l.candidate()
		if err != nil {
			return nil, l.s.result(err)
		}
		if !found {
			l.feed = nil
			continue
		}
		object, err := l.s.accepted(l.feed.ID, c.key, c.e, l.plan)
		if err := l.s.result(err); err != nil {
			return nil, err
		}
		if object == nil {
			continue
		}
		l.given++
		return object, nil
	}
	return nil, nil
}

// List gives the objects of a feed in the order of their keys. The sequence ends after an error.
// ErrNotYet: a feed that may hold such objects was never listed. A label, or a field with one value
// whose path has an index, is looked up there.
func (s *Snapshot) List(feed string, query Query) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		l, err := s.open(feed, query)
		for err == nil {
			var object *Object
			object, err = l.next()
			if err == nil && (object == nil || !yield(object, nil)) {
				return
			}
		}
		yield(nil, err)
	}
}

func (s *Snapshot) open(feed string, query Query) (l *listing, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return nil, err
	}
	if strings.Contains(query.Namespace, "/") {
		return nil, say(ErrSyntax, "'%s' is no namespace", query.Namespace)
	}
	selector, err := ParseSelector(query.LabelSelector, query.FieldSelector)
	if err != nil {
		return nil, err
	}
	set, err := s.feedSet(feed)
	if err == nil {
		set, err = query.relevant(set)
	}
	for i := 0; err == nil && i < len(set); i++ { // before the first object, not in the middle
		err = selector.check(set[i])
		for k := 0; err == nil && k < len(query.terms); k++ {
			_, err = s.namedIndex(set[i], query.terms[k].index)
		}
	}
	if err := s.result(err); err != nil {
		return nil, err
	}
	return &listing{s: s, query: query, selector: selector, set: set}, nil
}

// ByIndex gives the objects of a query with a value in an index, in the order of their keys. The value
// of an index of several paths is a CompoundValue. ErrNoIndex; ErrNotYet also: the index is being built.
func (s *Snapshot) ByIndex(feed, index, value string, query Query) iter.Seq2[*Object, error] {
	query.terms = append(slices.Clone(query.terms), wantedTerm{index, value})
	return s.List(feed, query)
}
