// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kinf"
	"kinf/internal/lab"
)

// A state that the type refuses is an error, and unknown to the next change.
func TestFollowWhatATypeRefuses(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 1)
	c, err := Follow(t.Context(), store, Scope{Resource: podResource}, &picky{}, "web.pods")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	next := func() Change {
		t.Helper()
		change, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	for next().Type != kinf.Synced {
	}
	put := func(node string) {
		w.Put("pods", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"x"},"spec":{"nodeName":%q}}`, node))
	}
	refused := func() {
		t.Helper()
		put("bad")
		if change, err := c.Next(ctx); !errors.Is(err, errRefused) {
			t.Fatal(change, err)
		}
	}
	refused()
	put("a")
	if change := next(); change.New == nil || change.Old.(*picky).Name != "x" || change.Unknown {
		t.Errorf("mended: %v", change)
	}
	refused()
	w.Delete("pods", "web/x")
	if change := next(); change.New != nil || change.Old.(*picky).Name != "x" || !change.Unknown {
		t.Errorf("deleted: %v", change)
	}
}

// An event that no read shows in time is not handled: the next follower of the cursor gets it.
func TestCommitLeavesOutWhatNextDidNotGive(t *testing.T) {
	t.Parallel()
	w, store, _ := world(t, 1)
	open := func() *Changes {
		c, err := Follow(t.Context(), store, Scope{Resource: podResource}, &corev1.Pod{}, "web.pods")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	next := func(c *Changes, patience time.Duration) (Change, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c.Next(ctx)
	}
	end := func(c *Changes) {
		if err := errors.Join(c.Commit(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	c := open()
	for change, err := next(c, lab.Patience); change.Type != kinf.Synced; change, err = next(c, lab.Patience) {
		if err != nil {
			t.Fatal(err)
		}
	}
	processor := w.Processes()["processor"]
	if err := syscall.Kill(processor, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.Put("pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"new"}}`)
	for c.read == nil { // it has come, and the index stands still
		if change, err := next(c, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(change, err)
		}
	}
	end(c)
	if err := syscall.Kill(processor, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c = open()
	defer end(c)
	change, err := next(c, lab.Patience)
	if err == nil && change.Type == kinf.Synced {
		change, err = next(c, lab.Patience)
	}
	if pod, ok := change.New.(*corev1.Pod); err != nil || !ok || pod.Name != "new" {
		t.Errorf("%v %v, not the new pod", change, err)
	}
}
