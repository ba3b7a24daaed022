"""Configurations for lives: the default, one with other arguments, one with undeclared plugins.

The plugins have only the per-node forms and say nothing about what their answers depend on.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import mooring.framework as fw

USUAL: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

OTHER_ARGUMENTS: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      score: {enabled: [{name: ImageLocality, weight: 7}, {name: NodeAffinity, weight: 1}]}
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
      - name: InterPodAffinity
        args: {hardPodAffinityWeight: 60}
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints:
            - topologyKey: topology.kubernetes.io/zone
              maxSkew: 3
              whenUnsatisfiable: DoNotSchedule
            - topologyKey: kubernetes.io/hostname
              maxSkew: 1
              whenUnsatisfiable: ScheduleAnyway
"""

UNDECLARED: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {enabled: [{name: Pools}, {name: Quota}, {name: Crowds, weight: 2}]}
"""


class Pools(fw.PreFilter):
    """Pods of the front tier run outside pool "y"."""

    name = "Pools"

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.Status | fw.OnlyNodes:
        if pod.labels.get("tier") != "front":
            return fw.SKIP
        return fw.OnlyNodes.of(node.name for node in nodes if node.labels.get("pool") != "y")


class Tally:
    """Pods per namespace, in the whole cluster."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def clone(self) -> Tally:
        return Tally(Counter(self.counts))


TALLY: fw.StateKey[Tally] = fw.StateKey("Quota/tally")


class Quota(fw.PreFilter, fw.Filter):
    """A namespace has at most three pods on a node, fewer if it has many in the cluster."""

    name = "Quota"

    FULL = fw.Status.unschedulable("node(s) have enough pods of the namespace")

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[TALLY] = Tally(Counter(other.namespace for node in nodes for other in node.pods))
        return fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        state[TALLY].counts[added.namespace] += 1
        return fw.OK

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        state[TALLY].counts[removed.namespace] -= 1
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        most = 3 if state[TALLY].counts[pod.namespace] < 30 else 2
        here = sum(other.namespace == pod.namespace for other in node.pods)
        return fw.OK if here < most else self.FULL


class Crowds(fw.Score):
    """Prefers nodes with few pods of the same app."""

    name = "Crowds"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return sum(other.labels.get("app") == pod.labels.get("app") for other in node.pods)

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.LEAST_IS_100.normalize(scores)


PLUGINS: Final = (Pools, Quota, Crowds)
CONFIGURATIONS: Final = (USUAL, USUAL, OTHER_ARGUMENTS, UNDECLARED)
