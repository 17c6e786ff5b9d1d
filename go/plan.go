// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bytes"
	"slices"
	"strings"

	"kinf/internal/path"
	"kinf/internal/selector"
)

const (
	sortMost         = 8192 // a value with more objects is not read and sorted: the names are walked
	alternativesMost = 64   // values of a set that are looked up
	intersectMost    = 16   // terms with so many times the objects of the rarest one are intersected with it
)

// wantedTerm is a value of an index that the caller asked for by the index's name.
type wantedTerm struct{ index, value string }

// planTerm is a value that all objects of a query have, or several of which each has one.
type planTerm struct {
	terms []term
	count uint64
	asked bool
}

// longTerm is an asked value whose term is only a hint.
type longTerm struct {
	paths []*path.Path
	value string
}

// plan is how the objects of a query are found in one feed: by the names, or by the rarest value. The
// rest of the query is checked on the bodies.
type plan struct {
	terms    []planTerm
	byValue  bool
	ids      []uint64 // of the candidates, ascending; not byValue: those of the names, nil: all
	selector *Selector
	long     []longTerm
}

// needsBody tells whether a candidate's body decides.
func (p *plan) needsBody() bool { return !p.selector.IsEmpty() || len(p.long) > 0 }

func (p *plan) accepts(body []byte) (bool, error) {
	for _, t := range p.long {
		values, err := pathValues(t.paths, body)
		if err != nil || !slices.Contains(values, t.value) {
			return false, err
		}
	}
	if p.selector.IsEmpty() {
		return true, nil
	}
	return p.selector.matches(body)
}

func (s *Snapshot) plan(f *Feed, query *Query, selector *Selector) (*plan, error) {
	p := &plan{selector: selector}
	err := s.planAsked(p, f, query)
	if err == nil {
		err = s.planLabels(p, f)
	}
	if err == nil {
		err = s.planFields(p, f)
	}
	if err != nil {
		return nil, err
	}
	return p, s.choose(p, f, query)
}

// addTerm adds the objects with one of the values.
func (s *Snapshot) addTerm(p *plan, d *indexDefinition, asked bool, values ...string) error {
	t := planTerm{asked: asked}
	for _, value := range values {
		terms, err := s.findTerms(d.id, value)
		if err != nil {
			return err
		}
		t.terms = append(t.terms, terms...)
	}
	for i := range t.terms {
		t.count += t.terms[i].count
	}
	p.terms = append(p.terms, t)
	return nil
}

func (s *Snapshot) planAsked(p *plan, f *Feed, query *Query) error {
	for _, wanted := range query.terms {
		d, err := s.namedIndex(f, wanted.index)
		if err != nil {
			return err
		}
		if n := countParts(wanted.value); len(d.Paths) > 1 && n != len(d.Paths) {
			return say(ErrSyntax, "index '%s' needs %d values (%s) with commas between them, and '%.60s' has %d; a comma or "+
				"backslash in a value has a backslash before it", d.Name, len(d.Paths), strings.Join(d.Paths, ","), wanted.value, n)
		}
		if err := s.addTerm(p, d, true, wanted.value); err != nil {
			return err
		}
		if len(wanted.value) > valueMost && len(d.Paths) > 0 {
			paths, err := d.parsePaths()
			if err != nil {
				return err
			}
			p.long = append(p.long, longTerm{paths, wanted.value})
		}
	}
	return nil
}

// planLabels adds `key`, or `key=value` of each value that the requirement allows.
func (s *Snapshot) planLabels(p *plan, f *Feed) error {
	if len(p.selector.labels) == 0 {
		return nil
	}
	d, err := s.findIndex(f.ID, func(d *indexDefinition) bool { return d.Name == IndexLabel })
	if err != nil || d == nil || !d.Ready {
		return err
	}
	for i := range p.selector.labels {
		r := &p.selector.labels[i]
		if r.MayBeAbsent() {
			continue
		}
		values := []string{r.Key}
		if r.Op == selector.In && len(r.Values) <= alternativesMost {
			values = nil
			for _, value := range r.Values {
				values = append(values, r.Key+"="+value)
			}
		}
		if err := s.addTerm(p, d, false, values...); err != nil {
			return err
		}
	}
	return nil
}

// planFields adds each field with one wanted value whose path has an index. An absent field counts as
// "", and is in no index.
func (s *Snapshot) planFields(p *plan, f *Feed) error {
	for i := range p.selector.fields {
		r := &p.selector.fields[i]
		value, ok := r.Wants()
		if !ok || value == "" || r.Field.IsLabel() || !r.Field.Path.IsNarrow() {
			continue
		}
		text := r.Field.Path.String()
		d, err := s.findIndex(f.ID, func(d *indexDefinition) bool { return d.Ready && len(d.Paths) == 1 && d.Paths[0] == text })
		if err == nil && d != nil {
			err = s.addTerm(p, d, false, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inNamespace returns how many objects a namespace has; all: this is not known.
func (s *Snapshot) inNamespace(f *Feed, namespace string, all uint64) (n uint64, err error) {
	d, err := s.findIndex(f.ID, func(d *indexDefinition) bool { return d.Name == IndexNamespace })
	if err != nil || d == nil || !d.Ready {
		return all, err
	}
	terms, err := s.findTerms(d.id, namespace)
	for i := range terms {
		n += terms[i].count
	}
	return n, err
}

// choose takes the rarest value as the driver if that is cheaper than the names, and reads the ids.
func (s *Snapshot) choose(p *plan, f *Feed, query *Query) (err error) {
	slices.SortStableFunc(p.terms, func(a, b planTerm) int { return compareNumbers(a.count, b.count) })
	if len(p.terms) == 0 {
		return nil
	}
	least, most := p.terms[0].count, uint64(sortMost)
	if least == 0 {
		p.byValue = true
		return nil // nobody has one of them
	}
	all := s.feeds.of(f.ID).objects
	candidates := all
	if f.Namespaced && query.Namespace != "" {
		if candidates, err = s.inNamespace(f, query.Namespace, all); err != nil {
			return err
		}
		most = min(most, candidates/2) // a name costs half: the key of an id is somewhere else
	}
	if p.byValue = least <= most; p.byValue {
		candidates = least
	}
	for i, t := range p.terms {
		first := i == 0 && p.byValue
		if !first && !t.asked && (t.count > intersectMost*candidates || !p.byValue && t.count >= all/4) {
			continue
		}
		ids, err := s.postings(t.terms)
		if err != nil {
			return err
		}
		if p.ids == nil {
			p.ids = ids
		} else {
			p.ids = intersect(p.ids, ids)
		}
		candidates = min(candidates, uint64(len(p.ids)))
	}
	return nil
}

func compareNumbers(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// intersect keeps those of a that are in b, both ascending. It never returns nil.
func intersect(a, b []uint64) []uint64 {
	n := 0
	for _, id := range a {
		for len(b) > 0 && b[0] < id {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == id {
			a[n] = id
			n++
		}
	}
	return a[:n]
}

// ---- candidates -------------------------------------------------------------------

type candidate struct {
	key string
	e   entry
}

// candidates returns the objects of a plan by value in the order of their keys.
func (s *Snapshot) candidates(p *plan, prefix []byte, after string) (all []candidate, err error) {
	all = make([]candidate, 0, len(p.ids))
	for _, id := range p.ids {
		key, e, err := s.object(id)
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(key, prefix) && string(key) > after {
			all = append(all, candidate{string(key), e})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.key, b.key) })
	return all, nil
}
