// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"kinf"
)

// ErrOtherCluster says that the store is not of the cluster that the program talks to.
var ErrOtherCluster = errors.New("the store is of another cluster")

const clusterPatience = 5 * time.Second // an API server's answer is waited for

// A ClusterCheck compares the cluster of a store with that of a program's client.
type ClusterCheck struct {
	store  *kinf.Store
	get    func(context.Context, string) (metav1.Object, error)
	once   sync.Once
	client string // the uid that the client has got; "": none
}

// NewClusterCheck makes one. Get gets a namespace by the program's client.
func NewClusterCheck(store *kinf.Store, get func(ctx context.Context, name string) (metav1.Object, error)) *ClusterCheck {
	return &ClusterCheck{store: store, get: get}
}

// Err returns ErrOtherCluster if the uids of kube-system differ. The client asks once. If it gets no
// answer, or if the store has no uid, nothing is compared: a program need not be allowed to read that
// namespace.
func (c *ClusterCheck) Err() error {
	c.once.Do(c.ask)
	stored := ""
	err := c.store.View(func(s *kinf.Snapshot) (err error) {
		stored, err = s.ClusterUID()
		return err
	})
	if err != nil || stored == "" || c.client == "" || stored == c.client {
		return nil // what can't be read is told by the informer
	}
	return fmt.Errorf("%w: the namespace kube-system has the uid %s there, not %s", ErrOtherCluster, stored, c.client)
}

func (c *ClusterCheck) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	namespace, err := c.get(ctx, metav1.NamespaceSystem)
	if err != nil {
		klog.Background().V(2).Info("The store's cluster is not compared", "reason", err)
		return
	}
	c.client = string(namespace.GetUID())
}
