"""Prefer one node by its name, and scale the points over the nodes that fit."""

import mooring.framework as fw


class ToNodeName(fw.Score):
    """piworknode001 gets 80 points and the others 20, which normalise to 100 and 25."""

    name = "tonodename-scoring-plugin"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 80 if node.name == "piworknode001" else 20

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        low, high = int(scores.min(initial=0)), int(scores.max(initial=0))
        if low == high:
            low -= 1
        return (scores - low) * fw.MAX_SCORE // (high - low)
