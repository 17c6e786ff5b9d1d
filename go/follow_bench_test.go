// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"syscall"
	"testing"

	"kinf"
)

// cpu returns the process's CPU time in ns.
func cpu() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(0, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// BenchmarkFollow reads 5,000 pods, then 5,000 changes with the states before them.
func BenchmarkFollow(b *testing.B) {
	const n = 5000
	w := synced(b, n)
	store := openStore(b, w.Store)
	feed, err := snapshot(b, store).Feeds("pods")
	if err != nil {
		b.Fatal(err)
	}
	touch(b, w, store, n)
	run := func(options kinf.FollowOptions) func(*testing.B) {
		options.Feed = "pods"
		return func(b *testing.B) {
			began := cpu()
			for range b.N {
				f := follow(b, store, options)
				bytes := 0
				for range n + 1 { // and Synced
					if e := next(b, f); e.Object != nil {
						bytes += len(e.Object.Raw())
					}
				}
				f.Close()
				b.SetBytes(int64(bytes))
			}
			b.ReportMetric(float64(cpu()-began)/float64(b.N*n), "cpu-ns/event")
		}
	}
	b.Run("objects", run(kinf.FollowOptions{}))
	b.Run("changes", run(kinf.FollowOptions{After: feed[0].Event}))
}
