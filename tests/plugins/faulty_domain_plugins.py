"""Plugins with tables by topology domain: some correct, the others each with one fault."""

from collections.abc import Hashable, Mapping

import numpy as np
from tests.testing.declarations import NOT_HERE
from tests.testing.named import Named

import mooring.framework as fw
from mooring.cache.internals import label_tally
from mooring.framework._internal import (
    DomainFilter,
    DomainScore,
    DomainTable,
    InternalPlugin,
    ScoreByLabel,
    ScoresByLabel,
    earlier_value,
)
from mooring.testing.builders import ZONE


class Zonal(Named, DomainFilter, fw.PreScore, DomainScore):
    """Honest: wants a zone, and likes those with more nodes."""

    wakes_on = (fw.Event.NODE_LABELS_CHANGED,)
    SIZES: fw.StateKey[fw.IntArray] = fw.StateKey("sizes")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if ZONE in node.labels else NOT_HERE

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.BoolArray]:
        return {ZONE: np.arange(nodes.label_count(ZONE)) == 0}

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        everywhere = self.handle.nodes
        size = everywhere.label_count(ZONE)
        state[self.SIZES] = np.bincount(everywhere.label_codes(ZONE), minlength=size)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(int(state[self.SIZES][node.label_code(ZONE)]), 100)

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.IntArray]:
        return {ZONE: np.minimum(state[self.SIZES], 100)}


class RefusesAll(Zonal):
    """Refuses every domain."""

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.BoolArray]:
        return {ZONE: np.ones(nodes.label_count(ZONE), dtype=np.bool_)}


class ShortTable(Zonal):
    """Forgets the nodes without the label."""

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.BoolArray]:
        return {ZONE: np.zeros(nodes.label_count(ZONE) - 1, dtype=np.bool_)}


class OtherPoints(Zonal):
    """Gives domains a point more than their nodes."""

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.IntArray]:
        return {ZONE: state[self.SIZES] + 1}


class CountsTheFit(Zonal):
    """Has points only where all nodes fit."""

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        super().pre_score(state, pod, nodes)
        return fw.OK if len(nodes) == len(self.handle.nodes) else fw.SKIP


class Local(Named, DomainScore):
    """Honest: likes zones with more pods, and says that it looks no further."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(self._points(np.array([node.label_code(ZONE)]))[0])

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, DomainTable[np.int64]]:
        return {ZONE: DomainTable("", self._points)}

    def _points(self, codes: fw.IntArray) -> fw.IntArray:
        return np.minimum(self._pods()[codes], 100)

    def _pods(self) -> fw.IntArray:
        return self.handle.nodes.count_pods_by(ZONE, self.name, lambda pod: True)


class NotLocal(Local):
    """Looks at the pods of all zones."""

    def _points(self, codes: fw.IntArray) -> fw.IntArray:
        return np.full(len(codes), min(int(self._pods().sum()), 100))


class LocalByApp(Named, DomainScore):
    """Honest: likes zones with more pods of the same app, and says that nothing else matters."""

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.labels.get("app")

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(self._counts(pod)[node.label_code(ZONE)])

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, DomainTable[np.int64]]:
        counts = self._counts(pod)
        return {ZONE: DomainTable(pod.labels.get("app"), counts.__getitem__)}

    def _counts(self, pod: fw.Pod) -> fw.IntArray:
        app = pod.labels.get("app")
        key = (self.name, app)
        counts = self.handle.nodes.count_pods_by(
            ZONE, key, lambda one: one.labels.get("app") == app
        )
        return np.minimum(counts, 100)


class BasisWithoutApp(LocalByApp):
    """Says that entries of pods with other keys are the same."""

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, DomainTable[np.int64]]:
        return {ZONE: DomainTable("", self._counts(pod).__getitem__)}


class ForgetsApp(BasisWithoutApp):
    """Says that not even the app matters."""

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return None


class Roomiest(Named, ScoreByLabel):
    """Honest: of the zones with nodes that fit, those with the most nodes are the best."""

    normalizer = fw.BEST_IS_100

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(label_tally(self.handle.nodes, ZONE)[node.label_code(ZONE)])

    def normalized_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> ScoresByLabel | None:
        sizes = label_tally(self.handle.nodes, ZONE)
        points = np.where(label_tally(nodes, ZONE), sizes, 0)
        return ScoresByLabel(ZONE, fw.BEST_IS_100.normalize(points))


class RoomiestOfAll(Roomiest):
    """Compares with zones where no node fits."""

    def normalized_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> ScoresByLabel | None:
        return ScoresByLabel(ZONE, fw.BEST_IS_100.normalize(label_tally(self.handle.nodes, ZONE)))


class NotFinal(Roomiest):
    """Gives points that are not normalised yet."""

    def normalized_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> ScoresByLabel | None:
        return ScoresByLabel(ZONE, 160 * label_tally(self.handle.nodes, ZONE))


class StaysWithIt(Named, InternalPlugin, fw.PreScore, fw.Score):
    """Takes the numbers of an earlier pod for its own."""

    PODS: fw.StateKey[int] = fw.StateKey("pods")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        known = earlier_value(state, self.PODS)
        state[self.PODS] = int(nodes.pod_counts.sum()) if known is None else known
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(state[self.PODS], 100)


class StaysWithLabels(Named, InternalPlugin, fw.PreScore, fw.Score):
    """Takes the labels of an earlier pod for those of its own."""

    LABELS: fw.StateKey[int] = fw.StateKey("labels")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        known = earlier_value(state, self.LABELS)
        state[self.LABELS] = len(pod.labels) if known is None else known
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return state[self.LABELS]
