// SPDX-License-Identifier: Apache-2.0

// Command queue is client-go's side of the comparison of work queues: it does what stdin says, one operation a
// line, and prints a line for each. ../../README.md has the protocol.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const patience = 30 * time.Second

type side struct {
	queue   workqueue.TypedInterface[string]
	working map[string]bool
	drained chan struct{} // of a drain that was begun
}

func (s *side) get() string {
	if s.queue.Len() == 0 && !s.queue.ShuttingDown() {
		return "empty"
	}
	key, end := s.queue.Get()
	if end {
		return "end"
	}
	s.working[key] = true
	return key
}

func (s *side) drain() string {
	if s.drained != nil || (s.queue.ShuttingDown() && len(s.working) > 0) {
		return "skipped" // nobody could tell when it has begun
	}
	s.drained = make(chan struct{})
	go func() {
		s.queue.ShutDownWithDrain()
		close(s.drained)
	}()
	for !s.queue.ShuttingDown() {
		time.Sleep(time.Millisecond)
	}
	return s.settled(len(s.working) == 0)
}

// settled waits for the drain if it must have ended, and says how it is.
func (s *side) settled(must bool) string {
	if s.drained == nil {
		return "no drain"
	}
	if must {
		select {
		case <-s.drained:
		case <-time.After(patience):
			return "hangs"
		}
	}
	select {
	case <-s.drained:
		return "drained"
	default:
		return "draining"
	}
}

func (s *side) do(words []string) string {
	switch words[0] {
	case "add":
		s.queue.Add(words[1])
		return fmt.Sprint(s.queue.Len())
	case "get":
		return s.get()
	case "done":
		if !s.working[words[1]] {
			return "not in work"
		}
		delete(s.working, words[1])
		s.queue.Done(words[1])
		return fmt.Sprint(s.queue.Len(), " ", s.settled(len(s.working) == 0))
	case "shutdown":
		s.queue.ShutDown()
		return s.settled(true)
	case "drain":
		return s.drain()
	case "state":
		return fmt.Sprint(s.queue.Len(), " ", s.queue.ShuttingDown())
	}
	panic(words[0])
}

func main() {
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var s *side
	for in.Scan() {
		words := strings.Fields(in.Text())
		if words[0] == "new" {
			if s != nil {
				s.queue.ShutDown()
			}
			s = &side{queue: workqueue.NewTyped[string](), working: map[string]bool{}}
			fmt.Fprintln(out, "new")
			continue
		}
		fmt.Fprintln(out, in.Text()+": "+s.do(words))
	}
}
