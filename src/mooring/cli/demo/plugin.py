"""The placement rule of the demo; its lines are short, because the demo shows them."""

from mooring.framework import NODE, CycleState, Node, Pod, Score


class PreferSpot(Score):
    """Stateless pods go to cheap machines first."""

    name = "PreferSpot"
    depends_on = NODE

    def score(self, state: CycleState, pod: Pod, node: Node) -> int:
        return 100 if node.labels.get("price") == "spot" else 0
