// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bytes"
	"cmp"
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"kinf/internal/env"
	"kinf/internal/path"
)

// Names of the indexes that each feed has.
const (
	IndexNamespace = "namespace"
	IndexLabel     = "label" // values are "key" and "key=value"
)

const valueMost = 480 // a longer value is its beginning and a hash

// An Index of a feed.
type Index struct {
	Name  string
	Paths []string // canonical; none: IndexNamespace or IndexLabel
	Ready bool     // false: it is being built
}

// An IndexValue is a value of an index, and how many objects have it. A value of more than 480 bytes is
// cut to them; several such values may look the same.
type IndexValue struct {
	Value string
	Count uint64
}

// definition of an index: a row `d`.
type indexDefinition struct {
	id, feed uint32
	row      string // it was read from this one
	dropping bool
	Index
}

func readIndexDefinition(number uint32, row []byte) (d indexDefinition, err error) {
	const head = 16
	texts := row[min(head, len(row)):]
	name, paths, found := bytes.Cut(texts, []byte{0})
	if !found || len(paths) == 0 || bytes.IndexByte(paths, 0) != len(paths)-1 {
		return d, badRow("meta")
	}
	d = indexDefinition{id: number, feed: le.Uint32(row), row: string(row), dropping: le.Uint32(row[4:])&1 != 0,
		Index: Index{Name: string(name), Ready: le.Uint64(row[8:]) == math.MaxUint64}}
	d.Paths = lines(string(paths[:len(paths)-1]), "\n")
	return d, nil
}

func (d *indexDefinition) isOf(feed uint32) bool { return d.feed == feed && !d.dropping }

// readIndexDefinitions returns the indexes of all feeds. Only rows that have changed are parsed again.
func (s *Snapshot) readIndexDefinitions() ([]indexDefinition, error) {
	if s.definitionsID == s.index.ID() {
		return s.definitions, nil
	}
	all, n := s.definitions, 0
	s.definitionsID = 0
	err := eachMeta(&s.index, &s.cursor, 'd', func(number uint32, row []byte) error {
		if n == len(all) || all[n].id != number || all[n].row != string(row) {
			d, err := readIndexDefinition(number, row)
			if err != nil {
				return err
			}
			all = append(all[:n], d)
		}
		n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.definitions, s.definitionsID = all[:n], s.index.ID()
	return s.definitions, nil
}

// findIndex finds an index of a feed; nil: it has none of this name.
func (s *Snapshot) findIndex(feed uint32, is func(*indexDefinition) bool) (*indexDefinition, error) {
	all, err := s.readIndexDefinitions()
	for i := range all {
		if all[i].isOf(feed) && is(&all[i]) {
			return &all[i], err
		}
	}
	return nil, err
}

// namedIndex returns a feed's index. ErrNoIndex; ErrNotYet: it is being built.
func (s *Snapshot) namedIndex(f *Feed, name string) (*indexDefinition, error) {
	d, err := s.findIndex(f.ID, func(d *indexDefinition) bool { return d.Name == name })
	if err != nil {
		return nil, err
	}
	if d == nil {
		var names []string
		for i := range s.definitions {
			if s.definitions[i].isOf(f.ID) {
				names = append(names, s.definitions[i].Name)
			}
		}
		return nil, say(ErrNoIndex, "feed '%s' has no index '%s'; it has: %s", f.Name, name, strings.Join(names, ", "))
	}
	if !d.Ready {
		return nil, say(ErrNotYet, "the index '%s' of feed '%s' is being built", name, f.Name)
	}
	return d, nil
}

// Indexes returns the indexes of the feeds that a name stands for. Ready: in each feed that has it.
func (s *Snapshot) Indexes(feed string) (indexes []Index, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return nil, err
	}
	set, err := s.feedSet(feed)
	if err != nil {
		return nil, s.result(err)
	}
	all, err := s.readIndexDefinitions()
	if err := s.result(err); err != nil {
		return nil, err
	}
	for _, f := range set {
		for _, d := range all {
			if !d.isOf(f.ID) {
				continue
			}
			if i := slices.IndexFunc(indexes, func(known Index) bool { return known.Name == d.Name }); i >= 0 {
				indexes[i].Ready = indexes[i].Ready && d.Ready
				continue
			}
			index := d.Index
			index.Paths = slices.Clone(d.Paths)
			indexes = append(indexes, index)
		}
	}
	return indexes, nil
}

// IndexValues returns the values of an index that begin with a prefix, in their order. ErrNoIndex;
// ErrNotYet: the index is being built.
func (s *Snapshot) IndexValues(feed, index, prefix string) (values []IndexValue, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return nil, err
	}
	set, err := s.feedSet(feed)
	for i := 0; err == nil && i < len(set); i++ {
		var d *indexDefinition
		if d, err = s.namedIndex(set[i], index); err == nil {
			err = s.eachTerm(d.id, prefix[:min(len(prefix), valueMost)], func(t term) {
				values = append(values, IndexValue{string(t.value[:min(len(t.value), valueMost)]), t.count})
			})
		}
	}
	if err := s.result(err); err != nil {
		return nil, err
	}
	if len(set) < 2 {
		return values, nil
	}
	slices.SortStableFunc(values, func(a, b IndexValue) int { return cmp.Compare(a.Value, b.Value) })
	n := 0
	for _, v := range values {
		if n > 0 && values[n-1].Value == v.Value {
			values[n-1].Count += v.Count
			continue
		}
		values[n] = v
		n++
	}
	return values[:n], nil
}

