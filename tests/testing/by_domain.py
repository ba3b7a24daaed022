"""Plugins that answer by topology domain, and go wrong with it, each in one way."""

from collections.abc import Hashable, Mapping

import numpy as np
from tests.testing.overclaims import NOT_HERE, ByLabels

import mooring.framework as fw
from mooring.testing.builders import ZONE


class Zonal(fw.DomainFilter, fw.PreScore, fw.DomainScore):
    """Honest: wants a zone, and likes those with more nodes."""

    name = "Zonal"
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

    name = "RefusesAll"

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.BoolArray]:
        return {ZONE: np.ones(nodes.label_count(ZONE), dtype=np.bool_)}


class ShortTable(Zonal):
    """Forgets the nodes without the label."""

    name = "ShortTable"

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.BoolArray]:
        return {ZONE: np.zeros(nodes.label_count(ZONE) - 1, dtype=np.bool_)}


class OtherPoints(Zonal):
    """Gives domains a point more than their nodes."""

    name = "OtherPoints"

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.IntArray]:
        return {ZONE: state[self.SIZES] + 1}


class CountsTheFit(Zonal):
    """Has points only where all nodes fit."""

    name = "CountsTheFit"

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        super().pre_score(state, pod, nodes)
        return fw.OK if len(nodes) == len(self.handle.nodes) else fw.SKIP


class Local(fw.DomainScore):
    """Honest: likes zones with more pods, and says that it looks no further."""

    name = "Local"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(self._points(np.array([node.label_code(ZONE)]))[0])

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.LocalTable[np.int64]]:
        return {ZONE: fw.LocalTable("", self._points)}

    def _points(self, codes: fw.IntArray) -> fw.IntArray:
        return np.minimum(self._pods()[codes], 100)

    def _pods(self) -> fw.IntArray:
        return self.handle.nodes.count_pods_by(ZONE, self.name, lambda pod: True)


class NotLocal(Local):
    """Looks at the pods of all zones."""

    name = "NotLocal"

    def _points(self, codes: fw.IntArray) -> fw.IntArray:
        return np.full(len(codes), min(int(self._pods().sum()), 100))


class LocalByApp(fw.DomainScore):
    """Honest: likes zones with more pods of the same app, and says that nothing else matters."""

    name = "LocalByApp"

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.labels.get("app")

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(self._counts(pod)[node.label_code(ZONE)])

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.LocalTable[np.int64]]:
        counts = self._counts(pod)
        return {ZONE: fw.LocalTable("", counts.__getitem__)}

    def _counts(self, pod: fw.Pod) -> fw.IntArray:
        app = pod.labels.get("app")
        key = (self.name, app)
        counts = self.handle.nodes.count_pods_by(
            ZONE, key, lambda one: one.labels.get("app") == app
        )
        return np.minimum(counts, 100)


class ForgetsApp(LocalByApp):
    """Says that not even the app matters."""

    name = "ForgetsApp"

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return None


class OldVersionOfApps(LocalByApp):
    """Says that its key, in which there are nodes, is always the same."""

    name = "OldVersionOfApps"

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return super().cache_key(pod), len(self.handle.nodes)

    def key_version(self) -> Hashable:
        return 0


class Roomiest(fw.NormalizeScore):
    """Honest: of the zones with nodes that fit, those with the most nodes are the best."""

    name = "Roomiest"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(self.handle.nodes.label_tally(ZONE)[node.label_code(ZONE)])

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.normalize(scores)

    def final_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.LabelScores | None:
        sizes = self.handle.nodes.label_tally(ZONE)
        return fw.LabelScores(ZONE, fw.normalize(np.where(nodes.label_tally(ZONE), sizes, 0)))


class RoomiestOfAll(Roomiest):
    """Compares with zones where no node fits."""

    name = "RoomiestOfAll"

    def final_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.LabelScores | None:
        return fw.LabelScores(ZONE, fw.normalize(self.handle.nodes.label_tally(ZONE)))


class NotFinal(Roomiest):
    """Gives points that are not normalised yet."""

    name = "NotFinal"

    def final_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.LabelScores | None:
        return fw.LabelScores(ZONE, 160 * self.handle.nodes.label_tally(ZONE))


class ByMean(ByLabels):
    """Rescales by what most nodes have."""

    name = "ByMean"

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        shares: fw.IntArray = 50 * len(scores) * scores // scores.sum()
        return np.minimum(shares, 100)


class HalfForApps(ByLabels):
    """Rescales by something that its key does not hold."""

    name = "HalfForApps"

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return None

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.normalize(scores) // (2 if "app" in pod.labels else 1)


class StaysWithIt(fw.PreScore, fw.Score):
    """Takes the numbers of an earlier pod for its own."""

    name = "StaysWithIt"
    PODS: fw.StateKey[int] = fw.StateKey("pods")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        known = state.earlier.get(self.PODS) if state.earlier is not None else None
        state[self.PODS] = int(nodes.pod_counts.sum()) if known is None else known
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(state[self.PODS], 100)


class StaysWithLabels(fw.PreScore, fw.Score):
    """Takes the labels of an earlier pod for those of its own."""

    name = "StaysWithLabels"
    LABELS: fw.StateKey[int] = fw.StateKey("labels")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        known = state.earlier.get(self.LABELS) if state.earlier is not None else None
        state[self.LABELS] = len(pod.labels) if known is None else known
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return state[self.LABELS]
