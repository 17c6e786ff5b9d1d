// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kinf"
)

// ErrNotCovered says that no feed of the store holds what an informer wants to watch.
var ErrNotCovered = errors.New("not covered by a feed")

// A Scope is what an informer watches, as a request to the API server would name it.
type Scope struct {
	Resource  schema.GroupVersionResource
	Namespace string // "": all
	Labels    labels.Selector
	Fields    fields.Selector
	Metadata  bool // metadata is enough

	labelText, fieldText string
	selector             *kinf.Selector
}

func (s *Scope) String() string {
	text := s.Resource.Resource
	if s.Resource.Group != "" {
		text += "." + s.Resource.Group
	}
	if s.Namespace != "" {
		text += " in " + s.Namespace
	}
	if s.Labels != nil && !s.Labels.Empty() {
		text += " with labels " + s.Labels.String()
	}
	if s.Fields != nil && !s.Fields.Empty() {
		text += " with fields " + s.Fields.String()
	}
	return text
}

// misses tells why a feed does not hold the scope; "": it does.
func (s *Scope) misses(f *kinf.Feed) string {
	drops := func(path string) bool { return path != "metadata.managedFields" }
	switch {
	case s.Resource.Version != f.Version:
		return "it has the version " + f.Version + ", not " + s.Resource.Version
	case s.Namespace != f.Namespace && f.Namespace != "":
		return "it watches the namespace " + f.Namespace
	case f.MetadataOnly && !s.Metadata:
		return "it keeps metadata only"
	case f.MetadataOnly && s.Fields != nil && slices.ContainsFunc(s.Fields.Requirements(), isOfContent):
		return "it keeps no field that is selected"
	case f.LabelSelector != "" && !sameLabels(f.LabelSelector, s.Labels):
		return "it selects labels: " + f.LabelSelector
	case f.FieldSelector != "" && !sameFields(f.FieldSelector, s.Fields):
		return "it selects fields: " + f.FieldSelector
	case slices.ContainsFunc(f.Drop, drops):
		return "it drops " + strings.Join(f.Drop, ", ")
	}
	return ""
}

func isOfContent(r fields.Requirement) bool { return !strings.HasPrefix(r.Field, "metadata.") }

func sameLabels(text string, selector labels.Selector) bool {
	parsed, err := labels.Parse(text)
	return err == nil && selector != nil && parsed.String() == selector.String()
}

func sameFields(text string, selector fields.Selector) bool {
	parsed, err := fields.ParseSelector(text)
	return err == nil && selector != nil && parsed.String() == selector.String()
}

// find returns the feed of a snapshot that holds the scope.
func (s *Scope) find(snapshot *kinf.Snapshot) (*kinf.Feed, error) {
	feeds, err := snapshot.Feeds("")
	if err != nil {
		return nil, err
	}
	var reasons []string
	var found *kinf.Feed
	for i := range feeds {
		f := &feeds[i]
		if f.Group != s.Resource.Group || f.Resource != s.Resource.Resource || strings.HasSuffix(f.Name, "~next") {
			continue
		}
		if reason := s.misses(f); reason != "" {
			reasons = append(reasons, fmt.Sprintf("feed '%s': %s", f.Name, reason))
			continue
		}
		if found == nil || !found.Synced() && f.Synced() {
			found = f
		}
	}
	if found != nil {
		return found, nil
	}
	if len(reasons) == 0 {
		reasons = []string{fmt.Sprintf("add '- resource: %s' to the feeds in kinf.yaml", s.Resource.GroupResource())}
	}
	return nil, fmt.Errorf("%s: %w (%s)", s, ErrNotCovered, strings.Join(reasons, "; "))
}

// isWhole tells whether all objects of the namespace are of the scope.
func (s *Scope) isWhole() bool { return s.selector.IsEmpty() }

// parse parses the selectors for narrow and selects, with the API server's field labels and their defaults.
func (s *Scope) parse() (err error) {
	if s.Labels != nil {
		s.labelText = s.Labels.String()
	}
	if s.Fields != nil {
		s.fieldText = s.Fields.String()
	}
	s.selector, err = kinf.ParseSelector(s.labelText, s.fieldText)
	return err
}

// narrow adds the selectors to a query of labels.
func (s *Scope) narrow(query kinf.Query) kinf.Query {
	if query.LabelSelector != "" && s.labelText != "" {
		query.LabelSelector += ","
	}
	query.LabelSelector += s.labelText
	query.FieldSelector = s.fieldText
	return query
}

// selects tells whether an object is of the scope.
func (s *Scope) selects(o *kinf.Object) (bool, error) {
	if s.Namespace != "" && o.Namespace() != s.Namespace {
		return false, nil
	}
	return s.selector.Matches(o)
}
