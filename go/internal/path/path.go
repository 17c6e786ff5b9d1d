// SPDX-License-Identifier: Apache-2.0

// Package path has the field paths of kinf.yaml, indexes and selectors (common/value/path.h): kubectl's
// jsonpath, followed in a stored body.
package path

import (
	"fmt"
	"math"
	"strings"

	"kinf/internal/msgpack"
)

type stepKind int

const (
	stepKey stepKind = iota
	stepIndex
	stepSlice
	stepAll
	stepDescent // the value, and each map, list and text in it
	stepFilter  // the matching items of a list
	stepUnion   // the values of each of several paths
)

const (
	opExists = iota
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
)

var operators = [...]string{"", "==", "!=", "<", "<=", ">", ">="}

const (
	stepsMost    = 128
	nestedMost   = 8   // filters within filters
	waysMost     = 256 // combinations of the members of unions
	descentsMost = 3
)

type step struct {
	kind         stepKind
	key          string
	from, to, by int64
	hasFrom      bool
	filter       *filter
	union        []member
}

// operand is one side of a comparison: a path in the item, or a constant.
type operand struct {
	path     *Path
	constant msgpack.Value
}

type filter struct {
	left, right operand
	operator    int
}

// member is one of a union. A quoted text without such a key in the map is a path, as in kubectl.
type member struct {
	path, otherwise *Path
	quoted          string // the text, if it has dots
}

// A Path leads to values in an object. It never changes.
type Path struct {
	steps []step
	text  string
}

// String returns the canonical text.
func (p *Path) String() string { return p.text }

// IsNarrow tells whether the path has only keys, item numbers and filters by one value: it names one
// place, or few items.
func (p *Path) IsNarrow() bool {
	for _, s := range p.steps {
		f := s.filter
		if s.kind != stepKey && s.kind != stepIndex &&
			(s.kind != stepFilter || f.operator != opEqual || f.left.path == nil || f.right.path != nil) {
			return false
		}
	}
	return true
}

// IsWithin tells whether the path leads to or into a subtree, the canonical text of a path of keys.
func (p *Path) IsWithin(subtree string) bool {
	rest, found := strings.CutPrefix(p.text, subtree)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// IsOfMetadata tells whether the path may find something in an object of only apiVersion, kind and
// metadata.
func (p *Path) IsOfMetadata() bool {
	if len(p.steps) == 0 || p.steps[0].kind != stepKey {
		return true
	}
	first := p.steps[0].key
	return first == "metadata" || first == "kind" || first == "apiVersion"
}

// ---- canonical text -------------------------------------------------------------

func isPlain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || strings.IndexByte("_-/$@:", c) >= 0
}

func isPlainKey(key string) bool {
	for i := range len(key) {
		if !isPlain(key[i]) {
			return false
		}
	}
	return key != ""
}

func writeKey(to *strings.Builder, key string, first bool) {
	if isPlainKey(key) && !(first && (key == "$" || key == "@")) {
		if !first {
			to.WriteByte('.')
		}
		to.WriteString(key)
		return
	}
	to.WriteString("['" + strings.NewReplacer(`'`, `\'`, `\`, `\\`).Replace(key) + "']")
}

func writeOperand(to *strings.Builder, o *operand) {
	if o.path != nil {
		to.WriteByte('@')
		o.path.write(to, false)
		return
	}
	text, _ := o.constant.Text()
	if !o.constant.IsString() {
		to.WriteString(text)
		return
	}
	to.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			fmt.Fprintf(to, `\x%02x`, c)
		case c == '"' || c == '\\':
			to.Write([]byte{'\\', c})
		default:
			to.WriteByte(c)
		}
	}
	to.WriteByte('"')
}

func (s *step) writeUnion(to *strings.Builder) {
	to.WriteByte('[')
	for i, m := range s.union {
		if i > 0 {
			to.WriteByte(',')
		}
		var own strings.Builder
		m.path.write(&own, true)
		text := own.String()
		switch {
		case m.quoted != "":
			to.WriteString(m.quoted)
		case m.path.steps[0].kind == stepKey && text[0] != '[':
			to.WriteString("'" + text + "'")
		default: // without its own brackets
			to.WriteString(text[1 : len(text)-1])
		}
	}
	to.WriteByte(']')
}

func (s *step) writeSlice(to *strings.Builder) {
	to.WriteByte('[')
	if s.hasFrom {
		fmt.Fprint(to, s.from)
	}
	to.WriteByte(':')
	if s.to != math.MaxInt64 {
		fmt.Fprint(to, s.to)
	}
	if s.by != 1 {
		fmt.Fprintf(to, ":%d", s.by)
	}
	to.WriteByte(']')
}

func (p *Path) write(to *strings.Builder, first bool) {
	afterDescent := false
	for i := range p.steps {
		s := &p.steps[i]
		switch s.kind {
		case stepKey:
			writeKey(to, s.key, first || afterDescent)
		case stepIndex:
			fmt.Fprintf(to, "[%d]", s.from)
		case stepAll:
			to.WriteString("[*]")
		case stepDescent:
			to.WriteString("..")
		case stepSlice:
			s.writeSlice(to)
		case stepUnion:
			s.writeUnion(to)
		case stepFilter:
			to.WriteString("[?(")
			writeOperand(to, &s.filter.left)
			to.WriteString(operators[s.filter.operator])
			if s.filter.operator != opExists {
				writeOperand(to, &s.filter.right)
			}
			to.WriteString(")]")
		}
		afterDescent, first = s.kind == stepDescent, false
	}
}
