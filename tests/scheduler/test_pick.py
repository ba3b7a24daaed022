import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.decision.feasible import pick
from mooring.scheduler.sampling import nodes_to_find


def recursive(scores: list[int], place: int = 0) -> int:
    """The winner of a branch: its root, unless a branch below it has a winner with more."""
    winner = place
    for child in (2 * place + 1, 2 * place + 2):
        if child < len(scores):
            other = recursive(scores, child)
            if scores[other] > scores[winner]:
                winner = other
    return winner


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        ([1, 1, 9, 9], 3),
        ([5, 5, 5], 0),
        ([3, 5, 5], 1),
        ([1, 2, 3, 3, 3, 3, 3], 3),
        ([7], 0),
        ([0, 0], 0),
        ([0, 1], 1),
        ([-5, -7, -5], 0),
    ],
)
def test_takes_the_root_of_the_heap(scores: list[int], winner: int) -> None:
    assert pick(np.array(scores)) == winner
    assert recursive(scores) == winner


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=70))
def test_ties_fall_as_the_recursive_rule_says(scores: list[int]) -> None:
    assert pick(np.array(scores)) == recursive(scores)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=40))
def test_nobody_has_more_than_the_winner(scores: list[int]) -> None:
    assert scores[pick(np.array(scores))] == max(scores)


@pytest.mark.parametrize(
    ("count", "percentage", "wanted"),
    [
        (99, 10, None),
        (50, 0, None),
        (5000, 0, 500),
        (1000, 0, 420),
        (6000, 0, 300),
        (100_000, 0, 5000),
        (125, 0, 100),
        (100, 50, None),
        (101, 1, 100),
        (1000, 5, 100),
        (1000, 30, 300),
        (1010, 33, 333),
        (1000, 100, None),
        (5000, None, None),
    ],
)
def test_looks_for_as_many_nodes_as_kube_scheduler_would(
    count: int, percentage: int | None, wanted: int | None
) -> None:
    assert nodes_to_find(count, percentage) == wanted
