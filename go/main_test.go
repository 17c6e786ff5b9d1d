// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails if a goroutine of the module outlives the tests, which close all that they open.
func TestMain(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(5 * time.Second); code == 0; time.Sleep(10 * time.Millisecond) {
		left := leaked()
		if left == "" {
			break
		}
		if time.Now().After(end) {
			fmt.Fprintf(os.Stderr, "a goroutine is left:\n%s\n", left)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked returns the stack of a goroutine in the module, but for this one; "": there is none.
func leaked() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range strings.Split(string(stacks), "\n\n")[1:] {
		if strings.Contains(stack, "\nkinf") {
			return stack
		}
	}
	return ""
}
