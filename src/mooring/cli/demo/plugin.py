"""The placement rule of the demo."""

import mooring.framework as fw


class PreferSpot(fw.Score):
    """Stateless pods go to cheap machines first."""

    name = "PreferSpot"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.labels.get("price") == "spot" else 0
