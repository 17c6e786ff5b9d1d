// SPDX-License-Identifier: Apache-2.0

// Command clientgo is client-go's side of the differential test: one shared informer whose handlers come and go
// as stdin says, a JSON line on stdout for each call. ../README.md has the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// resyncCheck is the informer's: handlers that come later can't resync more often.
const resyncCheck = time.Second

var stdout sync.Mutex

type call struct {
	Handler string `json:"handler"`
	Call    string `json:"call"`
	Key     string `json:"key,omitempty"`
	UID     string `json:"uid,omitempty"`
	RV      string `json:"rv,omitempty"`
	Value   string `json:"value,omitempty"`
	Old     string `json:"old,omitempty"`
	OldUID  string `json:"oldUid,omitempty"`
	OldVal  string `json:"oldValue,omitempty"`
	Initial bool   `json:"initial,omitempty"`
	Unknown bool   `json:"unknown,omitempty"`
}

func say(c call) {
	stdout.Lock()
	defer stdout.Unlock()
	check(json.NewEncoder(os.Stdout).Encode(c))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientgo:", err)
		os.Exit(1)
	}
}

func value(o *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(o.Object, "data", "n")
	return text
}

func about(name, what string, o *unstructured.Unstructured) call {
	return call{Handler: name, Call: what, Key: o.GetNamespace() + "/" + o.GetName(), UID: string(o.GetUID()), RV: o.GetResourceVersion(), Value: value(o)}
}

// handler says what it is told, SLOW later.
func handler(name string, slow time.Duration) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			time.Sleep(slow)
			c := about(name, "add", obj.(*unstructured.Unstructured))
			c.Initial = initial
			say(c)
		},
		UpdateFunc: func(before, obj any) {
			time.Sleep(slow)
			c, old := about(name, "update", obj.(*unstructured.Unstructured)), before.(*unstructured.Unstructured)
			c.Old, c.OldUID, c.OldVal = old.GetResourceVersion(), string(old.GetUID()), value(old)
			say(c)
		},
		DeleteFunc: func(obj any) {
			time.Sleep(slow)
			tombstone, unknown := obj.(cache.DeletedFinalStateUnknown)
			if unknown {
				obj = tombstone.Obj
			}
			c := about(name, "delete", obj.(*unstructured.Unstructured))
			c.Unknown = unknown
			say(c)
		},
	}
}

func filtered(selector string, inner cache.ResourceEventHandler) cache.ResourceEventHandler {
	if selector == "-" {
		return inner
	}
	parsed, err := labels.Parse(selector)
	check(err)
	return cache.FilteringResourceEventHandler{Handler: inner, FilterFunc: func(obj any) bool {
		if tombstone, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
			obj = tombstone.Obj
		}
		return parsed.Matches(labels.Set(obj.(*unstructured.Unstructured).GetLabels()))
	}}
}

func milliseconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	check(err)
	return time.Duration(n) * time.Millisecond
}

type informer struct {
	cache.SharedIndexInformer
	registered map[string]cache.ResourceEventHandlerRegistration
}

// add NAME RESYNC_MS SLOW_MS SELECTOR
func (i *informer) add(name, resync, slow, selector string) {
	period := milliseconds(resync)
	registration, err := i.AddEventHandlerWithOptions(filtered(selector, handler(name, milliseconds(slow))), cache.HandlerOptions{ResyncPeriod: &period})
	check(err)
	i.registered[name] = registration
	go func() {
		for !registration.HasSynced() {
			time.Sleep(time.Millisecond)
		}
		say(call{Handler: name, Call: "sync"})
	}()
}

func (i *informer) remove(name string) {
	check(i.RemoveEventHandler(i.registered[name]))
	delete(i.registered, name)
	say(call{Handler: name, Call: "removed"})
}

func main() {
	server := flag.String("server", "", "URL of the API server")
	ca := flag.String("ca", "", "file with the CA of a server at https")
	token := flag.String("token", "", "bearer token")
	resource := flag.String("resource", "configmaps", "of the core group")
	flag.Parse()
	client, err := dynamic.NewForConfig(&rest.Config{Host: *server, BearerToken: *token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: *ca}})
	check(err)
	gvr := schema.GroupVersionResource{Version: "v1", Resource: *resource}
	i := &informer{
		dynamicinformer.NewFilteredDynamicInformer(client, gvr, "", resyncCheck, cache.Indexers{}, nil).Informer(),
		map[string]cache.ResourceEventHandlerRegistration{},
	}
	started := false
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch words := strings.Fields(lines.Text()); words[0] {
		case "add":
			i.add(words[1], words[2], words[3], words[4])
		case "remove":
			i.remove(words[1])
		default:
			check(fmt.Errorf("unknown command %q", words))
		}
		if !started { // the first handler is there before
			go i.RunWithContext(context.Background())
			started = true
		}
	}
}
