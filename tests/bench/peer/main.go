// SPDX-License-Identifier: Apache-2.0

// Command peer does with client-go's work queue what tests/bench/workqueue.c does with ours, and prints
// the same line of JSON. usage: peer KEYS THREADS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const waiting = 1000

type queue = workqueue.TypedInterface[string]

func must(ok bool, what string) {
	if !ok {
		fmt.Fprintln(os.Stderr, "peer:", what)
		os.Exit(1)
	}
}

func add(q queue, number int) {
	q.Add(fmt.Sprintf("team-%05d/shop-%07d", number/400, number))
}

func take(q queue) bool {
	key, shutdown := q.Get()
	if shutdown {
		return false
	}
	q.Done(key)
	return true
}

func runAlone(q queue, keys int) {
	for done := 0; done < keys; done += waiting {
		for i := range waiting {
			add(q, done+i)
		}
		for range waiting {
			must(take(q), "get")
		}
	}
}

func runThreads(q queue, keys, pairs int) int {
	var adders, workers sync.WaitGroup
	var taken atomic.Int64
	for i := range pairs {
		workers.Go(func() {
			n := int64(0)
			for take(q) {
				n++
			}
			taken.Add(n)
		})
		adders.Go(func() {
			for k := range keys / pairs {
				add(q, i*(keys/pairs)+k)
			}
		})
	}
	adders.Wait()
	q.ShutDown()
	workers.Wait()
	return int(taken.Load())
}

func cpu() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil, "getrusage")
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err == nil && n > 0, "usage: peer KEYS THREADS")
	return n
}

func main() {
	must(len(os.Args) == 3, "usage: peer KEYS THREADS")
	keys, pairs := number(os.Args[1])/waiting*waiting, number(os.Args[2])/2
	q := workqueue.NewTyped[string]()
	begin, cpu0 := time.Now(), cpu()
	if pairs > 0 {
		must(runThreads(q, keys, pairs) == keys/pairs*pairs, "keys were lost")
	} else {
		runAlone(q, keys)
	}
	wall := time.Since(begin).Seconds()
	must(json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"keys_per_s":     float64(keys) / wall,
		"cpu_us_per_key": (cpu() - cpu0) / float64(keys) * 1e6,
	}) == nil, "stdout")
}
