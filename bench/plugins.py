"""Plugins as users write them: what each form of one costs is measured by `bench.inprocess`."""

from __future__ import annotations

import numpy as np

import mooring.framework as fw
from mooring.framework.plugin import Base


class _Roomiest(fw.Score):
    """More points the more of a node's cpu is free, asked for one node at a time."""

    name = "Roomiest"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        free = max(node.spare("cpu"), 0)
        return fw.MAX_SCORE * free // max(node.allocatable("cpu"), 1)


class PerNode(_Roomiest):
    """Says that its points depend on nothing but the node and its pods."""

    depends_on = fw.NODE_AND_PODS


class Vectorised(PerNode):
    """Answers for all nodes at once, too."""

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        free = np.maximum(nodes.spare("cpu"), 0)
        return fw.MAX_SCORE * free // np.maximum(nodes.allocatable("cpu"), 1)


class Undeclared(_Roomiest):
    """Says nothing, and so is asked about every node for every pod."""


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: Roomiest}]
"""

PLUGINS: dict[str, type[Base] | None] = {
    "no plugin": None,
    "vectorised, depends_on": Vectorised,
    "per node, depends_on": PerNode,
    "per node, no depends_on": Undeclared,
}
