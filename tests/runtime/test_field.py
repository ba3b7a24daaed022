"""What is kept for a class equals what comes out when everything is worked out anew."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mooring.framework as fw
from mooring.cache.arrays import IntArray
from mooring.cache.cache import Cache
from mooring.cache.snapshot import Nodes
from mooring.framework.results import LabelScores
from mooring.runtime.answers import Unsure
from mooring.runtime.domains import ByDomain
from mooring.runtime.field import Extra, Field
from mooring.runtime.picking import pick
from mooring.runtime.rescaling import Rescaled
from mooring.testing import node

SIZE = 90
ROWS = st.integers(0, SIZE - 1)
MANY_ROWS = st.lists(ROWS, unique=True, max_size=SIZE)


def nodes(size: int = SIZE) -> Nodes:
    """Three zones of different sizes, so that rows are listed in another order."""
    cache = Cache()
    for i in range(size):
        zone = "a" if i < 50 else "b" if i < 80 else "c"
        cache.put_node(node(f"n{i}", zone=zone, labels={"rack": f"r{i % 7}"}).api)
    return cache.nodes


NODES = nodes()
MANY_NODES = {size: nodes(size) for size in (2, 31, 128, 600)}


def winner(passed: dict[int, bool], points: dict[int, int], nodes: Nodes = NODES) -> int:
    listed = [row for row in nodes.listing.tolist() if passed[row]]
    row: int = listed[pick(np.array([points[row] for row in listed]))]
    return row


class Share(fw.NormalizeScore):
    """Points as a share of the most there are."""

    name = "Share"
    by_extremes = True

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.normalize(scores)


class Shares(Share):
    """Likewise, but says nothing of extremes."""

    name = "Shares"
    by_extremes = False


def normal(_: IntArray, points: IntArray) -> IntArray:
    return 2 * fw.normalize(points)


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


@pytest.mark.parametrize("plugin", [Share, Shares])
@given(steps=STEPS)
def test_chooses_as_if_all_points_were_added_up_anew(
    plugin: type[fw.NormalizeScore], steps: list[tuple[str, list[int], int]]
) -> None:
    field = Field(NODES)
    rescaled = Rescaled(plugin.__new__(plugin), field, SIZE)
    passed = dict.fromkeys(range(SIZE), False)
    plain = dict.fromkeys(range(SIZE), 0)
    raw = dict.fromkeys(range(SIZE), 0)
    for what, rows, number in [*steps, ("choose", [], 0)]:
        places = np.array(rows, dtype=np.int64)
        if what == "points":
            for place, row in enumerate(rows):
                plain[row] = number + place % 2
                field.put_one(row, plain[row] + int(rescaled.counted[row]))
        elif what == "open" and len(rows) > 5:
            news = field.open(places, np.full(len(rows), bool(number)))
            if news is not None:
                tell = rescaled.many_entered if number else rescaled.many_left
                tell(places[news])
            passed.update(dict.fromkeys(rows, bool(number)))
        elif what == "open":
            for row in rows:
                if field.open_one(row, bool(number)):
                    tell_one = rescaled.entered if number else rescaled.left
                    tell_one(row)
                passed[row] = bool(number)
        elif what in ("raw", "many kinds"):
            spread = len(rows) if what == "many kinds" else 1
            raw.update({row: number + place % spread for place, row in enumerate(rows)})
            each = np.array([raw[row] for row in rows], dtype=np.int64)
            rescaled.change(places, np.int64(number) if spread == 1 and number % 2 else each)
        elif sum(passed.values()) > 1:
            rescaled.settle(normal)
            inside = [row for row in range(SIZE) if passed[row]]
            scaled = normal(np.array(inside), np.array([raw[row] for row in inside]))
            totals = dict(zip(inside, scaled.tolist(), strict=True))
            assert field.best() == winner(passed, {r: plain[r] + totals[r] for r in inside})
        assert field.count == sum(passed.values())
        assert [row for row in range(SIZE) if field.passes(row)] == field.rows.tolist()


@pytest.mark.parametrize("size", MANY_NODES)
@given(dice=st.randoms(use_true_random=False))
def test_chooses_the_same_of_ties_as_a_heap(size: int, dice: random.Random) -> None:
    nodes = MANY_NODES[size]
    field = Field(nodes)
    everybody = range(size)
    passed, points = dict.fromkeys(everybody, False), dict.fromkeys(everybody, 0)
    most, openness = dice.choice((0, 1, 3, 1_000)), dice.choice((0.02, 0.5, 0.98, 1.0))
    for _ in range(dice.randrange(40)):
        rows = dice.sample(everybody, dice.choice((1, 1, 2, min(size, 5), size // 2, size)))
        opened = {row: dice.random() < openness for row in rows}
        given = {row: dice.randint(0, most) for row in rows}
        if dice.random() < 0.5 and sum(passed.values()) > 1:  # as if it took a pod, and will again
            best = winner(passed, points, nodes)
            opened[best] = given[best] = dice.random() < 0.5
        if len(opened) < 10:
            for row in opened:
                field.put_one(row, given[row])
                field.open_one(row, opened[row])
        else:
            field.put(np.array([*given]), np.array([*given.values()]))
            field.open(np.array([*opened]), np.array([*opened.values()]))
        passed.update(opened)
        points.update(given)
        if sum(passed.values()) > 1 and dice.random() < 0.8:
            assert field.best() == winner(passed, points, nodes)


TABLES = st.dictionaries(
    st.sampled_from(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "none"]),
    st.lists(st.integers(-1, 2), min_size=SIZE + 1, max_size=SIZE + 1),
)


def by_domain() -> ByDomain[np.int64]:
    return ByDomain("Any", lambda at, codes: at(codes), np.zeros(SIZE, dtype=np.int64))


def on_nodes(tables: dict[str, IntArray]) -> list[int]:
    expected = np.zeros(SIZE, dtype=np.int64)
    for key, table in tables.items():
        expected += table[NODES.label_codes(key)]
    found: list[int] = expected.tolist()
    return found


@given(st.lists(st.tuples(TABLES, st.booleans()), min_size=1, max_size=6))
def test_tables_are_followed_entry_by_entry(
    rounds: list[tuple[dict[str, list[int]], bool]],
) -> None:
    kept = by_domain()
    tables: dict[str, IntArray] = {}
    for given_tables, is_new in rounds:
        changed = {
            key: np.array(values[: NODES.label_count(key)]) for key, values in given_tables.items()
        }
        tables = changed if is_new else {**tables, **changed}
        rows, answers = kept.follow(tables, (), (), NODES)
        assert len(set(rows.tolist())) == len(rows)
        kept.column[rows] = answers
        assert kept.column.tolist() == on_nodes(tables)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(["kubernetes.io/hostname", "rack"]), MANY_ROWS),
            st.lists(ROWS, max_size=5),
            st.sampled_from(["same", "other basis", "moved", "plain"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_of_local_tables_only_domains_that_were_touched_are_looked_at(
    rounds: list[tuple[dict[str, list[int]], list[int], str]],
) -> None:
    kept = by_domain()
    tables: dict[str, IntArray] = {}
    basis = 0
    for number, (changed, moved, what) in enumerate(rounds):
        touched = set()
        for key, rows in changed.items():
            old = tables.get(key, np.zeros(NODES.label_count(key), dtype=np.int64))
            codes = NODES.label_codes(key)[np.array(rows, dtype=np.int64)]
            tables = {**tables, key: old.copy()}
            tables[key][codes] = number - codes % 3
            touched |= {*rows}
        given_tables: dict[str, object] = dict(tables)
        if what == "other basis":
            basis += 1
        if what != "plain":
            given_tables = {
                key: fw.LocalTable((key, basis), table.__getitem__) for key, table in tables.items()
            }
        gone = moved if what == "moved" else []
        found, answers = kept.follow(given_tables, touched | {*gone}, gone, NODES)
        assert len(set(found.tolist())) == len(found)
        kept.column[found] = answers
        assert kept.column.tolist() == on_nodes(tables)


def test_a_local_table_is_asked_about_nothing_else() -> None:
    kept = by_domain()
    asked: list[list[int]] = []

    def at(codes: IntArray) -> IntArray:
        asked.append(codes.tolist())
        return np.zeros(len(codes), dtype=np.int64)

    table = {"rack": fw.LocalTable("basis", at)}
    kept.follow(table, {1}, (), NODES)
    kept.follow(table, {1, 9}, (), NODES)
    kept.follow(table, {1, 9}, {9}, NODES)
    everything = list(range(NODES.label_count("rack")))
    codes = NODES.label_codes("rack")
    assert asked[0] == asked[2] == everything
    assert set(asked[1]) == {int(codes[1]), int(codes[9])}


@pytest.mark.parametrize(
    "tables",
    [
        None,
        {"rack": np.zeros(3, dtype=np.int64)},
        {"none": np.zeros(1, dtype=np.bool_)},
        {"rack": fw.LocalTable(None, lambda codes: codes[:1])},
    ],
)
def test_tables_that_do_not_fit_are_not_believed(tables: object) -> None:
    with pytest.raises(Unsure):
        by_domain().follow(tables, (), (), NODES)


KEYS = ["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "none"]


@pytest.mark.parametrize("size", MANY_NODES)
@given(seed=st.integers(0, 2**32))
def test_extra_points_count_for_one_choice(size: int, seed: int) -> None:
    nodes, dice = MANY_NODES[size], np.random.default_rng(seed)
    most = dice.choice((0, 1, 100))
    passes = dice.random(size) < dice.choice((0.05, 0.3, 0.9, 1.0))
    passes[:2] = True
    points = dice.integers(0, most, size, endpoint=True)
    field = Field(nodes)
    field.put(np.arange(size), points)
    field.open(np.arange(size), passes)
    rows = passes.nonzero()[0]
    passed = dict(enumerate(passes.tolist()))
    for _ in range(3):
        extra, totals = Extra(), points.copy()
        for key in dice.choice(KEYS, dice.integers(4)).tolist():
            table = dice.integers(0, most, nodes.label_count(key), endpoint=True)
            extra.add_by_label(LabelScores(key, table))
            totals += table[nodes.label_codes(key)]
        for _ in range(dice.integers(3)):
            column = dice.integers(0, most, len(rows), endpoint=True)
            extra.add(column)
            totals[rows] += column
        assert (points[rows] + extra.on(nodes.take(rows))).tolist() == totals[rows].tolist()
        expected = winner(passed, dict(enumerate(totals.tolist())), nodes)
        assert field.best_with(extra, nodes, None if len(rows) == size else rows) == expected
    assert field.best() == winner(passed, dict(enumerate(points.tolist())), nodes)
