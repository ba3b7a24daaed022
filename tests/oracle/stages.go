package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	outcomeScheduled     = "Scheduled"
	outcomeUnschedulable = "Unschedulable"
	outcomeError         = "Error"
	outcomeGated         = "Gated"
	outcomeNoNodes       = "NoNodes"
)

// run takes the pod through the extension points in the order of a scheduling attempt, with
// nothing sampled: every node is filtered and every feasible node is scored.
func (a *attempt) run() error {
	if a.gated() {
		return nil
	}
	nodes, err := a.snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		a.result.Outcome = outcomeNoNodes
		a.result.FitError = scheduler.ErrNoNodesAvailable.Error()
		return nil
	}

	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	left, restricting, status := a.preFilter(state)
	switch {
	case status.IsRejected():
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
	case !status.IsSuccess():
		a.result.Outcome = outcomeError
		return nil
	default:
		if !left.AllNodes() {
			diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
				fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(restricting))))
		}
		feasible, ok := a.filter(state, nodes, left, diagnosis.NodeToStatus)
		if !ok {
			a.result.Outcome = outcomeError
			return nil
		}
		if len(feasible) > 0 {
			if err := a.score(state, feasible); err != nil {
				return err
			}
			return a.allocate(state, feasible)
		}
	}
	return a.unschedulable(state, &framework.FitError{Pod: a.pod, NumAllNodes: len(nodes), Diagnosis: diagnosis})
}

func (a *attempt) gated() bool {
	for _, plugin := range a.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(a.ctx, a.pod); !status.IsSuccess() {
			status.SetPlugin(plugin.Name())
			said := statusOf(status)
			a.result.Outcome, a.result.PreEnqueue = outcomeGated, &said
			return true
		}
	}
	return false
}

func (a *attempt) preFilter(state fwk.CycleState) (*fwk.PreFilterResult, sets.Set[string], *fwk.Status) {
	left, status, restricting := a.framework.RunPreFilterPlugins(a.ctx, state, a.pod)
	said := &PreFilter{Status: statusOf(status)}
	if status.IsSuccess() && !left.AllNodes() {
		said.NodeNames = sets.List(left.NodeNames)
	}
	a.result.PreFilter = said
	return left, restricting, status
}

// filter asks about every node, also those that PreFilter ruled out; these cannot become feasible
// and their status does not count. It is not ok when a plugin failed on a node that counts.
func (a *attempt) filter(state fwk.CycleState, nodes []fwk.NodeInfo, left *fwk.PreFilterResult, statuses *framework.NodeToStatus) ([]fwk.NodeInfo, bool) {
	var feasible []fwk.NodeInfo
	ok := true
	a.result.Filter = make(map[string]NodeStatus, len(nodes))
	for _, node := range nodes {
		name := node.Node().Name
		status := a.framework.RunFilterPluginsWithNominatedPods(a.ctx, state, a.pod, node)
		prefiltered := !left.AllNodes() && !left.NodeNames.Has(name)
		a.result.Filter[name] = NodeStatus{Status: statusOfNode(status), Prefiltered: prefiltered}
		switch {
		case prefiltered:
		case status.IsSuccess():
			feasible = append(feasible, node)
			a.result.Feasible = append(a.result.Feasible, name)
		case status.IsRejected():
			statuses.Set(name, status)
		default:
			ok = false
		}
	}
	slices.Sort(a.result.Feasible)
	if !ok {
		a.result.Feasible = nil
	}
	return feasible, ok
}

func (a *attempt) score(state fwk.CycleState, feasible []fwk.NodeInfo) error {
	if status := a.framework.RunPreScorePlugins(a.ctx, state, a.pod, feasible); !status.IsSuccess() {
		return a.scoreFailed(status)
	}
	nodes, status := a.framework.RunScorePlugins(a.ctx, state, a.pod, feasible)
	if !status.IsSuccess() {
		return a.scoreFailed(status)
	}

	plugins := a.framework.ListPlugins().Score.Enabled
	a.result.Outcome = outcomeScheduled
	a.result.Scores = make(map[string]Score, len(plugins))
	for _, plugin := range plugins {
		a.result.Scores[plugin.Name] = Score{Weight: int64(plugin.Weight), Skipped: true}
	}
	a.result.Total = make(map[string]int64, len(nodes))
	for _, node := range nodes {
		a.result.Total[node.Name] = node.TotalScore
		if len(plugins) == 0 {
			a.result.Total[node.Name] = 1
		}
		for _, weighted := range node.Scores {
			score := a.result.Scores[weighted.Name]
			if score.Skipped {
				score = Score{Weight: score.Weight, Nodes: make(map[string]int64, len(nodes))}
				a.result.Scores[weighted.Name] = score
			}
			score.Nodes[node.Name] = weighted.Score / score.Weight
		}
	}
	highest := slices.Max(slices.Collect(maps.Values(a.result.Total)))
	for _, name := range a.result.Feasible {
		if a.result.Total[name] == highest {
			a.result.Best = append(a.result.Best, name)
		}
	}
	return nil
}

func (a *attempt) scoreFailed(status *fwk.Status) error {
	if status.AsError() == nil {
		return errors.New("scoring neither succeeded nor failed: " + status.String())
	}
	a.result.Outcome = outcomeError
	a.result.ScoreError = status.AsError().Error()
	return nil
}

func (a *attempt) unschedulable(state fwk.CycleState, fitError *framework.FitError) error {
	a.result.Outcome = outcomeUnschedulable
	a.result.FitError = fitError.Error()
	if a.framework.HasPostFilterPlugins() {
		status, err := a.postFilter(state, fitError.Diagnosis.NodeToStatus)
		if err != nil {
			return err
		}
		fitError.Diagnosis.PostFilterMsg = status.Message()
	}
	a.result.FitErrorFinal = fitError.Error()
	return nil
}
