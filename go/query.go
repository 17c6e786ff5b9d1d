// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"strings"

	"kinf/internal/msgpack"
	"kinf/internal/path"
	"kinf/internal/selector"
)

// A Query selects objects of a feed; the zero value selects all.
type Query struct {
	Namespace     string // "": all
	Prefix        string // of the object's name; needs a namespace, if the kind has them
	LabelSelector string // as for kubectl -l
	FieldSelector string // PATH=VALUE, PATH!=VALUE, PATH>NUMBER, age<10m ..., separated by commas
	After         string // only keys after this one
	Limit         int    // at most so many; 0: no limit
	terms         []wantedTerm
}

// A Selector is a label selector and a field selector, as in a Query.
type Selector struct {
	labels, fields []selector.Requirement
}

// ParseSelector parses a selector of labels and one of fields; either may be empty. ErrSyntax, in the
// words of the API server.
func ParseSelector(labels, fields string) (*Selector, error) {
	s := &Selector{}
	var err error
	if s.labels, err = selector.ParseLabels(labels); err != nil {
		return nil, say(ErrSyntax, "label selector '%s': %v", labels, err)
	}
	if s.fields, err = selector.ParseFields(fields); err != nil {
		return nil, say(ErrSyntax, "%v", err)
	}
	return s, nil
}

// IsEmpty tells whether the selector matches everything.
func (s *Selector) IsEmpty() bool { return len(s.labels)+len(s.fields) == 0 }

// wantsField returns the one value that a field must have; "": there may be others.
func (s *Selector) wantsField(path string) string {
	for i := range s.fields {
		r := &s.fields[i]
		if value, ok := r.Wants(); ok && !r.Field.IsLabel() && r.Field.Path.String() == path {
			return value
		}
	}
	return ""
}

// Matches tells whether an object meets both selectors. An object without a body, as a deletion may be,
// meets the empty one only.
func (s *Selector) Matches(o *Object) (bool, error) {
	if s.IsEmpty() {
		return true, nil
	}
	if len(o.body) == 0 {
		return false, nil
	}
	matches, err := s.matches(o.body)
	return matches, o.result(err)
}

func (s *Selector) matches(body []byte) (matches bool, err error) {
	err = msgpack.Walk(body, func(v msgpack.Value) { matches = selector.Matches(v, s.labels, s.fields) })
	return matches, err
}

// ---- limits of a feed -------------------------------------------------------------

func (f *Feed) keeps(p *path.Path) bool {
	if f.MetadataOnly && !p.IsOfMetadata() {
		return false
	}
	for _, dropped := range f.Drop {
		if p.IsWithin(dropped) {
			return false
		}
	}
	return true
}

func (f *Feed) mustKeep(p *path.Path) error {
	if f.keeps(p) {
		return nil
	}
	return say(ErrSyntax, "the objects of feed '%s' are kept without '%s' ('objects' or 'drop' in kinf.yaml): "+
		"it can't select or sort by that", f.Name, p)
}

// check refuses a selector of what the feed drops.
func (s *Selector) check(f *Feed) error {
	for i := range s.fields {
		if err := f.mustKeep(s.fields[i].Field.Path); err != nil {
			return err
		}
	}
	if !strings.Contains(strings.Join(f.Drop, "\n"), "metadata.labels") { // in nearly all feeds
		return nil
	}
	for i := range s.labels {
		p, err := path.Parse("metadata.labels['" + s.labels[i].Key + "']")
		if err != nil {
			return say(ErrSyntax, "%v", err)
		}
		if err := f.mustKeep(p); err != nil {
			return err
		}
	}
	return nil
}

// ---- field paths ------------------------------------------------------------------

// A FieldPath is a path into objects, as in the indexes of kinf.yaml and in field selectors: kubectl's
// jsonpath without its braces. It never changes.
type FieldPath struct{ path *path.Path }

// ParsePath parses a path such as spec.nodeName or status.conditions[type=Ready].status. ErrSyntax.
func ParsePath(text string) (*FieldPath, error) {
	p, err := path.Parse(text)
	if err != nil {
		return nil, say(ErrSyntax, "%v", err)
	}
	return &FieldPath{p}, nil
}

// String returns the canonical text: paths that are written in different ways have the same.
func (p *FieldPath) String() string { return p.path.String() }

// Values returns what an index of this path has of an object: the text of each scalar but null.
func (p *FieldPath) Values(o *Object) ([]string, error) {
	if len(o.body) == 0 {
		return nil, nil
	}
	values, err := pathValues([]*path.Path{p.path}, o.body)
	return values, o.result(err)
}

// ValuesOfJSON is Values for an object as encoding/json writes it.
func (p *FieldPath) ValuesOfJSON(text []byte) ([]string, error) {
	return pathValues([]*path.Path{p.path}, msgpack.FromJSON(text))
}

const valuesMost = 4096 // an object with more of them in an index has none there

// pathValues returns the values of an object in an index of paths: of several one for each combination.
func pathValues(paths []*path.Path, body []byte) (values []string, err error) {
	parts := make([][]string, len(paths))
	found := 0
	err = msgpack.Walk(body, func(v msgpack.Value) {
		for i, p := range paths {
			p.Texts(v, func(text string, isNull bool) bool {
				if !isNull {
					parts[i] = append(parts[i], text)
					found++
				}
				return found <= valuesMost
			})
		}
	})
	if err != nil || found > valuesMost || len(paths) == 1 {
		if found > valuesMost {
			return nil, err
		}
		return parts[0], err
	}
	values = []string{""}
	for i, part := range parts {
		if len(part)*len(values) > valuesMost {
			return nil, nil
		}
		var longer []string
		for _, begin := range values {
			if i > 0 {
				begin += ","
			}
			for _, text := range part {
				longer = append(longer, begin+escapePart(text))
			}
		}
		values = longer
	}
	return values, nil
}

var partEscapes = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

func escapePart(s string) string { return partEscapes.Replace(s) }

// CompoundValue returns the value of an index of several paths that has these parts.
func CompoundValue(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = escapePart(part)
	}
	return strings.Join(escaped, ",")
}

// countParts is the number of parts in the value of an index of several paths.
func countParts(value string) int {
	parts := 1
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case ',':
			parts++
		}
	}
	return parts
}
