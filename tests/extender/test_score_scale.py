"""Points of plugins as points of extenders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.extender.serving.score_scale import to_extender_scores


@pytest.mark.parametrize(
    ("points", "tenths"),
    [
        ([0, 4, 5, 14, 15, 94, 95, 100], [0, 0, 1, 1, 2, 9, 9, 10]),
        ([57, 58], [5, 6]),  # the best one stays the best
        ([50, 51, 52], [5, 5, 6]),
        ([1, 2], [0, 1]),
        ([99, 100], [9, 10]),
        ([50, 50], [5, 5]),
        ([0, 0], [0, 0]),
        ([], []),
    ],
)
def test_rounds_to_the_nearest_and_keeps_the_best_apart(
    points: list[int], tenths: list[int]
) -> None:
    assert to_extender_scores(np.array(points, dtype=np.int64), 1).tolist() == tenths


def test_gives_nothing_where_nobody_had_an_opinion() -> None:
    assert to_extender_scores(np.array([0, 0, 0], dtype=np.int64), 0).tolist() == [0, 0, 0]


@given(
    st.lists(st.integers(0, 100), min_size=1),
    st.lists(st.integers(0, 100), min_size=1),
    st.integers(1, 1000),
    st.integers(0, 1000),
)
def test_never_swaps_two_nodes_and_moves_none_by_a_whole_point(
    first: list[int], second: list[int], weight: int, other: int
) -> None:
    size = min(len(first), len(second))
    totals = np.array(first[:size]) * weight + np.array(second[:size]) * other
    tenths = to_extender_scores(totals, weight + other)
    order = np.argsort(totals, kind="stable")
    assert (np.diff(tenths[order]) >= 0).all()
    assert tenths.min() >= 0
    assert tenths.max() <= 10
    exact = totals / (10 * (weight + other))
    assert (np.abs(tenths - exact) < 1).all()
    best = totals == totals.max()
    assert (tenths[best] == tenths.max()).all()
    assert (tenths[~best] < tenths.max()).all()
