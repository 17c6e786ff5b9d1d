// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

func scrape(e *exporter) (int, string) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

// Each pod has a line with its node's zone, as kinf get has them.
func TestAScrapeOfAThousandPods(t *testing.T) {
	w := lab.New(t, 1000, "- {resource: pods}\n- {resource: nodes}\n")
	for _, feed := range []string{"pods", "nodes"} {
		w.WaitFor(feed, "synced")
	}
	store, err := kinf.Open(w.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	columns := func(path ...string) string {
		return "custom-columns=a:" + strings.Join(path, ",b:")
	}
	zones := map[string]string{}
	for line := range strings.Lines(string(w.Kinf("get", "nodes", "--no-headers", "-o",
		columns(".metadata.name", ".metadata.labels['topology.kubernetes.io/zone']")))) {
		words := strings.Fields(line)
		zones[words[0]] = words[1]
	}
	for selector, n := range map[string]int{"": 1000, "app=app-1": 20} {
		status, text := scrape(&exporter{store, selector})
		if status != http.StatusOK {
			t.Fatal(status, text)
		}
		got := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^pod_restarts_total\{.* \d+$`).FindAllString(text, -1) {
			got[line[:strings.LastIndex(line, " ")]] = true
		}
		want, inZones := 0, 0
		for line := range strings.Lines(string(w.Kinf("get", "pods", "-A", "-l", selector, "--no-headers", "-o",
			columns(".metadata.namespace", ".metadata.name", ".status.phase", ".spec.nodeName")))) {
			f := strings.Fields(strings.ReplaceAll(line, "<none>", `""`))
			for i := range f {
				f[i] = strings.Trim(f[i], `"`) // a pod without a node
			}
			want++
			is := `pod_restarts_total{namespace="` + f[0] + `",pod="` + f[1] + `",phase="` + f[2] + `",node="` + f[3] + `",zone="` +
				zones[f[3]] + `"}`
			if !got[is] {
				t.Errorf("no %s", is)
			}
			if zones[f[3]] != "" {
				inZones++
			}
		}
		if len(got) != n || want != n || inZones < n*9/10 || !strings.Contains(text, "\nscrape_pods "+strconv.Itoa(n)+"\n") {
			t.Errorf("%q: %d pods, kinf has %d, not %d:\n%.500s", selector, len(got), want, n, text)
		}
	}
	if status, text := scrape(&exporter{store, "app=-"}); status != http.StatusServiceUnavailable || !strings.Contains(text, "app=-") {
		t.Error(status, text)
	}
}
