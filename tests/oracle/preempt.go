package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// postFilter runs the PostFilter plugins and, if they searched for victims, searches once more to
// tell about all candidates rather than the one that was taken.
func (a *attempt) postFilter(state fwk.CycleState, statuses *framework.NodeToStatus) (*fwk.Status, error) {
	result, status := a.framework.RunPostFilterPlugins(a.ctx, state, a.pod, statuses)
	said := &PostFilter{
		Status:         statusOf(status),
		NominatedNodes: []string{},
		Victims:        []string{},
		Deleted:        []string{},
		Candidates:     map[string]Candidate{},
	}
	a.result.PostFilter = said
	nominated := ""
	if result != nil && result.NominatingInfo != nil && result.Mode() == fwk.ModeOverride {
		nominated = result.NominatedNodeName
		said.ClearNominatedNode = nominated == ""
	}

	candidates, err := a.dryRun(state, statuses, said)
	if err != nil || nominated == "" {
		return status, err
	}
	said.NominatedNodes = tied(candidates)
	if !slices.Contains(said.NominatedNodes, nominated) {
		return nil, fmt.Errorf("kube-scheduler nominated %s, expected one of %v", nominated, said.NominatedNodes)
	}
	if len(said.NominatedNodes) > 1 {
		said.Victims, said.Deleted = nil, nil
		return status, nil
	}
	said.Victims = slices.Clone(said.Candidates[nominated].Victims)
	said.Deleted = append(said.Deleted, a.deletes.pods...)
	slices.Sort(said.Victims)
	slices.Sort(said.Deleted)
	return status, nil
}

func (a *attempt) dryRun(state fwk.CycleState, statuses *framework.NodeToStatus, said *PostFilter) ([]preemption.Candidate, error) {
	if a.preemption == nil || !a.preemption.searched {
		return nil, nil
	}
	nodes, err := statuses.NodesForStatusCode(a.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	evaluator := a.preemption.evaluator
	budgets, err := evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	// Errors of single nodes are among the failures.
	candidates, failures, _ := evaluator.DryRunPreemption(a.ctx, state, a.pod, nodes, budgets, 0, int32(len(nodes)))
	for _, candidate := range candidates {
		var victims []string
		for _, pod := range candidate.Victims().Pods {
			victims = append(victims, podKey(pod))
		}
		said.Candidates[candidate.Name()] = Candidate{Victims: victims, NumPDBViolations: candidate.Victims().NumPDBViolations}
	}
	said.DryRunFailures = map[string]Status{}
	failures.ForEachExplicitNode(func(node string, status *fwk.Status) {
		said.DryRunFailures[node] = statusOfNode(status)
	})
	return candidates, nil
}

// tied are the candidates that kube-scheduler's criteria cannot tell apart: it takes any of them.
func tied(candidates []preemption.Candidate) []string {
	var best []string
	var lowest [5]int64
	for _, candidate := range candidates {
		cost := costOf(candidate.Victims())
		order := -1
		if len(best) > 0 {
			order = slices.Compare(cost[:], lowest[:])
		}
		switch cmp.Compare(order, 0) {
		case -1:
			best, lowest = []string{candidate.Name()}, cost
		case 0:
			best = append(best, candidate.Name())
		}
	}
	slices.Sort(best)
	return best
}

// costOf lists the criteria, most important first; lower is better.
func costOf(victims *extenderv1.Victims) [5]int64 {
	priority := func(pod *v1.Pod) int64 { return int64(corev1helpers.PodPriority(pod)) }
	var sum int64
	for _, pod := range victims.Pods {
		// Shifted so that a lower sum never comes from one more pod of negative priority.
		sum += priority(pod) - math.MinInt32
	}
	var started int64
	if earliest := util.GetEarliestPodStartTime(victims); earliest != nil {
		started = earliest.UnixNano()
	}
	return [5]int64{
		victims.NumPDBViolations,
		priority(victims.Pods[0]),
		sum,
		int64(len(victims.Pods)),
		-started,
	}
}
