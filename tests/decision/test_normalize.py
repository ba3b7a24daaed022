"""Normalized scores that are brought up to date equal those that are worked out anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decision.engine import evaluator_of
from tests.decision.three_zones import MANY_NODES, MANY_ROWS, NODES, SIZE, winner

import mooring.framework as fw
from mooring.cache.arrays import IntArray
from mooring.cache.cache import Cache
from mooring.decision.feasible import FeasibleNodes
from mooring.decision.normalize import NormalizedScores
from mooring.testing import node, pod


class Declared(fw.Score):
    """Declares how its scores are normalized."""

    name = "Declared"
    normalizer = fw.BEST_IS_100

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class ByMethod(fw.Score):
    """Normalizes likewise, by a method of its own."""

    name = "ByMethod"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.BEST_IS_100.normalize(scores)


def normal(_: IntArray, points: IntArray) -> IntArray:
    return 2 * fw.BEST_IS_100.normalize(points)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("points"), MANY_ROWS, st.integers(0, 3)),
        st.tuples(st.just("open"), MANY_ROWS, st.integers(0, 1)),
        st.tuples(st.just("raw"), MANY_ROWS, st.integers(0, 3)),
        st.tuples(st.just("many kinds"), MANY_ROWS, st.integers(0, 200)),
        st.tuples(st.just("choose"), st.just([]), st.just(0)),
    ),
    max_size=25,
)


@pytest.mark.parametrize("plugin", [Declared, ByMethod])
@given(steps=STEPS)
def test_chooses_as_if_all_points_were_added_up_anew(
    plugin: type[fw.Score], steps: list[tuple[str, list[int], int]]
) -> None:
    nothing = np.zeros(SIZE, dtype=np.bool_)
    feasible = FeasibleNodes(NODES, nothing, None)
    scores = NormalizedScores(plugin.__new__(plugin), feasible, np.zeros(SIZE, dtype=np.int64))
    passed = dict.fromkeys(range(SIZE), False)
    plain = dict.fromkeys(range(SIZE), 0)
    raw = dict.fromkeys(range(SIZE), 0)
    for what, rows, number in [*steps, ("choose", [], 0)]:
        places = np.array(rows, dtype=np.int64)
        if what == "points":
            for place, row in enumerate(rows):
                plain[row] = number + place % 2
                feasible.set_total(row, plain[row] + int(scores.counted[row]))
        elif what == "open" and len(rows) > 5:
            news = feasible.set_feasible_rows(places, np.full(len(rows), bool(number)))
            if news is not None:
                tell = scores.many_entered if number else scores.many_left
                tell(places[news])
            passed.update(dict.fromkeys(rows, bool(number)))
        elif what == "open":
            for row in rows:
                if feasible.set_feasible(row, bool(number)):
                    tell_one = scores.entered if number else scores.left
                    tell_one(row)
                passed[row] = bool(number)
        elif what in ("raw", "many kinds"):
            spread = len(rows) if what == "many kinds" else 1
            raw.update({row: number + place % spread for place, row in enumerate(rows)})
            each = np.array([raw[row] for row in rows], dtype=np.int64)
            scores.change(places, np.int64(number) if spread == 1 and number % 2 else each)
        elif sum(passed.values()) > 1:
            scores.refresh(normal)
            inside = [row for row in range(SIZE) if passed[row]]
            scaled = normal(np.array(inside), np.array([raw[row] for row in inside]))
            totals = dict(zip(inside, scaled.tolist(), strict=True))
            assert feasible.best() == winner(passed, {r: plain[r] + totals[r] for r in inside})
        assert feasible.count == sum(passed.values())
        assert [row for row in range(SIZE) if feasible.has(row)] == feasible.rows.tolist()


@pytest.mark.parametrize("many", [False, True])
def test_rows_that_enter_by_the_hundred_between_two_choices_are_counted(many: bool) -> None:
    size = 600
    nodes = MANY_NODES[size]
    raw = np.arange(size, dtype=np.int64) % 2
    inside = np.zeros(size, dtype=np.bool_)
    inside[:10] = True
    feasible = FeasibleNodes(nodes, inside, None)
    scores = NormalizedScores(Declared.__new__(Declared), feasible, raw)
    for _ in range(2):  # the groups are known the second time
        scores.refresh(normal)
    rows = np.arange(10, size)
    if many:
        for some in np.array_split(rows, 295):
            feasible.set_feasible_rows(some, np.ones(len(some), dtype=np.bool_))
            scores.many_entered(some)
    else:
        for row in rows.tolist():
            feasible.set_feasible(row, True)
            scores.entered(row)
    scores.refresh(normal)
    assert scores.counted.tolist() == [0, 200] * (size // 2)


class Quiet(fw.Score):
    """Prefers nodes with few pods."""

    name = "Quiet"
    depends_on = fw.NODE_AND_PODS
    normalizer = fw.LEAST_IS_100

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return node.pod_count


def test_scores_that_depend_on_pods_are_followed_from_pod_to_pod() -> None:
    cache = Cache()
    for name in "abcd":
        cache.put_node(node(name).api)
    evaluator = evaluator_of(cache, Quiet)
    found = []
    for number in range(6):
        evaluation = evaluator.begin(fw.CycleState(), pod("new"), cache.nodes)
        evaluation.filter()
        evaluation.choose()
        found.append(cache.nodes.names[evaluation.row])
        cache.put_pod(pod(f"p{number}", on=found[-1]))
    assert "".join(found) == "abdcab"


class Large(fw.Score):
    """Prefers large nodes."""

    name = "Large"
    depends_on = fw.NODE
    normalizer = fw.BEST_IS_100

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(node.labels["size"])


def test_scores_that_are_normalized_may_be_any_numbers() -> None:
    cache = Cache()
    for size in ("300", "200", "700"):
        cache.put_node(node(f"of-{size}", labels={"size": size}).api)
    evaluator = evaluator_of(cache, Large)
    for _ in range(2):  # the second pod is decided by class
        evaluation = evaluator.begin(fw.CycleState(), pod("p"), cache.nodes)
        evaluation.filter()
        evaluation.choose()
        assert cache.nodes.names[evaluation.row] == "of-700"


class Closed(fw.Filter):
    """Refuses nodes with the label closed."""

    name = "Closed"
    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable("closed") if "closed" in node.labels else fw.OK


class Bonus(fw.Score):
    """Gives 30 points to nodes with the label bonus."""

    name = "Bonus"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 30 if "bonus" in node.labels else 0


@pytest.mark.parametrize("count", [1, 5, 40])
def test_nodes_that_leave_or_enter_together_change_the_scores_of_all_others(count: int) -> None:
    cache = Cache()
    cache.put_node(node("medium", labels={"size": "400"}).api)
    cache.put_node(node("small", labels={"size": "200", "bonus": "yes"}).api)
    evaluator = evaluator_of(cache, Closed, Large, Bonus)
    closed = {"closed": "yes"}
    for labels in ({}, closed, {}, closed):
        for number in range(count):
            about = {"size": "1000", **labels}
            cache.put_node(node(f"large-{number}", labels=about).api)
        for _ in range(4):  # the scores are known by and by
            evaluation = evaluator.begin(fw.CycleState(), pod("p"), cache.nodes)
            evaluation.filter()
            evaluation.choose()
            # Beside large ones, the others have 40 and 20 points, and 30 more; else 100 and 50.
            chosen = cache.nodes.names[evaluation.row]
            assert chosen.rpartition("-")[0] == ("" if labels else "large")
            assert chosen != "small"


def test_rows_that_left_together_and_came_back_with_another_score_count_with_that_one() -> None:
    size = 600
    raw = np.full(size, 1, dtype=np.int64)
    raw[:30] = 2
    feasible = FeasibleNodes(MANY_NODES[size], np.ones(size, dtype=np.bool_), None)
    scores = NormalizedScores(Declared.__new__(Declared), feasible, raw)
    for _ in range(2):  # the second time, the thirty rows with the score 2 are listed
        scores.refresh(normal)
    gone = np.arange(20)
    feasible.set_feasible_rows(gone, np.zeros(20, dtype=np.bool_))
    scores.many_left(gone)
    scores.change(gone, np.int64(1))
    for row in gone.tolist():
        feasible.set_feasible(row, True)
        scores.entered(row)
    scores.refresh(normal)
    scores.change(np.array([599]), np.int64(4))
    scores.refresh(normal)
    assert scores.counted.tolist() == [50] * 20 + [100] * 10 + [50] * 569 + [200]
