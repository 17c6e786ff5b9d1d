// SPDX-License-Identifier: Apache-2.0

// Command measure prints what a program on client-go costs, as JSON: with the store of $KINF_STORE
// (kinf), or with its own caches (own). `make bench` runs it, on the cluster of $KUBECONFIG.
//
//	measure operator kinf|own    start, and memory; it then waits until its input ends
//	measure keys kinf|own        start of a program that needs keys only
//	measure reads kinf|own       reads of controller-runtime's cache, us of CPU
//	measure lister kinf|own      reads of a lister of client-go, us of CPU
//	measure events CONTROL       from a change in the simulator to the handlers of both
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kinf"
	"kinf/informers/factory"
)

type figures map[string]float64

var began = time.Now()

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func config() *rest.Config {
	config := must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	config.QPS = -1
	return config
}

func clientset() kubernetes.Interface { return must(kubernetes.NewForConfig(config())) }

func factoryOf(way string) informers.SharedInformerFactory {
	if way == "own" {
		return informers.NewSharedInformerFactory(clientset(), 0)
	}
	return factory.NewShared(must(kinf.Open("", nil)), clientset(), factory.Options{Require: true})
}

func cpu() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func privateMiB() float64 {
	_, rest, _ := strings.Cut(string(must(os.ReadFile("/proc/self/status"))), "RssAnon:")
	var kib float64
	must(fmt.Sscan(rest, &kib))
	return kib / 1024
}

func start(f informers.SharedInformerFactory) {
	f.StartWithContext(context.Background())
	f.WaitForCacheSyncWithContext(context.Background())
}

// operator watches pods, nodes and configmaps.
func operator(way string) figures {
	f := factoryOf(way)
	var handled atomic.Int64
	var registrations []cache.DoneChecker
	for _, i := range []cache.SharedIndexInformer{f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer(),
		f.Core().V1().ConfigMaps().Informer()} {
		r := must(i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { handled.Add(1) }}))
		registrations = append(registrations, r.HasSyncedChecker())
	}
	start(f)
	synced, used := time.Since(began), cpu()
	cache.WaitFor(context.Background(), "", registrations...)
	return figures{"synced_ms": ms(synced), "synced_cpu_ms": ms(used), "handled_ms": ms(time.Since(began)),
		"handled_cpu_ms": ms(cpu()), "objects": float64(handled.Load()), "private_mib": privateMiB()}
}

// keys needs the keys of pods, and no object.
func keys(way string) figures {
	f := factoryOf(way)
	pods := f.Core().V1().Pods().Informer()
	start(f)
	n := len(pods.GetStore().ListKeys())
	return figures{"ms": ms(time.Since(began)), "cpu_ms": ms(cpu()), "keys": float64(n)}
}

func main() {
	var result figures
	switch way := os.Args[len(os.Args)-1]; os.Args[1] {
	case "operator":
		result = operator(way)
	case "keys":
		result = keys(way)
	case "reads":
		result = reads(way)
	case "lister":
		result = lister(way)
	case "events":
		result = events(way)
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
	if os.Args[1] == "operator" {
		must(io.Copy(io.Discard, os.Stdin))
	}
}
