// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// ErrCaptured is the answer to a request that only was to tell its scope. Nothing was sent.
var ErrCaptured = errors.New("captured")

// A Capture is a RoundTripper that learns what a ListerWatcher lists: its scope is in a closure, and
// shows in its request.
type Capture struct {
	Next   http.RoundTripper // of other requests; nil: all are captured
	Prefix string            // path of the API server's address
}

type captured struct{}

// captures is what the request with this mark in its context fills.
type captures struct {
	scope Scope
	err   error
}

func (c *Capture) RoundTrip(r *http.Request) (*http.Response, error) {
	into, ok := r.Context().Value(captured{}).(*captures)
	if !ok && c.Next != nil {
		return c.Next.RoundTrip(r)
	}
	if ok {
		into.scope, into.err = ScopeOf(r, c.Prefix)
	}
	return nil, ErrCaptured
}

// Scope asks a ListerWatcher, whose client has the Capture as its RoundTripper.
func (c *Capture) Scope(lw cache.ListerWatcher) (Scope, error) {
	into := &captures{err: errors.New("the list made no request that tells its scope")}
	ctx := context.WithValue(context.Background(), captured{}, into)
	_, err := cache.ToListerWatcherWithContext(lw).ListWithContext(ctx, metav1.ListOptions{})
	if err == nil || !errors.Is(err, ErrCaptured) {
		return Scope{}, fmt.Errorf("%w: %v", into.err, err)
	}
	return into.scope, into.err
}

// ScopeOf returns the scope of a list or watch request.
func ScopeOf(r *http.Request, prefix string) (scope Scope, err error) {
	path := strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(prefix, "/"))
	words := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(words) >= 3 && words[0] == "api":
		scope.Resource.Version, words = words[1], words[2:]
	case len(words) >= 4 && words[0] == "apis":
		scope.Resource.Group, scope.Resource.Version, words = words[1], words[2], words[3:]
	default:
		return scope, fmt.Errorf("'%s' lists no resource", r.URL.Path)
	}
	if len(words) == 3 && words[0] == "namespaces" {
		scope.Namespace, words = words[1], words[2:]
	}
	if len(words) != 1 {
		return scope, fmt.Errorf("'%s' lists no resource", r.URL.Path)
	}
	scope.Resource.Resource = words[0]
	scope.Metadata = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	return scope, scope.selectors(r.URL.Query())
}

func (s *Scope) selectors(query url.Values) (err error) {
	if s.Labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return err
	}
	s.Fields, err = fields.ParseSelector(query.Get("fieldSelector"))
	return err
}

// ScopeFor returns the scope of a resource with the selectors that a function sets.
func ScopeFor(resource schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (Scope, error) {
	var options metav1.ListOptions
	if tweak != nil {
		tweak(&options)
	}
	scope := Scope{Resource: resource, Namespace: namespace}
	return scope, scope.selectors(url.Values{"labelSelector": {options.LabelSelector}, "fieldSelector": {options.FieldSelector}})
}
