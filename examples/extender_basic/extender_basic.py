"""Filter, prioritize and bind, behind the three verbs of an extender."""

import logging

import mooring.framework as fw

log = logging.getLogger(__name__)


class Basic(fw.Filter, fw.PreScore, fw.Score, fw.Bind):
    """Let every node pass, prefer the last one by name, and have a look before pods are bound."""

    name = "Basic"
    wakes_on = ()  # it refuses no pod

    RANKS: fw.StateKey[dict[str, int]] = fw.StateKey("ranks of nodes")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.RANKS] = {name: rank for rank, name in enumerate(sorted(nodes.names))}
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        # A point of an extender is worth ten of a plugin's.
        return min(10 * state[self.RANKS][node.name], fw.MAX_SCORE)

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        log.warning("about to bind", extra={"pod": pod.key, "node": node_name})
        return fw.SKIP  # whatever skips a pod leaves it to the default, which creates the Binding
