// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kinfcache "kinf/controllerruntime"
)

const period = 3 * time.Second // of each measurement: a full collection of an own cache takes its share

// each returns the CPU time of one call in us, that of the garbage collector too.
func each(fn func(n int) error) float64 {
	check(fn(0)) // the first may make something
	before, n := cpu(), 0
	for end := time.Now().Add(period); time.Now().Before(end); n++ {
		check(fn(n))
	}
	return float64((cpu() - before).Nanoseconds()) / 1000 / float64(n)
}

// selective returns a selector of one label or two that about ten of the pods have.
func selective(pods []corev1.Pod) client.MatchingLabels {
	counts := map[string]int{}
	for i := range pods {
		for key, value := range pods[i].Labels {
			counts[key+"="+value]++
			for other, its := range pods[i].Labels {
				if key < other {
					counts[key+"="+value+","+other+"="+its]++
				}
			}
		}
	}
	far := func(label string) int { return max(counts[label]-10, 10-counts[label]) }
	all := slices.Sorted(maps.Keys(counts))
	best := slices.MinFunc(all, func(a, b string) int { return far(a) - far(b) })
	selected := must(labels.ConvertSelectorToLabelsMap(best))
	return client.MatchingLabels(selected)
}

func reads(way string) figures {
	ctx, create := context.Background(), cache.New
	if way != "own" {
		create = kinfcache.NewCache(kinfcache.Options{Require: true})
	}
	c := must(create(config(), cache.Options{}))
	check(c.IndexField(ctx, &corev1.Pod{}, "node", kinfcache.Path("spec.nodeName")))
	check(c.IndexField(ctx, &corev1.Pod{}, "phase", kinfcache.Path("status.phase")))
	go func() { check(c.Start(ctx)) }()
	c.WaitForCacheSync(ctx)
	var list corev1.PodList
	check(c.List(ctx, &list))
	pods := list.Items
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	pod := func(n int) *corev1.Pod { return &pods[n*7919%len(pods)] }
	result := figures{}
	result["get"] = each(func(n int) error { return c.Get(ctx, client.ObjectKeyFromObject(pod(n)), &corev1.Pod{}) })
	result["namespace"] = each(func(n int) error {
		var found corev1.PodList
		err := c.List(ctx, &found, client.InNamespace(pods[0].Namespace))
		result["namespace_objects"] = float64(len(found.Items))
		return err
	})
	for index, value := range map[string]func(*corev1.Pod) string{
		"node":  func(p *corev1.Pod) string { return p.Spec.NodeName },
		"phase": func(p *corev1.Pod) string { return string(p.Status.Phase) },
	} {
		of := value(&pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return value(&p) != "" })])
		its := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return value(&p) != of })
		labelled := selective(its)
		result[index+"_pods"] = float64(len(its))
		result[index] = each(func(int) error {
			var found corev1.PodList
			err := c.List(ctx, &found, client.MatchingFields{index: of}, labelled)
			result[index+"_objects"] = float64(len(found.Items))
			return err
		})
	}
	result["unstructured"] = each(func(n int) error { // last: another informer
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		return c.Get(ctx, client.ObjectKeyFromObject(pod(n)), object)
	})
	return result
}

func lister(way string) figures {
	f := factoryOf(way)
	pods := f.Core().V1().Pods()
	pods.Informer()
	start(f)
	all := must(pods.Lister().List(labels.Everything()))
	recent := all[:min(len(all), 500)]
	get := func(from []*corev1.Pod) func(int) error {
		return func(n int) error {
			pod := from[n*7919%len(from)]
			_, err := pods.Lister().Pods(pod.Namespace).Get(pod.Name)
			return err
		}
	}
	return figures{"get": each(get(all)), "get_again": each(get(recent))}
}

// events measures from a change in the simulator, whose control address is given, to both handlers.
func events(control string) figures {
	const most, apart = 300, 20 * time.Millisecond
	var mu sync.Mutex
	seen := map[string]map[int]time.Time{"kinf": {}, "own": {}}
	for way := range seen {
		f := factoryOf(way)
		handler := must(f.Core().V1().Pods().Informer().AddEventHandler(clientcache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) {
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			seen[way][must(strconv.Atoi(o.(*corev1.Pod).ResourceVersion))] = now
		}}))
		start(f)
		clientcache.WaitFor(context.Background(), "", handler.HasSyncedChecker()) // a change before is part of the first list
	}
	var sent []time.Time
	for range most {
		sent = append(sent, time.Now())
		answer := must(http.Post(control+"/touch?resource=pods&count=1", "", nil))
		check(answer.Body.Close())
		time.Sleep(apart)
	}
	result := figures{}
	for way, times := range seen {
		for end := time.Now().Add(time.Minute); ; time.Sleep(apart) {
			mu.Lock()
			n := len(times)
			mu.Unlock()
			if n == most {
				break
			}
			if time.Now().After(end) {
				check(fmt.Errorf("%s: %d of %d events", way, n, most))
			}
		}
		var late []float64
		for i, version := range slices.Sorted(maps.Keys(times)) { // in the order in which they were sent
			late = append(late, ms(times[version].Sub(sent[i])))
		}
		slices.Sort(late)
		result[way+"_p50_ms"], result[way+"_p99_ms"] = late[most/2], late[most*99/100]
	}
	return result
}
