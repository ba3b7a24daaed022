"""The normalizers a plugin can declare."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mooring.framework as fw
from mooring.framework.scores import Normalizer


@pytest.mark.parametrize(
    ("normalizer", "raw", "normal"),
    [
        (fw.BEST_IS_100, [1, 2, 3], [33, 66, 100]),
        (fw.BEST_IS_100, [0, 0], [0, 0]),
        (fw.BEST_IS_100, [7, 7], [100, 100]),
        (fw.BEST_IS_100, [], []),
        (fw.LEAST_IS_100, [0, 1, 3], [100, 67, 0]),
        (fw.LEAST_IS_100, [0, 0], [100, 100]),
        (fw.LEAST_IS_100, [7, 7], [0, 0]),
        (fw.LEAST_IS_100, [], []),
        (fw.MIN_MAX, [-5, 0, 5], [0, 50, 100]),
        (fw.MIN_MAX, [0, 29, 100], [0, 28, 100]),  # as kube-scheduler: in floats, and cut off
        (fw.MIN_MAX, [7, 7], [0, 0]),
        (fw.MIN_MAX, [], []),
    ],
)
def test_normalizes_as_kube_scheduler_does(
    normalizer: Normalizer, raw: list[int], normal: list[int]
) -> None:
    assert normalizer.normalize(np.array(raw, dtype=np.int64)).tolist() == normal


@given(
    raw=st.lists(st.integers(0, 1_000), min_size=1),
    normalizer=st.sampled_from(list(Normalizer)),
)
def test_only_the_raw_score_and_the_extremes_matter(raw: list[int], normalizer: Normalizer) -> None:
    scores = np.array(raw, dtype=np.int64)
    found = normalizer.normalize(scores).tolist()
    different = np.unique(scores)
    alone = dict(zip(different.tolist(), normalizer.normalize(different).tolist(), strict=True))
    assert found == [alone[score] for score in raw]
    assert min(found) >= 0
    assert max(found) <= 100
