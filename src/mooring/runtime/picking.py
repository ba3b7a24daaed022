"""Which of the feasible nodes: the one with the most points, and how ties fall.

kube-scheduler takes the root of a heap built over the list of nodes. A node wins unless a node
below it in the heap has more, and of two branches with the best points the left one goes first: so
of all ties the winner is the first that a walk meets which visits a place, then all below it on the
left, then all below it on the right. Where a place comes in that walk does not depend on how many
there are, and is written down once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mooring.cache.arrays import IntArray, frozen

_DEPTH: Final = 24  # levels of the heap: enough for 16 million nodes
_LEVELS: Final = _DEPTH + 1
SCALE: Final = 2**29  # more than any turn
MAX_POINTS: Final = 2**33  # with more than that, points and turn do not fit into one number

_turns: IntArray = np.empty(0, dtype=np.int64)


def turns(size: int) -> IntArray:
    """For each of the first places a number that grows along the walk."""
    global _turns
    if size > len(_turns):
        numbers = np.arange(1, max(2 * len(_turns), size, 1024) + 1, dtype=np.int64)
        levels = np.frexp(numbers.astype(np.float64))[1].astype(np.int64) - 1
        # The way to a place from the root is in the bits of its number, one per level.
        ways = (numbers - (1 << levels)) << (_DEPTH - levels)
        _turns = frozen(ways * _LEVELS + levels)
    return _turns[:size]


def pick(totals: IntArray) -> int:
    """The place of the winner among nodes that stand in listing order."""
    best = int(totals.argmax())
    if best == 0:
        return 0
    ties = np.flatnonzero(totals == totals[best])
    return int(ties[turns(len(totals))[ties].argmin()])
