"""Dynamic resource allocation, for pods without resource claims only.

Claims are not allocated yet. A pod that uses one is refused with that reason rather than placed
without its devices; all others are treated as in kube-scheduler.
"""

from typing import Final

import numpy as np

import mooring.framework as fw
from mooring.config.duration import Duration
from mooring.framework._internal import InternalPlugin

_ONE_SECOND: Final = Duration.of(1)

HAS_RUN: fw.StateKey[bool] = fw.StateKey("DynamicResources/has run")


class DynamicResourcesArgs(fw.Args, frozen=True):
    """How long Filter may take for a node (0: no limit), and how long a binding may take."""

    filter_timeout: Duration = Duration.of(10)
    binding_timeout: Duration = Duration.of(600)

    def __post_init__(self) -> None:
        if self.filter_timeout < Duration():
            raise ValueError(
                f'filterTimeout: Invalid value: "{self.filter_timeout}": must be zero or positive'
            )
        if self.binding_timeout < _ONE_SECOND:
            raise ValueError(
                f'bindingTimeout: Invalid value: "{self.binding_timeout}":'
                " must be at least 1 second"
            )


class DynamicResources(
    InternalPlugin,
    fw.Plugin[DynamicResourcesArgs],
    fw.PreEnqueue,
    fw.PreFilter,
    fw.Filter,
    fw.PostFilter,
    fw.Score,
    fw.Reserve,
    fw.PreBind,
):
    """Refuse pods with resource claims; do nothing for the others, at every point."""

    name = "DynamicResources"
    key_from_spec = True
    skip_is_final = True
    depends_on = fw.NODE
    normalizer = fw.BEST_IS_100
    wakes_on = ()  # no event helps a pod with resource claims
    evicts = False

    UNSUPPORTED = fw.Status.unresolvable(
        "the pod uses resource claims, which mooring does not support yet"
    )
    NOTHING_TO_FREE = fw.Status.unschedulable("no new claims to deallocate")
    NEVER_RAN = fw.Status.error("not found")

    def cache_key(self, pod: fw.Pod) -> bool:
        return bool(pod.spec.resource_claims)

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
        # Claims are refused by `pre_filter`: a pod held here gets neither Event nor condition.
        return fw.OK

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[HAS_RUN] = True
        return self.UNSUPPORTED if pod.spec.resource_claims else fw.SKIP

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if HAS_RUN in state else self.NEVER_RAN

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        return verdicts if HAS_RUN in state else verdicts.reject_all(self.NEVER_RAN)

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status:
        # As in kube-scheduler: an error if an earlier plugin ended PreFilter, without any state.
        return self.NOTHING_TO_FREE if HAS_RUN in state else self.NEVER_RAN

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        """Does nothing: `reserve` reserves nothing."""

    def pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK
