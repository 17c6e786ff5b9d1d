// SPDX-License-Identifier: Apache-2.0

// Exporter serves Prometheus metrics of the pods in the machine's cache, with the zone of each pod's
// node: one Get a pod and scrape, and no watch, list or cache of its own.
//
//	go run kinf/examples/exporter -listen :9101 -selector tier=front
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"kinf"
)

// The members that are read; all others are passed over.
type pod struct {
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase             string `json:"phase"`
		ContainerStatuses []struct {
			RestartCount int `json:"restartCount"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

type node struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

type exporter struct {
	store    *kinf.Store
	selector string
}

// zone gets the node of a pod. A pod may be listed before its node, or outlive it.
func zone(s *kinf.Snapshot, name string) (string, error) {
	object, err := s.Get("nodes", name)
	if errors.Is(err, kinf.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var n node
	err = object.Into(&n)
	return n.Metadata.Labels["topology.kubernetes.io/zone"], err
}

// collect writes the metrics of one instant.
func (e *exporter) collect(s *kinf.Snapshot, to *bytes.Buffer) error {
	began, pods := time.Now(), 0
	fmt.Fprintln(to, "# TYPE pod_restarts_total counter")
	for object, err := range s.List("pods", kinf.Query{LabelSelector: e.selector}) {
		if err != nil {
			return err
		}
		var p pod
		if err := object.Into(&p); err != nil {
			return err
		}
		where, err := zone(s, p.Spec.NodeName)
		if err != nil {
			return err
		}
		restarts := 0
		for _, status := range p.Status.ContainerStatuses {
			restarts += status.RestartCount
		}
		fmt.Fprintf(to, "pod_restarts_total{namespace=%q,pod=%q,phase=%q,node=%q,zone=%q} %d\n", object.Namespace(), object.Name(),
			p.Status.Phase, p.Spec.NodeName, where, restarts)
		pods++
	}
	fmt.Fprintf(to, "# TYPE scrape_pods gauge\nscrape_pods %d\n", pods)
	fmt.Fprintf(to, "# TYPE scrape_seconds gauge\nscrape_seconds %g\n", time.Since(began).Seconds())
	return nil
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer // the snapshot does not wait for the client
	err := e.store.View(func(s *kinf.Snapshot) error { return e.collect(s, &text) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(text.Bytes())
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9101", "address to serve /metrics on")
	directory := flag.String("store", "", "the store; default: as for kinf")
	selector := flag.String("selector", "", "label selector of the pods")
	flag.Parse()
	store, err := kinf.Open(*directory, nil)
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("GET /metrics", &exporter{store, *selector})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
