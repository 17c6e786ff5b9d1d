// SPDX-License-Identifier: Apache-2.0

// Package selector has label and field selectors with the grammar and the errors of the API server
// (common/value/selector.h). They are evaluated on a stored body.
package selector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kinf/internal/msgpack"
	"kinf/internal/path"
)

// An Op is the operator of a requirement.
type Op int

// The operators. Those after Less are of fields only.
const (
	In     Op = iota // =, ==, in: present and one of the values
	NotIn            // !=, notin: absent, or none of the values
	Exists           // KEY
	NotExists
	Greater
	Less
	GreaterEqual
	LessEqual
)

func (o Op) compares() bool { return o >= Greater }

// A Requirement is one condition of a selector; all have to hold.
type Requirement struct {
	Key    string
	Op     Op
	Values []string
	Field  *Field // of a field selector
	limit  limit  // of a comparison of fields
}

// Wants returns the one value that the requirement allows.
func (r *Requirement) Wants() (string, bool) {
	if r.Op != In || len(r.Values) != 1 {
		return "", false
	}
	return r.Values[0], true
}

// MayBeAbsent tells whether objects without the key meet the requirement.
func (r *Requirement) MayBeAbsent() bool { return r.Op == NotIn || r.Op == NotExists }

// Matches tells whether a body meets all requirements, of labels or of fields. It panics as
// msgpack.Value does.
func Matches(body msgpack.Value, labels, fields []Requirement) bool {
	if len(labels) > 0 && !matchesLabels(body, labels) {
		return false
	}
	for i := range fields {
		r := &fields[i]
		// One matching value of several is enough, also for "!=".
		if r.Field.each(body, func(text string) bool { return !r.allows(text) }) {
			return false
		}
	}
	return true
}

func (r *Requirement) allows(text string) bool {
	switch {
	case r.Op.compares():
		return r.limit.allows(r.Op, text)
	case r.Op == In:
		return slices.Contains(r.Values, text)
	}
	return !slices.Contains(r.Values, text)
}

func matchesLabels(body msgpack.Value, requirements []Requirement) bool {
	metadata, _ := find(body, "metadata")
	labels, hasLabels := find(metadata, "labels")
	for i := range requirements {
		r := &requirements[i]
		label, ok := msgpack.Value{}, false
		if hasLabels {
			label, ok = labels.Find(r.Key)
		}
		text := ""
		if ok && label.IsString() {
			text, _ = label.Text()
		}
		if !r.allowsLabel(text, ok) {
			return false
		}
	}
	return true
}

func find(in msgpack.Value, key string) (msgpack.Value, bool) {
	if in.IsNone() {
		return in, false
	}
	return in.Find(key)
}

func (r *Requirement) allowsLabel(text string, present bool) bool {
	switch r.Op {
	case In:
		return present && slices.Contains(r.Values, text)
	case NotIn:
		return !present || !slices.Contains(r.Values, text)
	case Exists:
		return present
	case NotExists:
		return !present
	}
	have, err := strconv.ParseInt(text, 10, 64)
	if !present || err != nil {
		return false
	}
	than, _ := strconv.ParseInt(r.Values[0], 10, 64)
	return r.Op == Greater && have > than || r.Op == Less && have < than
}

// ---- fields ---------------------------------------------------------------------

// fieldLabel is a field label of the API server: a name with a default, or for another field.
type fieldLabel struct {
	kind, group, name string
	paths             []string // the first that is not empty
	absent            string
}

var fieldLabels = []fieldLabel{
	{"Pod", "", "spec.host", []string{"spec.nodeName"}, ""},
	{"Pod", "", "spec.hostNetwork", []string{"spec.hostNetwork"}, "false"},
	{"Node", "", "spec.unschedulable", []string{"spec.unschedulable"}, "false"},
	{"ReplicationController", "", "status.replicas", []string{"status.replicas"}, "0"},
	{"Job", "batch", "status.successful", []string{"status.succeeded"}, "0"},
	{"Event", "", "source", []string{"source.component", "reportingComponent"}, ""},
	{"Event", "events.k8s.io", "source", []string{"deprecatedSource.component", "reportingController"}, ""},
}

// A Field is a path into an object, or a field label of some kinds.
type Field struct {
	Path   *path.Path
	labels []label
}

type label struct {
	*fieldLabel
	paths []*path.Path
}

// IsLabel tells whether the field is a field label of some kind: an index of its path can't decide then.
func (f *Field) IsLabel() bool { return len(f.labels) > 0 }

func parseField(name string) (*Field, error) {
	p, err := path.Parse(name)
	if err != nil {
		return nil, err
	}
	f := &Field{Path: p}
	for i := range fieldLabels {
		if fieldLabels[i].name != name {
			continue
		}
		l := label{fieldLabel: &fieldLabels[i]}
		for _, text := range fieldLabels[i].paths {
			p, err := path.Parse(text)
			if err != nil {
				return nil, err
			}
			l.paths = append(l.paths, p)
		}
		f.labels = append(f.labels, l)
	}
	return f, nil
}

// isOf tells whether a body is of the label's kind, as one without a kind is.
func (l *label) isOf(body msgpack.Value) bool {
	kind, ok := body.Find("kind")
	if !ok {
		return true
	}
	if text, _ := kind.Text(); !kind.IsString() || text != l.kind {
		return false
	}
	version, ok := body.Find("apiVersion")
	if !ok || !version.IsString() {
		return false
	}
	text, _ := version.Text()
	group, _, found := strings.Cut(text, "/")
	return group == l.group && found || !found && l.group == ""
}

// each calls fn for each value of the field until it returns false; an absent field has one value.
func (f *Field) each(body msgpack.Value, fn func(string) bool) bool {
	for i := range f.labels {
		l := &f.labels[i]
		if !l.isOf(body) {
			continue
		}
		for _, p := range l.paths {
			present := false
			if !p.Texts(body, func(text string, _ bool) bool {
				present = present || text != ""
				return text == "" || fn(text)
			}) {
				return false
			}
			if present {
				return true
			}
		}
		return fn(l.absent)
	}
	present := false
	if !f.Path.Texts(body, func(text string, _ bool) bool {
		present = true
		return fn(text)
	}) {
		return false
	}
	return present || fn("")
}

func quoted(s string) string {
	var to strings.Builder
	to.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&to, `\x%02x`, c)
		case c == '"' || c == '\\':
			to.Write([]byte{'\\', c})
		default:
			to.WriteByte(c)
		}
	}
	to.WriteByte('"')
	return to.String()
}
