"""Scores: their range, the usual normalisation, and the broken line of shape functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.cache.arrays import IntArray

MIN_SCORE = 0
MAX_SCORE = 100


def normalize(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Scale so that the best becomes 100; reversed, the least becomes 100.

    As helper.DefaultNormalizeScore, for scores that are not negative: with nothing above zero, all
    stay 0, or become 100 when reversed.
    """
    best = int(scores.max(initial=0))
    if best == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled: IntArray = MAX_SCORE * scores // best
    return MAX_SCORE - scaled if reverse else scaled


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
