package main

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Scenario is one line of input: a pod, a frozen cluster and, if not the default, a profile.
type Scenario struct {
	ID      string          `json:"id"`
	Profile json.RawMessage `json:"profile"`
	Cluster Cluster         `json:"cluster"`
	Pod     *v1.Pod         `json:"pod"`
	// Allocations that were chosen for other pods and are not written yet.
	InFlight []InFlight `json:"inFlight"`
}

// InFlight is the allocation of a claim that the cluster still shows without one.
type InFlight struct {
	Namespace  string                      `json:"namespace"`
	Name       string                      `json:"name"`
	Allocation resourcev1.AllocationResult `json:"allocation"`
}

// Allocated is what a claim would get on a node.
type Allocated struct {
	Claim      string                       `json:"claim"`
	Allocation *resourcev1.AllocationResult `json:"allocation"`
}

// Result is one line of output; absent keys mean "stage not reached, or empty".
type Result struct {
	ID            string                `json:"id"`
	Error         string                `json:"error,omitempty"`
	Outcome       string                `json:"outcome,omitempty"`
	PreEnqueue    *Status               `json:"preEnqueue,omitempty"`
	PreFilter     *PreFilter            `json:"preFilter,omitempty"`
	Filter        map[string]NodeStatus `json:"filter,omitempty"`
	Feasible      []string              `json:"feasible,omitempty"`
	Scores        map[string]Score      `json:"scores,omitempty"`
	Total         map[string]int64      `json:"total,omitempty"`
	Best          []string              `json:"best,omitempty"`
	ScoreError    string                `json:"scoreError,omitempty"`
	FitError      string                `json:"fitError,omitempty"`
	FitErrorFinal string                `json:"fitErrorFinal,omitempty"`
	PostFilter    *PostFilter           `json:"postFilter,omitempty"`
	// Allocations of the pod's own claims, by feasible node; not of the claim for extended resources.
	Allocations map[string][]Allocated `json:"allocations,omitempty"`
	// Partial tells that what is written to claims is not part of the answer.
	Partial bool `json:"partial,omitempty"`
}

// Status is what a plugin, or the framework, said.
type Status struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// PreFilter adds the nodes that PreFilter left; null is no restriction.
type PreFilter struct {
	Status
	NodeNames []string `json:"nodeNames"`
}

// NodeStatus tells whether PreFilter had already ruled the node out.
type NodeStatus struct {
	Status
	Prefiltered bool `json:"prefiltered,omitempty"`
}

// Score is one plugin's opinion of the feasible nodes, normalised, before its weight.
type Score struct {
	Weight  int64            `json:"weight"`
	Skipped bool             `json:"skipped,omitempty"`
	Nodes   map[string]int64 `json:"nodes,omitempty"`
}

// PostFilter is what preemption would do. Victims and Deleted are null when several nodes tie.
type PostFilter struct {
	Status
	NominatedNodes     []string             `json:"nominatedNodes"`
	Victims            []string             `json:"victims"`
	Deleted            []string             `json:"deleted"`
	ClearNominatedNode bool                 `json:"clearNominatedNode,omitempty"`
	Candidates         map[string]Candidate `json:"candidates"`
	DryRunFailures     map[string]Status    `json:"dryRunFailures,omitempty"`
}

// Candidate is a node on which preemption would make room.
type Candidate struct {
	Victims          []string `json:"victims"`
	NumPDBViolations int64    `json:"numPDBViolations"`
}

func statusOf(status *fwk.Status) Status {
	if status == nil {
		return Status{Code: fwk.Success.String()}
	}
	return Status{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: slices.Clone(status.Reasons())}
}

// statusOfNode sorts the reasons: kube-scheduler lists extended resources in any order.
func statusOfNode(status *fwk.Status) Status {
	said := statusOf(status)
	slices.Sort(said.Reasons)
	return said
}

func podKey(pod *v1.Pod) string {
	return pod.Namespace + "/" + pod.Name
}
