// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

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
		resource := schema.GroupVersionResource{Group: f.Group, Version: f.Version, Resource: f.Resource}
		if resource != s.Resource || strings.HasSuffix(f.Name, "~next") {
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
func (s *Scope) isWhole() bool {
	return (s.Labels == nil || s.Labels.Empty()) && (s.Fields == nil || s.Fields.Empty())
}

var plainPath, plainValue = regexp.MustCompile(`^[A-Za-z.]+$`), regexp.MustCompile(`^[A-Za-z0-9._:/-]+$`)

// narrow adds to a query what the store can compare of the selectors, by its indexes where it has them.
// What it finds is still to be compared by selects: the API server's fields have defaults.
func (s *Scope) narrow(query kinf.Query) kinf.Query {
	add := func(to *string, text string) {
		if *to != "" && text != "" {
			*to += ","
		}
		*to += text
	}
	if s.Labels != nil {
		add(&query.LabelSelector, s.Labels.String())
	}
	if s.Fields == nil || s.Metadata || s.Resource.Resource == "events" {
		return query
	}
	for _, r := range s.Fields.Requirements() {
		if r.Operator != selection.NotEquals && r.Value != "false" && plainPath.MatchString(r.Field) && plainValue.MatchString(r.Value) {
			add(&query.FieldSelector, r.Field+"="+r.Value)
		}
	}
	return query
}

// selects tells whether an object is of the scope. Its namespace is not compared if the feed holds
// only that of the scope.
func (s *Scope) selects(o *kinf.Object) (bool, error) {
	if s.Namespace != "" && o.Namespace() != s.Namespace {
		return false, nil
	}
	if s.isWhole() {
		return true, nil
	}
	if s.Labels != nil && !s.Labels.Empty() {
		var labelled struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if err := o.Into(&labelled); err != nil {
			return false, err
		}
		if !s.Labels.Matches(labels.Set(labelled.Metadata.Labels)) {
			return false, nil
		}
	}
	if s.Fields == nil || s.Fields.Empty() {
		return true, nil
	}
	body, err := o.Unstructured()
	if err != nil {
		return false, err
	}
	return s.Fields.Matches(fieldsOf{body, s.Resource.Resource}), nil
}

// fieldsOf gives the fields of an object as the API server's field selectors know them.
type fieldsOf struct {
	body     map[string]any
	resource string
}

func (f fieldsOf) Has(string) bool { return true }

func (f fieldsOf) Get(path string) string {
	if f.resource == "events" && path == "source" {
		path = "source.component"
		if text := f.at(path); text != "" {
			return text
		}
		return f.at("reportingComponent")
	}
	return f.at(path)
}

func (f fieldsOf) at(path string) string {
	var value any = f.body
	for name := range strings.SplitSeq(path, ".") {
		members, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = members[name]
	}
	switch v := value.(type) {
	case nil:
		if path == "spec.unschedulable" || path == "spec.hostNetwork" {
			return "false"
		}
		return ""
	case map[string]any, []any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}
