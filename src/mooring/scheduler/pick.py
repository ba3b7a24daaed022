"""Which of the feasible nodes: the one with the most points, and how ties fall."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from mooring.cache.arrays import IntArray


def pick(totals: IntArray) -> int:
    """The place of the winner among nodes that stand in listing order.

    Ties fall as in kube-scheduler, which takes the root of a heap built over the list: a node wins
    unless a node below it in the heap has more, and of two such branches the left one goes first.
    """
    best = totals.max()
    ties: list[int] = np.flatnonzero(totals == best).tolist()
    if len(ties) == 1 or ties[0] == 0:
        return ties[0]
    place = 0
    while totals[place] != best:
        left = 2 * place + 1
        place = left if _branch_has(ties, left, len(totals)) else left + 1
    return place


def _branch_has(ties: list[int], root: int, size: int) -> bool:
    """Whether the heap branch below `root` holds a tie; each level is one run of places."""
    first, width = root, 1
    while first < size:
        found = bisect_left(ties, first)
        if found < len(ties) and ties[found] < first + width:
            return True
        first, width = 2 * first + 1, 2 * width
    return False


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
