"""`percentageOfNodesToScore`: the number of feasible nodes that are enough."""

from __future__ import annotations


def nodes_to_find(count: int, percentage: int | None) -> int | None:
    """The number of feasible nodes that are enough; None: all nodes are evaluated.

    An unset percentage means all nodes, because that is cheap here. A configured percentage has
    kube-scheduler's meaning; 0 is its adaptive rule.
    """
    if percentage is None or count < 100:
        return None
    if percentage == 0:
        percentage = max(50 - count // 125, 5)
    wanted = max(count * percentage // 100, 100)
    return wanted if wanted < count else None
