"""Scores: their range, the normalizers a plugin can declare, and the lines of shape functions."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import numpy as np

from mooring.cache.arrays import IntArray

MIN_SCORE = 0
MAX_SCORE = 100


class Normalizer(enum.Enum):
    """How raw scores of the feasible nodes become scores from 0 to 100.

    A normalized score depends only on the raw score and on the lowest and highest raw score, so
    nodes with equal raw scores are normalized once.
    """

    BEST_IS_100 = "best is 100"
    LEAST_IS_100 = "least is 100"
    MIN_MAX = "min-max"

    def normalize(self, scores: IntArray) -> IntArray:
        """The scores from 0 to 100."""
        if self is Normalizer.MIN_MAX:
            return _min_max(scores)
        # As helper.DefaultNormalizeScore.
        best = int(scores.max(initial=0))
        is_reversed = self is Normalizer.LEAST_IS_100
        if best == 0:
            return np.full_like(scores, MAX_SCORE) if is_reversed else scores
        scaled: IntArray = MAX_SCORE * scores // best
        return MAX_SCORE - scaled if is_reversed else scaled


BEST_IS_100: Final = Normalizer.BEST_IS_100
"""100 * score // highest, for scores that are not negative; if all are 0, all stay 0."""
LEAST_IS_100: Final = Normalizer.LEAST_IS_100
"""100 - 100 * score // highest, for non-negative scores; if all are 0, all become 100."""
MIN_MAX: Final = Normalizer.MIN_MAX
"""100 * (score - lowest) / (highest - lowest), rounded down; if all are equal, all become 0."""


def _min_max(scores: IntArray) -> IntArray:
    if not len(scores):
        return scores
    least, most = scores.item(scores.argmin()), scores.item(scores.argmax())
    width = float(most - least)
    if width <= 0:
        return np.zeros_like(scores)
    # In floats, in this order, and truncated, as InterPodAffinity.NormalizeScore: 29 of 100 becomes
    # 28.
    shares = (scores - least) / width
    shares *= MAX_SCORE
    normal: IntArray = shares.astype(np.int64)
    return normal


def broken_linear(shape: Sequence[tuple[int, int]], at: IntArray) -> IntArray:
    """The value of a line through the points of `shape` at each place of `at`, in whole numbers.

    As helper.BuildBrokenLinearFunction: flat outside the points, and between them the quotient is
    truncated toward zero, which differs from floor on falling lines.
    """
    result = np.full(at.shape, shape[-1][1], dtype=np.int64)
    for i in range(len(shape) - 1, 0, -1):
        (x0, y0), (x1, y1) = shape[i - 1], shape[i]
        rise = (y1 - y0) * (at - x0)
        slope = np.sign(rise) * (np.abs(rise) // (x1 - x0))
        result = np.where(at <= x1, y0 + slope, result)
    first: IntArray = np.where(at <= shape[0][0], shape[0][1], result)
    return first