// ---- terms ------------------------------------------------------------------------

// term is a row of `term`. Value points into the mapping.
type term struct {
	value     []byte
	id, count uint64
}

func (t *term) isLong() bool { return len(t.value) > valueMost }

func readTerm(value, row []byte) (term, error) {
	if len(row) != 16 || le.Uint64(row[8:]) == 0 {
		return term{}, badRow("term")
	}
	return term{value, le.Uint64(row), le.Uint64(row[8:])}, nil
}

func termKey(definition uint32, value string) []byte {
	return append(be.AppendUint32(make([]byte, 0, 4+len(value)), definition), value...)
}

// eachTerm calls fn for the terms of an index that begin with a prefix.
func (s *Snapshot) eachTerm(definition uint32, prefix string, fn func(term)) error {
	var cursor env.Cursor
	start := termKey(definition, prefix)
	found, err := cursor.Seek(&s.index, dbTerm, start)
	if err == nil {
		err = checkAround(&cursor, &s.index, dbTerm, start, found)
	}
	for err == nil && found {
		key := cursor.Key()
		row, bad := indexRow(key, cursor.Value())
		if bad != nil {
			return bad
		}
		if !bytes.HasPrefix(key, start) {
			return nil
		}
		t, bad := readTerm(key[4:], row)
		if bad != nil || !cursor.LeafIsWhole() {
			return badRow("term")
		}
		fn(t)
		found, err = cursor.Next()
	}
	return err
}

// findTerms returns the terms that objects with a value have. A long one may share its beginning and
// hash with others: those that begin alike are all candidates, and the bodies decide. So nothing here
// needs the hash.
func (s *Snapshot) findTerms(definition uint32, value string) (terms []term, err error) {
	if len(value) > valueMost {
		err = s.eachTerm(definition, value[:valueMost], func(t term) {
			if t.isLong() {
				terms = append(terms, t)
			}
		})
		return terms, err
	}
	row, found, err := getRow(&s.cursor, &s.index, dbTerm, termKey(definition, value))
	if err != nil || !found {
		return nil, err
	}
	t, err := readTerm(nil, row)
	return []term{t}, err
}

// ---- postings ---------------------------------------------------------------------

const (
	blockMost = 120
	growMost  = 1 << 20 // ids for which room is made at once
)

// appendPostings appends the ids of the objects with a term, ascending.
func (s *Snapshot) appendPostings(ids []uint64, t term) ([]uint64, error) {
	var prefix [8]byte
	be.PutUint64(prefix[:], t.id)
	begin := len(ids)
	ids = slices.Grow(ids, int(min(t.count, growMost)))
	found, err := s.cursor.Seek(&s.index, dbPosting, prefix[:])
	for err == nil && found {
		key := s.cursor.Key()
		row, bad := indexRow(key, s.cursor.Value())
		if bad != nil {
			return nil, bad
		}
		if !bytes.HasPrefix(key, prefix[:]) {
			break
		}
		if len(key) != 16 || len(row)%4 != 0 || len(row)/4 >= blockMost {
			return nil, badRow("posting")
		}
		first := be.Uint64(key[8:])
		ids = append(ids, first)
		for ; len(row) > 0; row = row[4:] {
			ids = append(ids, first+uint64(le.Uint32(row)))
		}
		found, err = s.cursor.Next()
	}
	// A damaged tree may lack rows without looking damaged.
	if err == nil && uint64(len(ids)-begin) != t.count {
		err = say(ErrCorrupt, "index: %d postings of a value, and %d are counted: %s", len(ids)-begin, t.count, remedy)
	}
	return ids, err
}

// postings returns the ids of the objects with one of the terms, ascending.
func (s *Snapshot) postings(terms []term) (ids []uint64, err error) {
	for _, t := range terms {
		if ids, err = s.appendPostings(ids, t); err != nil {
			return nil, err
		}
	}
	if len(terms) > 1 {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return ids, nil
}

// object returns the key and the entry of an object by its id.
func (s *Snapshot) object(id uint64) (key []byte, e entry, err error) {
	var wanted [8]byte
	be.PutUint64(wanted[:], id)
	row, found, err := getRow(&s.cursor, &s.index, dbObject, wanted[:])
	if err != nil {
		return nil, e, err
	}
	if !found {
		return nil, e, say(ErrCorrupt, "index: a posting names object %d, which is missing: %s", id, remedy)
	}
	if len(row) < entryBytes+4 || len(row) > entryBytes+4+keyMost {
		return nil, e, badRow("object")
	}
	return row[entryBytes+4:], readEntry(row), nil
}

// parsePaths parses the paths of an index.
func (d *indexDefinition) parsePaths() (paths []*path.Path, err error) {
	for _, text := range d.Paths {
		p, err := path.Parse(text)
		if err != nil {
			return nil, say(ErrCorrupt, "index '%s': %v", d.Name, err)
		}
		paths = append(paths, p)
	}
	return paths, nil
}
