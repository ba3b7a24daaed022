"""Which of the feasible nodes: the one with the most points, and how ties fall."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray

_FEW: Final = 32  # ties that are better held as a list


def pick(totals: IntArray) -> int:
    """The place of the winner among nodes that stand in listing order.

    Ties fall as in kube-scheduler, which takes the root of a heap built over the list: a node wins
    unless a node below it in the heap has more, and of two such branches the left one goes first.
    """
    first = int(totals.argmax())
    if first == 0:
        return 0
    tied = totals == totals[first]
    count = int(np.count_nonzero(tied))
    if count == 1:
        return first
    ties: list[int] | None = np.flatnonzero(tied).tolist() if count <= _FEW else None
    place = 0
    while not tied[place]:
        left = 2 * place + 1
        if ties is None:
            goes_left = _branch_has_any(tied, left)
        else:
            goes_left = _branch_has(ties, left, len(totals))
        place = left if goes_left else left + 1
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


def _branch_has_any(tied: BoolArray, root: int) -> bool:
    """The same, where ties are many: one is soon found."""
    first, width = root, 1
    while first < len(tied):
        if tied[first : first + width].any():
            return True
        first, width = 2 * first + 1, 2 * width
    return False
