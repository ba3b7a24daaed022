"""How many feasible nodes are enough, where a configuration says that not all need be found."""

from __future__ import annotations


def nodes_to_find(count: int, percentage: int | None) -> int | None:
    """How many feasible nodes are enough; None: look at all.

    An unset percentage means all nodes, because looking at all is cheap here. A percentage in the
    configuration is honoured as kube-scheduler does, 0 being its adaptive rule.
    """
    if percentage is None or count < 100:
        return None
    if percentage == 0:
        percentage = max(50 - count // 125, 5)
    wanted = max(count * percentage // 100, 100)
    return wanted if wanted < count else None
