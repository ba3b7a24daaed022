package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	configv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// attempt is one pod, tried once on one frozen cluster.
type attempt struct {
	ctx       context.Context
	close     context.CancelFunc
	pod       *v1.Pod
	snapshot  fwk.SharedLister
	framework framework.Framework
	// nil unless the profile has DefaultPreemption.
	preemption *everyNode
	// nil unless the profile has DynamicResources.
	devices fwk.ReservePlugin
	claims  fwk.SharedDRAManager
	deletes *deleteRequests
	result  Result
}

func newAttempt(scenario *Scenario) (*attempt, error) {
	if scenario.Pod == nil {
		return nil, errors.New("scenario without a pod")
	}
	profile, err := profileOf(scenario.Profile)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	scenario.Cluster.dropFinishedPods()
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempt{
		ctx:     ctx,
		close:   cancel,
		pod:     scenario.Pod,
		deletes: &deleteRequests{},
	}
	if err := a.build(scenario, profile); err != nil {
		cancel()
		return nil, err
	}
	return a, nil
}

// profileOf is the first profile of a configuration that says no more than the fragment.
func profileOf(fragment json.RawMessage) (*config.KubeSchedulerProfile, error) {
	if len(fragment) == 0 || string(fragment) == "null" {
		defaults, err := latest.Default()
		if err != nil {
			return nil, err
		}
		return &defaults.Profiles[0], nil
	}
	document, err := json.Marshal(map[string]any{
		"apiVersion": configv1.SchemeGroupVersion.String(),
		"kind":       "KubeSchedulerConfiguration",
		"profiles":   []json.RawMessage{fragment},
	})
	if err != nil {
		return nil, err
	}
	decoded, err := runtime.Decode(scheme.Codecs.UniversalDecoder(), document)
	if err != nil {
		return nil, err
	}
	configuration, ok := decoded.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoded a %T", decoded)
	}
	if err := validation.ValidateKubeSchedulerConfiguration(configuration); err != nil {
		return nil, err
	}
	return &configuration.Profiles[0], nil
}

// build wires what cmd/kube-scheduler wires, as far as one attempt can see it.
func (a *attempt) build(scenario *Scenario, profile *config.KubeSchedulerProfile) error {
	var err error
	if a.snapshot, err = scenario.Cluster.snapshot(a.ctx); err != nil {
		return err
	}
	client := a.deletes.client()
	factory, err := scenario.Cluster.informers(client, a.pod)
	if err != nil {
		return err
	}
	claims, err := resourceManager(a.ctx, factory)
	if err != nil {
		return err
	}
	a.claims = claims
	a.result.Partial = len(scenario.Cluster.DeviceClasses) > 0
	if err := a.assumeInFlight(scenario.InFlight); err != nil {
		return err
	}
	a.framework, err = frameworkruntime.NewFramework(a.ctx, a.registry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(claims),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(a.snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	)
	if err != nil {
		return err
	}
	a.nominate(scenario.Cluster.Pods, factory)
	return nil
}

// nominate puts the pending pods into the queue, which remembers what they are nominated for.
func (a *attempt) nominate(pods []*v1.Pod, factory informers.SharedInformerFactory) {
	gates := map[string]fwk.PreEnqueuePlugin{}
	for _, plugin := range a.framework.PreEnqueuePlugins() {
		gates[plugin.Name()] = plugin
	}
	profile := a.framework.ProfileName()
	queue := internalqueue.NewSchedulingQueue(a.framework.QueueSortFunc(), factory,
		internalqueue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{profile: gates}))
	a.framework.SetPodNominator(queue)
	a.framework.SetPodActivator(queue)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && pod.Spec.SchedulerName == profile {
			queue.Add(a.ctx, pod)
		}
	}
}

func resourceManager(ctx context.Context, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	slices, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		SliceInformer: factory.Resource().V1().ResourceSlices(),
	})
	if err != nil {
		return nil, err
	}
	informer := factory.Resource().V1().ResourceClaims().Informer()
	claims := assumecache.NewAssumeCache(klog.Background(), informer, "ResourceClaim", "", nil)
	manager := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	// The scheduler feeds it from its own event handlers.
	if resources, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler); ok {
		if _, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(resources); err != nil {
			return nil, err
		}
	}
	return manager, nil
}

// registry is the in-tree one, except that DefaultPreemption looks at every node.
func (a *attempt) registry() frameworkruntime.Registry {
	registry := frameworkplugins.NewInTreeRegistry()
	inTree := registry[defaultpreemption.Name]
	registry[defaultpreemption.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := inTree(ctx, args, handle)
		if err != nil {
			return nil, err
		}
		evaluator := plugin.(*defaultpreemption.DefaultPreemption).Evaluator
		a.preemption = &everyNode{Interface: evaluator.Interface, evaluator: evaluator}
		evaluator.Interface = a.preemption
		return plugin, nil
	}
	devices := registry[dynamicresources.Name]
	registry[dynamicresources.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := devices(ctx, args, handle)
		if err != nil {
			return nil, err
		}
		a.devices = plugin.(fwk.ReservePlugin)
		return plugin, nil
	}
	return registry
}

// everyNode takes the dice out of preemption: it starts at the first node and stops at the last.
type everyNode struct {
	preemption.Interface
	evaluator *preemption.Evaluator
	// searched tells that PostFilter got as far as looking for candidates.
	searched bool
}

func (e *everyNode) GetOffsetAndNumCandidates(nodes int32) (int32, int32) {
	e.searched = true
	return 0, nodes
}

// deleteRequests remembers which pods the scheduler asked the API server to delete.
type deleteRequests struct {
	mu   sync.Mutex
	pods []string
}

// client accepts everything and stores nothing: all reads go through informers.
func (d *deleteRequests) client() *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if request, ok := action.(clienttesting.DeleteAction); ok && action.GetResource().Resource == "pods" {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.pods = append(d.pods, request.GetNamespace()+"/"+request.GetName())
		}
		if action.GetResource().Resource == "resourceclaims" {
			return true, &resourcev1.ResourceClaim{}, nil
		}
		return true, &v1.Pod{}, nil
	})
	return client
}
