// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/lifecycle"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kinf"
	"kinf/informers"
)

// shared is client-go's SharedInformerFactory.
type shared struct {
	factory[reflect.Type]
	client kubernetes.Interface
}

// NewShared makes a factory of the generated groups' typed informers and listers. The store may be nil:
// then client-go's informers watch.
func NewShared(store *kinf.Store, client kubernetes.Interface, options Options) clientinformers.SharedInformerFactory {
	cluster := informers.NewClusterCheck(store, func(ctx context.Context, name string) (metav1.Object, error) {
		return client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	})
	return &shared{newFactory[reflect.Type](store, options, cluster), client}
}

// InformerName names client-go's metrics of an informer, which are not kept.
func (f *shared) InformerName() *cache.InformerName { return nil }

func (f *shared) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

func (f *shared) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.wait(wait.ContextForChannel(stop))
}

func (f *shared) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	result := cache.SyncResult{Synced: f.wait(ctx)}
	for _, synced := range result.Synced {
		if !synced {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

// InformerFor returns the informer of a type. Its scope, indexers and transform are those of the
// informer that client-go's function makes.
func (f *shared) InformerFor(object runtime.Object, makes internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.informer(reflect.TypeOf(object), func() (cache.SharedIndexInformer, error) {
		scope, made, err := scopeOf(makes)
		if err != nil {
			return nil, err
		}
		informer, err := informers.New(f.store, scope, object, f.ours(made.GetIndexer().GetIndexers()))
		if err == nil {
			err = informer.SetTransform(transformOf(made))
		}
		return informer, err
	}, func() (cache.SharedIndexInformer, error) { return makes(f.client, f.options.Resync), nil })
}

// ForResource returns the informer of a resource of client-go's scheme.
func (f *shared) ForResource(resource schema.GroupVersionResource) (clientinformers.GenericInformer, error) {
	for kind := range scheme.Scheme.KnownTypes(resource.GroupVersion()) {
		named, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(kind))
		if named != resource {
			continue
		}
		object, err := scheme.Scheme.New(resource.GroupVersion().WithKind(kind))
		if err != nil {
			return nil, err
		}
		own := clientinformers.NewSharedInformerFactoryWithOptions(f.client, f.options.Resync)
		if _, err := own.ForResource(resource); err != nil {
			return nil, err
		}
		informer := f.InformerFor(object, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			made, _ := clientinformers.NewSharedInformerFactoryWithOptions(client, resync,
				clientinformers.WithNamespace(f.options.Namespace), clientinformers.WithTweakListOptions(f.options.Tweak)).
				ForResource(resource) // known, as was just seen
			return made.Informer()
		})
		return generic{informer, cache.NewGenericLister(informer.GetIndexer(), resource.GroupResource())}, nil
	}
	return nil, fmt.Errorf("no informer found for %v", resource)
}

// ---- the scope of an informer of client-go ------------------------------------------

// firstRequest is the transport of a client whose requests are not sent. It has room for one.
type firstRequest chan *http.Request

func (first firstRequest) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case first <- r:
	default:
	}
	return nil, informers.ErrCaptured
}

// transformOf returns the transform of an informer, nil if it has none. client-go only takes it, and
// wraps the informer in a typed one.
func transformOf(informer cache.SharedIndexInformer) cache.TransformFunc {
	made := reflect.Indirect(reflect.ValueOf(informer))
	for made.Kind() == reflect.Struct {
		if transform := made.FieldByName("transform"); transform.IsValid() && transform.CanAddr() &&
			transform.Type() == reflect.TypeFor[cache.TransformFunc]() {
			return *(*cache.TransformFunc)(unsafe.Pointer(transform.UnsafeAddr()))
		}
		inner := made.FieldByName("SharedIndexInformer")
		if !inner.IsValid() || inner.Kind() != reflect.Interface {
			return nil
		}
		made = reflect.Indirect(inner.Elem())
	}
	return nil
}

// scopeOf makes an informer, and runs it until its first request, which tells its scope. Its client is
// used for no other: client-go's reflector lists in a goroutine, whose request may come after its end.
func scopeOf(makes internalinterfaces.NewInformerFunc) (scope informers.Scope, informer cache.SharedIndexInformer, err error) {
	first := make(firstRequest, 1)
	informer = makes(kubernetes.NewForConfigOrDie(&rest.Config{Host: "http://none",
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return first }}), 0)
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return scope, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var stopped wait.Group
	stopped.StartWithContext(ctx, informer.RunWithContext)
	select {
	case r := <-first:
		scope, err = informers.ScopeOf(r, "")
	case <-ctx.Done():
		err = fmt.Errorf("the informer of client-go made no request")
	}
	cancel()
	stopped.Wait()
	return scope, informer, err
}

// ---- the generated groups -----------------------------------------------------------

func (f *shared) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Apps() apps.Interface { return apps.New(f, f.options.Namespace, f.options.Tweak) }
func (f *shared) Autoscaling() autoscaling.Interface {
	return autoscaling.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Batch() batch.Interface { return batch.New(f, f.options.Namespace, f.options.Tweak) }
func (f *shared) Certificates() certificates.Interface {
	return certificates.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Coordination() coordination.Interface {
	return coordination.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Core() core.Interface { return core.New(f, f.options.Namespace, f.options.Tweak) }
func (f *shared) Discovery() discovery.Interface {
	return discovery.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Events() events.Interface {
	return events.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Extensions() extensions.Interface {
	return extensions.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Flowcontrol() flowcontrol.Interface {
	return flowcontrol.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Lifecycle() lifecycle.Interface {
	return lifecycle.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Networking() networking.Interface {
	return networking.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Node() node.Interface { return node.New(f, f.options.Namespace, f.options.Tweak) }
func (f *shared) Policy() policy.Interface {
	return policy.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Rbac() rbac.Interface { return rbac.New(f, f.options.Namespace, f.options.Tweak) }
func (f *shared) Resource() resource.Interface {
	return resource.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Scheduling() scheduling.Interface {
	return scheduling.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Storage() storage.Interface {
	return storage.New(f, f.options.Namespace, f.options.Tweak)
}
func (f *shared) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, f.options.Namespace, f.options.Tweak)
}
