// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"kinf"
)

func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// reads measures reads of pods in the store of $KINF_STORE, with and without a cache of objects:
// `go test -run none -bench Reads`
func reads(b *testing.B, read func(i *Informer, pods []*corev1.Pod, n int) error) {
	if os.Getenv("KINF_STORE") == "" {
		b.Skip("no $KINF_STORE")
	}
	store, err := kinf.Open("", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for _, way := range []struct {
		name    string
		objects *ObjectCache
	}{{"decoded", nil}, {"kept", NewObjectCache(1 << 30)}} {
		b.Run(way.name, func(b *testing.B) {
			i := pods(b, store, Scope{}, Options{Objects: way.objects,
				Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
			run(b, i)
			synchronize(b, i.HasSyncedChecker())
			var all []*corev1.Pod
			for _, object := range i.GetStore().List() {
				all = append(all, object.(*corev1.Pod))
			}
			b.ReportAllocs()
			before, n := cpuTime(), 0
			for ; b.Loop(); n++ {
				if err := read(i, all, n); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(n), "cpu-ns/op")
		})
	}
}

func BenchmarkReadsGet(b *testing.B) {
	reads(b, func(i *Informer, pods []*corev1.Pod, n int) error {
		pod := pods[n*7919%len(pods)]
		_, _, err := i.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
		return err
	})
}

func BenchmarkReadsNamespace(b *testing.B) {
	reads(b, func(i *Informer, pods []*corev1.Pod, n int) error {
		items, err := i.GetIndexer().ByIndex(cache.NamespaceIndex, pods[n*7919%len(pods)].Namespace)
		b.ReportMetric(float64(len(items)), "objects/op")
		return err
	})
}
