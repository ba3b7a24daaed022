"""Plugin scores (0 to 100) as extender scores (0 to 10).

Scores are rounded to the nearest integer, half up. If the best node would then tie with a worse
one, the worse one is rounded down, and if necessary the best up, so that the best node stays the
best. No score changes by a whole point, and the order of the nodes stays.
"""

from __future__ import annotations

from mooring.cache.arrays import IntArray
from mooring.extender.wire import MAX_SCORE as EXTENDER_MAX
from mooring.framework.scores import MAX_SCORE


def to_extender_scores(totals: IntArray, weight: int) -> IntArray:
    """Extender scores for sums of plugin scores; `weight` is the sum of the plugins' weights."""
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
