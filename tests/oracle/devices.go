package main

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
)

// assumeInFlight tells the scheduler of allocations that another pod's Reserve has chosen.
func (a *attempt) assumeInFlight(chosen []InFlight) error {
	for _, one := range chosen {
		claim, err := a.claims.ResourceClaims().Get(one.Namespace, one.Name)
		if err != nil {
			return err
		}
		claim = claim.DeepCopy()
		claim.Status.Allocation = one.Allocation.DeepCopy()
		if err := a.claims.ResourceClaims().SignalClaimPendingAllocation(claim.UID, claim); err != nil {
			return err
		}
	}
	return nil
}

// allocate reserves the pod's claims on every feasible node in turn: what is then pending for a
// claim is what it would get there.
func (a *attempt) allocate(state fwk.CycleState, feasible []fwk.NodeInfo) error {
	if a.devices == nil || a.result.Outcome != outcomeScheduled || len(a.pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	a.result.Allocations = map[string][]Allocated{}
	for _, node := range feasible {
		name := node.Node().Name
		if status := a.devices.Reserve(a.ctx, state, a.pod, name); !status.IsSuccess() {
			return fmt.Errorf("reserve on %s: %s", name, status.Message())
		}
		var found []Allocated
		for i := range a.pod.Spec.ResourceClaims {
			claimName, _, err := resourceclaim.Name(a.pod, &a.pod.Spec.ResourceClaims[i])
			if err != nil || claimName == nil {
				continue
			}
			claim, err := a.claims.ResourceClaims().Get(a.pod.Namespace, *claimName)
			if err != nil {
				return err
			}
			if pending := a.claims.ResourceClaims().GetPendingAllocation(claim.UID); pending != nil {
				found = append(found, Allocated{Claim: claim.Namespace + "/" + claim.Name, Allocation: shown(pending)})
			}
		}
		if len(found) > 0 {
			a.result.Allocations[name] = found
		}
		a.devices.Unreserve(a.ctx, state, a.pod, name)
	}
	return nil
}

// shown has a fixed text in place of what is random.
func shown(allocation *resourcev1.AllocationResult) *resourcev1.AllocationResult {
	allocation = allocation.DeepCopy()
	for i := range allocation.Devices.Results {
		if share := allocation.Devices.Results[i].ShareID; share != nil {
			*share = "<generated>"
		}
	}
	allocation.Devices.Results = slices.Clip(allocation.Devices.Results)
	return allocation
}
