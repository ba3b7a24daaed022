package main

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// Cluster is every object that exists; each list may be empty.
type Cluster struct {
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	Services               []*v1.Service                   `json:"services"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationcontrollers"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicasets"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulsets"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentvolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentvolumeclaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageclasses"`
	CSINodes               []*storagev1.CSINode            `json:"csinodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csidrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csistoragecapacities"`
	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget `json:"poddisruptionbudgets"`
	DeviceClasses          []*resourcev1.DeviceClass       `json:"deviceclasses"`
	ResourceSlices         []*resourcev1.ResourceSlice     `json:"resourceslices"`
	ResourceClaims         []*resourcev1.ResourceClaim     `json:"resourceclaims"`
}

// dropFinishedPods hides what the scheduler's pod watch leaves out.
func (c *Cluster) dropFinishedPods() {
	var alive []*v1.Pod
	for _, pod := range c.Pods {
		if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			alive = append(alive, pod)
		}
	}
	c.Pods = alive
}

// snapshot is taken from the scheduler's own cache, which is fed the nodes by name: one answer
// depends on the order, for of an image with several sizes the cache believes the first node.
func (c *Cluster) snapshot(ctx context.Context) (*internalcache.Snapshot, error) {
	logger := klog.Background()
	nodes := internalcache.New(ctx, nil, false)
	byName := slices.SortedFunc(slices.Values(c.Nodes), func(a, b *v1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, node := range byName {
		nodes.AddNode(logger, node)
	}
	for _, pod := range c.Pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		if err := nodes.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	snapshot := internalcache.NewEmptySnapshot()
	return snapshot, nodes.UpdateSnapshot(logger, snapshot)
}

// informers answers from the frozen lists; nothing is watched and nothing has to be waited for.
// The attempted pod is pending, so the scheduler knows it too.
func (c *Cluster) informers(client kubernetes.Interface, attempted *v1.Pod) (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := append([]*v1.Pod{attempted}, c.Pods...)
	for _, freeze := range []func() error{
		frozen(factory, c.Nodes),
		frozen(factory, pods),
		frozen(factory, c.Namespaces),
		frozen(factory, c.Services),
		frozen(factory, c.ReplicationControllers),
		frozen(factory, c.ReplicaSets),
		frozen(factory, c.StatefulSets),
		frozen(factory, c.PersistentVolumes),
		frozen(factory, c.PersistentVolumeClaims),
		frozen(factory, c.StorageClasses),
		frozen(factory, c.CSINodes),
		frozen(factory, c.CSIDrivers),
		frozen(factory, c.CSIStorageCapacities),
		frozen(factory, c.PodDisruptionBudgets),
		frozen(factory, []*storagev1.VolumeAttachment{}),
		frozen(factory, c.ResourceClaims),
		frozen(factory, c.ResourceSlices),
		frozen(factory, c.DeviceClasses),
	} {
		if err := freeze(); err != nil {
			return nil, err
		}
	}
	return factory, nil
}

// object is a pointer to an API type that the factory can be asked for.
type object[T any] interface {
	*T
	runtime.Object
}

// frozen makes the factory's informer of one type a frozenInformer that holds the list.
func frozen[T any, P object[T]](factory informers.SharedInformerFactory, list []P) func() error {
	return func() error {
		var err error
		factory.InformerFor(P(new(T)), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			informer := &frozenInformer{
				SharedIndexInformer: cache.NewSharedIndexInformer(nil, P(new(T)), 0, cache.Indexers{
					cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
				}),
			}
			for _, item := range list {
				if addErr := informer.GetIndexer().Add(item); addErr != nil {
					err = addErr
				}
			}
			return informer
		})
		return err
	}
}

// frozenInformer is never run: its store is complete from the start and a handler sees all of it
// at once, on the goroutine that registers it. So no plugin can be asked before it is up to date.
type frozenInformer struct {
	cache.SharedIndexInformer
}

func (f *frozenInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, item := range f.GetIndexer().List() {
		handler.OnAdd(item, true)
	}
	return synced{}, nil
}

func (f *frozenInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *frozenInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *frozenInformer) HasSynced() bool { return true }

func (f *frozenInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }

var alreadyDone = func() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

type synced struct{}

func (synced) HasSynced() bool                       { return true }
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }
func (synced) Name() string                          { return "frozen" }
func (synced) Done() <-chan struct{}                 { return alreadyDone }
