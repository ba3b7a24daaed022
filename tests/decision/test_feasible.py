"""The best of the feasible nodes is the one that a heap over the listing would give."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decision.three_zones import MANY_NODES, winner

from mooring.decision.feasible import ExtraScores, FeasibleNodes


@pytest.mark.parametrize("size", MANY_NODES)
@given(seed=st.integers(0, 2**32))
def test_chooses_the_same_of_ties_as_a_heap(size: int, seed: int) -> None:
    nodes, dice = MANY_NODES[size], random.Random(seed)
    feasible = FeasibleNodes(nodes, np.zeros(size, dtype=np.bool_), None)
    all_rows = range(size)
    passed, points = dict.fromkeys(all_rows, False), dict.fromkeys(all_rows, 0)
    most, openness = dice.choice((0, 1, 3, 1_000)), dice.choice((0.02, 0.5, 0.98, 1.0))
    for _ in range(dice.randrange(40)):
        rows = dice.sample(all_rows, dice.choice((1, 1, 2, min(size, 5), size // 2, size)))
        opened = {row: dice.random() < openness for row in rows}
        given = {row: dice.randint(0, most) for row in rows}
        if dice.random() < 0.5 and sum(passed.values()) > 1:  # as if it took a pod, and will again
            best = winner(passed, points, nodes)
            opened[best] = given[best] = dice.random() < 0.5
        if len(opened) < 10:
            for row in opened:
                feasible.set_total(row, given[row])
                feasible.set_feasible(row, opened[row])
        else:
            feasible.set_totals(np.array([*given]), np.array([*given.values()]))
            feasible.set_feasible_rows(np.array([*opened]), np.array([*opened.values()]))
        passed.update(opened)
        points.update(given)
        if sum(passed.values()) > 1 and dice.random() < 0.8:
            assert feasible.best() == winner(passed, points, nodes)


@pytest.mark.parametrize("size", MANY_NODES)
@given(seed=st.integers(0, 2**32))
def test_a_runner_up_that_was_looked_for_changes_no_choice(size: int, seed: int) -> None:
    """After `lead`, the next choice is made between two nodes, if nothing else was written."""
    nodes, dice = MANY_NODES[size], random.Random(seed)
    feasible = FeasibleNodes(nodes, None, None)
    all_rows = range(size)
    passed, points = dict.fromkeys(all_rows, True), dict.fromkeys(all_rows, 0)
    most = dice.choice((1, 3, 1_000))
    for _ in range(dice.randrange(60)):
        best = feasible.best()
        assert best == winner(passed, points, nodes)
        if dice.random() < 0.8:
            second, margin = feasible.lead(best, None, nodes)
            others = {row: points[row] for row in all_rows if passed[row] and row != best}
            assert (others[second], margin) == (max(others.values()), points[best] - points[second])
        # Most often only the node that took the pod changes.
        row = best if dice.random() < 0.7 else dice.choice(all_rows)
        several = [row, *(other for other in dice.sample(all_rows, 2) if other != row)]
        value, change = dice.randint(0, most), dice.randrange(12)
        if change < 6:
            feasible.set_total(row, value)
            points[row] = value
        elif change < 9:
            feasible.add_score(row, value)
            points[row] += value
        elif change == 9:
            feasible.set_totals(np.array(several), np.full(len(several), value))
            points.update(dict.fromkeys(several, value))
        elif change == 10:
            feasible.add_scores(np.array(several), np.full(len(several), value))
            points.update({each: points[each] + value for each in several})
        elif sum(passed.values()) > 3:
            if value % 2:
                feasible.set_feasible(row, not passed[row])
                passed[row] = not passed[row]
            else:
                feasible.set_feasible_rows(np.array([row]), np.array([not passed[row]]))
                passed[row] = not passed[row]


KEYS = ["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "none"]


@pytest.mark.parametrize("size", MANY_NODES)
@given(seed=st.integers(0, 2**32))
def test_extra_points_count_for_one_choice(size: int, seed: int) -> None:
    nodes, dice = MANY_NODES[size], np.random.default_rng(seed)
    most = dice.choice((0, 1, 100))
    passes = dice.random(size) < dice.choice((0.05, 0.3, 0.9, 1.0))
    passes[:2] = True
    points = dice.integers(0, most, size, endpoint=True)
    feasible = FeasibleNodes(nodes, passes, points)
    rows = passes.nonzero()[0]
    passed = dict(enumerate(passes.tolist()))
    for _ in range(3):
        extra, totals = ExtraScores(), points.copy()
        for key in dice.choice(KEYS, dice.integers(4)).tolist():
            table = dice.integers(0, most, nodes.label_count(key), endpoint=True)
            extra.add_by_label(key, table)
            totals += table[nodes.label_codes(key)]
        for _ in range(dice.integers(3)):
            codes = dice.integers(0, 9, size)
            table = dice.integers(0, most, 9, endpoint=True)
            extra.add_by_code(codes, table)
            totals += table[codes]
        for _ in range(dice.integers(3)):
            column = dice.integers(0, most, len(rows), endpoint=True)
            extra.add(column)
            totals[rows] += column
        assert (points[rows] + extra.on(nodes.take(rows))).tolist() == totals[rows].tolist()
        expected = winner(passed, dict(enumerate(totals.tolist())), nodes)
        assert feasible.best_with(extra, nodes) == expected
    assert feasible.best() == winner(passed, dict(enumerate(points.tolist())), nodes)
