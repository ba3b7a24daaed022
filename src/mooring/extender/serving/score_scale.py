"""From a scheduler's points to an extender's: 0 to 100 becomes 0 to 10.

A point of an extender is worth ten of a plugin, so most of what distinguishes nodes can't be said.
Points are rounded to the nearest, half up. If that would make the best node a tie with a lesser
one, the lesser is rounded down, and if need be the best up: what a plugin likes most stays what it
likes most. Nobody is moved by a whole point, and no two nodes ever change places.
"""

from __future__ import annotations

from mooring.cache.arrays import IntArray
from mooring.extender.wire import MAX_SCORE as EXTENDER_MAX
from mooring.framework.scores import MAX_SCORE


def to_extender_scores(totals: IntArray, weight: int) -> IntArray:
    """The points that extenders give, for sums of points that were weighted with `weight` in all.

    Without any weight nobody had an opinion, and all get 0.
    """
    if not len(totals) or weight <= 0:
        return totals * 0
    unit = weight * MAX_SCORE // EXTENDER_MAX
    points: IntArray = (2 * totals + unit) // (2 * unit)
    best = int(totals.max())
    top = (2 * best + unit) // (2 * unit)
    rivals = (points == top) & (totals < best)
    if rivals.any():
        points[rivals] = totals[rivals] // unit
        if (points[rivals] == top).any():
            points[totals == best] = -(-best // unit)
    return points
