// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"kinf"
	"kinf/internal/lab"
)

func TestTheExampleGoesOnAtItsCursor(t *testing.T) {
	w := lab.New(t, 3, "- resource: pods\n")
	w.WaitFor("pods", "live")
	change := func() {
		w.Put("pods", map[string]any{"metadata": map[string]any{"name": "a", "namespace": "web"}})
		w.Put("pods", map[string]any{"metadata": map[string]any{"name": "a", "namespace": "web", "labels": map[string]string{"b": "c"}}})
		w.Delete("pods", "web/a")
	}
	// Each run ends after a line.
	run := func(last string) string {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		lines := &lineWriter{last: last, end: cancel}
		if err := follow(ctx, w.Store, kinf.FollowOptions{Feed: "pods", Cursor: "mine"}, lines); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return lines.text.String()
	}
	if out := run("SYNC"); !regexp.MustCompile(`^(ADDED \S+ \d+\n){3}SYNC\n$`).MatchString(out) {
		t.Error(out)
	}
	change()
	if out := run("DELETED"); !regexp.MustCompile(
		`^SYNC\nADDED web/a \d+\nMODIFIED web/a \d+ -> \d+\nDELETED web/a at \d+\n$`).MatchString(out) {
		t.Error(out)
	}
	if out := run("SYNC"); out != "SYNC\n" {
		t.Error(out)
	}
}

// lineWriter calls end after the line that begins with last.
type lineWriter struct {
	text strings.Builder
	last string
	end  func()
}

var _ io.Writer = (*lineWriter)(nil)

func (w *lineWriter) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), w.last) {
		w.end()
	}
	return w.text.Write(p)
}
