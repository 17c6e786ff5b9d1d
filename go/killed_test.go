// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kinf"
)

// runFollower is the process that TestAKilledFollowerMissesNothing kills: it prints each event with a
// system call of its own.
func runFollower(t *testing.T, path string) {
	store := openStore(t, path)
	f, err := store.Follow(t.Context(), kinf.FollowOptions{Feed: "pods", Cursor: "killed"})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == kinf.Synced {
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		key := ""
		if e.Object != nil {
			key = e.Object.Key
		}
		fmt.Printf("event %s %d %s %t\n", e.Type, e.Number, key, e.Initial)
	}
}

func TestAKilledFollowerMissesNothing(t *testing.T) {
	if path := os.Getenv("KINF_TEST_FOLLOW"); path != "" {
		runFollower(t, path)
	}
	w := synced(t, 30)
	store := openStore(t, w.Store)
	all := follow(t, store, kinf.FollowOptions{Feed: "pods", Changes: true})
	next(t, all)
	kills := 12
	if testing.Short() {
		kills = 4
	}
	var got []string
	for kill := range kills {
		command := exec.Command(os.Args[0], "-test.run=TestAKilledFollowerMissesNothing$")
		command.Env = append(os.Environ(), "KINF_TEST_FOLLOW="+w.Store)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		command.Stderr = os.Stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		last := kill == kills-1
		synced := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				line, isEvent := strings.CutPrefix(lines.Text(), "event ")
				if !isEvent {
					continue
				}
				if strings.HasPrefix(line, "SYNC") {
					close(synced)
				} else if strings.HasSuffix(line, "false") {
					got = append(got, line)
				}
				if strings.Contains(line, "web/last") {
					return
				}
			}
		}()
		<-synced
		for range 10 {
			touchPods(t, w, 5)
		}
		w.Put("pods", pod("x", fmt.Sprint(kill)))
		if last {
			w.Put("pods", pod("last", ""))
			<-ended
		} else {
			time.Sleep(time.Duration(rand.Intn(80)) * time.Millisecond) // any instant
		}
		_ = command.Process.Signal(syscall.SIGKILL)
		_ = command.Wait()
		<-ended
	}
	var want []string
	for {
		e := next(t, all)
		want = append(want, fmt.Sprintf("%s %d %s false", e.Type, e.Number, e.Object.Key))
		if e.Object.Key == "web/last" {
			break
		}
	}
	// A killed one may get its last events again: the same ones, in order.
	doubled := 0
	for i := 0; i < len(got); {
		if i-doubled < len(want) && got[i] == want[i-doubled] {
			i++
			continue
		}
		back := slices.Index(want[:i-doubled], got[i])
		if back < 0 {
			t.Fatalf("event %d: '%s', not '%s'", i, got[i], want[i-doubled])
		}
		again := i - doubled - back
		doubled += again
	}
	if len(got)-doubled != len(want) || len(want) < kills*20 {
		t.Errorf("%d events, %d of them again, not %d", len(got), doubled, len(want))
	}
	t.Logf("%d events, %d of them again", len(want), doubled)
}
