"""A second run of the filters before the bind, if the node changed since the decision.

Between decision and bind another scheduler may have bound a pod to the same node, or an operator
may have drained it. Pods of this scheduler are counted as soon as they are assumed, so only
external changes need a second run; without one the check costs a comparison of two numbers.
"""

from __future__ import annotations

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.decision.evaluator import PodEvaluator
from mooring.framework import plugin as contract
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.runtime.profile import Profile


class Recheck:
    """Runs the filters of one profile again on one node."""

    def __init__(self, profile: Profile, evaluator: PodEvaluator, cache: Cache) -> None:
        self._evaluator = evaluator
        self._cache = cache
        # These plugins have already reserved for this pod, and would find no room for it.
        self._reserving = {plugin.name for plugin in profile.at(contract.Reserve)}

    def ask(self, pod: Pod, assumed: Pod) -> Status:
        """Whether the pod still fits on the node where it is assumed."""
        nodes = self._cache.nodes
        node = nodes.get(assumed.node_name)
        if node is None:
            return Status.unschedulable("the node is gone")
        state = CycleState()
        state.skip_filter.update(self._reserving)
        outcome = self._evaluator.begin(state, pod, nodes, use_memory=False).outcome
        if not outcome.status.ok:
            return outcome.status
        if outcome.only is not None and node.name not in outcome.only:
            return outcome.elsewhere
        what_if = self._evaluator.what_if
        without = node.without_pod(assumed)
        status = what_if.remove_pod(state, pod, assumed, without)
        return what_if.filter_node(state, pod, without) if status.ok else status
