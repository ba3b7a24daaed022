"""The filters again before the bind request, for a node that changed since the decision.

Between decision and bind another scheduler may have put a pod on the same node, or an operator may
have drained it. Our own pods are counted from the moment they are assumed, so only changes from
outside call for a second look; without one it costs a comparison of two numbers.
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
    """Asks the filters of one profile again about one node."""

    def __init__(self, profile: Profile, evaluator: PodEvaluator, cache: Cache) -> None:
        self._evaluator = evaluator
        self._cache = cache
        # These plugins have reserved for this very pod already, and would find no room for it.
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
