"""The plugin of the demo."""

import mooring.framework as fw


class ToNodeName(fw.NormalizeScore):
    """Prefer one node by its name."""

    name = "tonodename-scoring-plugin"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 80 if node.name == "piworknode001" else 20

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.normalize(scores)  # 80 becomes 100, 20 becomes 25
