"""The example plugin of the style guide, word for word: the kit must find nothing wrong with it."""

from typing import Annotated

import numpy as np
from msgspec import Meta

import mooring.framework as fw


class HeadroomArgs(fw.Args, frozen=True):
    """Which resource to watch, and what share of it must stay free."""

    resource: str = "cpu"
    reserve: Annotated[float, Meta(ge=0, lt=1)] = 0.1


class Headroom(fw.Plugin[HeadroomArgs], fw.Filter, fw.Score):
    """Refuse nodes the pod would leave too full; prefer the roomiest of the rest."""

    name = "Headroom"
    wakes_on = (fw.Event.NODE_ADDED, fw.Event.NODE_ALLOCATABLE_CHANGED, fw.Event.POD_DELETED)

    TOO_FULL = fw.Status.unschedulable("node(s) would keep too little headroom")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        kept = node.spare(self.args.resource) - pod.requests(self.args.resource)
        floor = self.args.reserve * node.allocatable(self.args.resource)
        return fw.OK if kept >= floor else self.TOO_FULL

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        kept = nodes.spare(self.args.resource) - pod.requests(self.args.resource)
        floor = self.args.reserve * nodes.allocatable(self.args.resource)
        return fw.Verdicts.passing(nodes).reject(kept < floor, self.TOO_FULL)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        kept = max(node.spare(self.args.resource) - pod.requests(self.args.resource), 0)
        return 100 * kept // max(node.allocatable(self.args.resource), 1)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        kept = np.maximum(nodes.spare(self.args.resource) - pod.requests(self.args.resource), 0)
        return 100 * kept // np.maximum(nodes.allocatable(self.args.resource), 1)
