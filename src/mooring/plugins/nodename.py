"""Honour `spec.nodeName` on a pod that is still to be scheduled."""

from collections.abc import Iterable

import numpy as np

import mooring.framework as fw
from mooring.framework._internal import InternalPlugin


class NodeName(InternalPlugin, fw.Filter):
    """Refuse every node but the one the pod names, if it names one."""

    name = "NodeName"
    key_from_spec = True
    depends_on = fw.NODE
    wakes_on = (fw.Event.NODE_ADDED,)

    OTHER_NODE = fw.Status.unresolvable("node(s) didn't match the requested node name")

    def cache_key(self, pod: fw.Pod) -> str:
        return pod.node_name

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if pod.node_name in ("", node.name) else self.OTHER_NODE

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        if not pod.node_name:
            return verdicts
        refused = np.ones(len(nodes), dtype=np.bool_)
        place = nodes.index_of(pod.node_name)
        if place is not None:
            refused[place] = False
        return verdicts.reject(refused, self.OTHER_NODE)

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        there = "" if pod.node_name in self.handle.nodes.names else ", which does not exist"
        yield fw.Fact(text=f"the pod names node {pod.node_name}{there}")

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        yield fw.Edit.of_pod_spec("name no node", family="nodeName", node_name="")
