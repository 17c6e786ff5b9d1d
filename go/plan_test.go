// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"testing"

	"kinf/internal/lab"
)

// Of 200 pods 133 are of the tier, 29 of the version, 4 of the app, and 20 are in the namespace.
func TestPlanReadsTheFewestCandidates(t *testing.T) {
	w := lab.New(t, 200, "- {resource: pods}\n")
	w.WaitFor("pods", "synced")
	store, err := Open(w.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	set, err := s.Feeds("pods")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		namespace, labels string
		byValue           bool
		ids               int
	}{
		{"", "tier=back", true, 133},
		{"ns-1", "tier=back", false, 0},
		{"ns-1", "app.kubernetes.io/version=1.3.0", false, 29},
		{"ns-1", "app=app-1", true, 4},
		{"ns-1", "app=app-1,tier=back", true, 4},
		{"", "app in (app-1,app-3,none)", true, 8},
		{"ns-1", "app in (app-1,app-3,none)", true, 8},
		{"", "app in (none,nobody)", true, 0},
		{"ns-1", "none=x", true, 0},
		{"none", "app=app-1", false, 0},
	} {
		query := Query{Namespace: c.namespace, LabelSelector: c.labels}
		selector, err := ParseSelector(query.LabelSelector, "")
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.plan(&set[0], &query, selector)
		if err != nil || p.byValue != c.byValue || len(p.ids) != c.ids {
			t.Errorf("%+v: %v, by value: %v, %d ids", c, err, p.byValue, len(p.ids))
		}
	}
	for fields, prefix := range map[string]string{"metadata.name=pod-1": "", "metadata.namespace=ns-1": "ns-1/",
		"metadata.namespace=ns-1,metadata.name=pod-1": "ns-1/pod-1"} {
		l, err := s.open("pods", Query{FieldSelector: fields})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = l.openFeed(); err != nil || string(l.walk.prefix[4:]) != prefix {
			t.Errorf("%s: %v, names from '%s'", fields, err, l.walk.prefix[4:])
		}
		c, found, err := l.candidate()
		if err != nil || !found || l.name != "" && c.key != "ns-1/pod-1" {
			t.Errorf("%s: %v, candidate '%s'", fields, err, c.key)
		}
	}
}
