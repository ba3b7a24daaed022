"""A last look before the bind request, for a node that somebody else has touched meanwhile.

Between decision and bind another scheduler may have put a pod on the same node, or an operator may
have drained it. Our own pods are counted from the moment they are assumed, so only changes from
outside call for a second look; without one it costs a comparison of two numbers.
"""

from __future__ import annotations

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.framework import plugin as contract
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.runtime.evaluation import Evaluation
from mooring.runtime.profile import Profile
from mooring.runtime.runner import Runner


class Recheck:
    """Asks the filters of one profile again about one node."""

    def __init__(
        self, profile: Profile, runner: Runner, evaluation: Evaluation, cache: Cache
    ) -> None:
        self._runner = runner
        self._evaluation = evaluation
        self._cache = cache
        # Who reserves holds the pod's share already, and would find it taken: by this very pod.
        self._reserving = {plugin.name for plugin in profile.at("reserve", contract.Reserve)}

    def ask(self, pod: Pod, assumed: Pod) -> Status:
        """Whether the pod still fits on the node where it is assumed."""
        nodes = self._cache.nodes
        node = nodes.get(assumed.node_name)
        if node is None:
            return Status.unschedulable("the node is gone")
        state = CycleState()
        state.skip_filter.update(self._reserving)
        before = self._runner.pre_filter(state, pod, nodes)
        if not before.status.ok:
            return before.status
        if before.only is not None and node.name not in before.only:
            return before.elsewhere
        without = node.without_pod(assumed)
        status = self._runner.remove_pod(state, pod, assumed, without)
        if not status.ok:
            return status
        return self._evaluation.filter_node(state, pod, without)
