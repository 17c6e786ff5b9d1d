// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

// A list needs the feeds of the namespaces that it asks for. Those that can't be listed are left out, as
// by libkinf.
func TestAListNeedsOnlyItsNamespaces(t *testing.T) {
	t.Parallel()
	w := lab.New(t, 10, "\n- {resource: pods}\n")
	w.Put("secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"web","name":"one"}}`)
	fault := func(namespace string, status int) string {
		id := w.Control("POST", "/faults", nil, fmt.Sprintf(`{"path": "/namespaces/%s/", "status": %d, "body": "{}"}`, namespace, status))
		return strings.Trim(string(id), "{}\n\":id")
	}
	fault("barred", 403)
	slow := fault("slow", 500)
	w.WaitFor("pods", "synced")
	w.Configure("- {resource: secrets, namespaces: [web, barred, slow]}\n")
	store := openStore(t, w.Store)
	list := func(namespace string) (keys []string, last error) {
		last = store.View(func(s *kinf.Snapshot) error {
			keys = nil
			for o, err := range s.List("secrets", kinf.Query{Namespace: namespace}) {
				if err != nil {
					return err
				}
				keys = append(keys, o.Key)
			}
			return nil
		})
		return keys, last
	}
	check := func(namespace, want string) {
		t.Helper()
		keys, err := list(namespace)
		if want == "" && !errors.Is(err, kinf.ErrNotYet) || want != "" && (err != nil || strings.Join(keys, " ") != want) {
			t.Errorf("'%s': %v %v, not '%s'", namespace, keys, err, want)
		}
	}
	w.Eventually("the list of a namespace", func() bool { _, err := list("web"); return err == nil })
	w.Eventually("the states", func() bool { return strings.Contains(string(w.Status()), "forbidden") })
	check("web", "web/one")
	for _, namespace := range []string{"barred", "slow", ""} {
		check(namespace, "")
	}
	w.Control("DELETE", "/faults/"+slow, nil, nil)
	w.Eventually("the slow list", func() bool { _, err := list("slow"); return err == nil })
	check("", "web/one")
	check("barred", "")
	if out := string(w.Kinf("get", "secrets", "-A", "-o", "name")); out != "secret/one\n" {
		t.Errorf("libkinf: %q", out)
	}
}
