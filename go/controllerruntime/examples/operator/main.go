// SPDX-License-Identifier: Apache-2.0

// Operator is a controller as kubebuilder makes them. It annotates each node with the number of its
// running pods, and watches pods, nodes and config maps. With --kinf it reads the machine's cache.
package main

import (
	"context"
	"flag"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kinf "kinf/controllerruntime"
)

const (
	onNode = "spec.nodeName"
	count  = "example.com/running-pods"
)

// reconciler keeps the annotation of nodes.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := r.Get(ctx, request.NamespacedName, &node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.MatchingFields{onNode: node.Name}); err != nil {
		return reconcile.Result{}, err
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	text := strconv.Itoa(running)
	if node.Annotations[count] == text {
		return reconcile.Result{}, nil
	}
	before := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[count] = text
	return reconcile.Result{}, client.IgnoreNotFound(r.Patch(ctx, &node, client.MergeFrom(before)))
}

func nodeOf(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.(*corev1.Pod).Spec.NodeName
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

// SetupWithManager names what is watched.
func (r *reconciler) SetupWithManager(m ctrl.Manager) error {
	index := func(pod client.Object) []string { return []string{pod.(*corev1.Pod).Spec.NodeName} }
	if err := m.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, onNode, index); err != nil {
		return err
	}
	nothing := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })
	return ctrl.NewControllerManagedBy(m).For(&corev1.Node{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOf)).
		Watches(&corev1.ConfigMap{}, nothing).Complete(r)
}

func run(onStore bool) error {
	options := ctrl.Options{Metrics: server.Options{BindAddress: "0"}}
	if onStore {
		options.NewCache = kinf.NewCache(kinf.Options{}) // the line
	}
	began := time.Now()
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	if err != nil {
		return err
	}
	r := &reconciler{m.GetClient()}
	if err := r.SetupWithManager(m); err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	go func() {
		if m.GetCache().WaitForCacheSync(ctx) {
			ctrl.Log.Info("synced", "after", time.Since(began).String())
		}
	}()
	return m.Start(ctx)
}

func main() {
	onStore := flag.Bool("kinf", false, "read the machine's cache ($KINF_STORE)")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*onStore); err != nil {
		ctrl.Log.Error(err, "the operator ends")
		os.Exit(1)
	}
}
