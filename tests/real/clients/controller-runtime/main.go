// SPDX-License-Identifier: Apache-2.0

// A controller of controller-runtime for ConfigMaps. For each request it reads the object from the manager's cache and
// prints a JSON line. usage: controller-runtime KUBECONFIG
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func say(what map[string]string) {
	line, _ := json.Marshal(what)
	fmt.Println(string(line))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object corev1.ConfigMap
	err := r.Get(ctx, request.NamespacedName, &object)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil {
		say(map[string]string{"type": "DELETED", "key": request.String()})
	} else {
		say(map[string]string{"type": "MODIFIED", "key": request.String(), "rv": object.ResourceVersion})
	}
	return ctrl.Result{}, nil
}

func main() {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	fail(err)
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	fail(err)
	fail(ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(reconciler{manager.GetClient()}))
	fail(manager.Start(ctrl.SetupSignalHandler()))
}
