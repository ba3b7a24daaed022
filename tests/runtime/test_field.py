"""What is kept for a class equals what comes out when everything is worked out anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mooring.framework as fw
from mooring.cache.arrays import IntArray
from mooring.cache.cache import Cache
from mooring.cache.snapshot import Nodes
from mooring.runtime.domains import ByDomain
from mooring.runtime.field import Field
from mooring.runtime.layers import Unsure
from mooring.runtime.picking import pick
from mooring.runtime.rescaling import Rescaled
from mooring.testing import node

SIZE = 90
ROWS = st.integers(0, SIZE - 1)
MANY_ROWS = st.lists(ROWS, unique=True, max_size=SIZE)


def nodes() -> Nodes:
    """Three zones of different sizes, so that rows are listed in another order."""
    cache = Cache()
    for i in range(SIZE):
        zone = "a" if i < 50 else "b" if i < 80 else "c"
        cache.put_node(node(f"n{i}", zone=zone, labels={"rack": f"r{i % 7}"}).api)
    return cache.nodes


NODES = nodes()


def winner(passed: dict[int, bool], points: dict[int, int]) -> int:
    listed = [row for row in NODES.listing.tolist() if passed[row]]
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
            rescaled.change(places, np.array([raw[row] for row in rows], dtype=np.int64))
        elif sum(passed.values()) > 1:
            rescaled.settle(normal)
            inside = [row for row in range(SIZE) if passed[row]]
            scaled = normal(np.array(inside), np.array([raw[row] for row in inside]))
            totals = dict(zip(inside, scaled.tolist(), strict=True))
            assert field.best() == winner(passed, {r: plain[r] + totals[r] for r in inside})
        assert field.count == sum(passed.values())
        assert [row for row in range(SIZE) if field.passes(row)] == field.rows.tolist()


TABLES = st.dictionaries(
    st.sampled_from(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "none"]),
    st.lists(st.integers(-1, 2), min_size=SIZE + 1, max_size=SIZE + 1),
)


@given(st.lists(st.tuples(TABLES, st.booleans()), min_size=1, max_size=6))
def test_tables_are_followed_entry_by_entry(
    rounds: list[tuple[dict[str, list[int]], bool]],
) -> None:
    kept = ByDomain(np.int64, SIZE)
    tables: dict[str, IntArray] = {}
    for given_tables, is_new in rounds:
        changed = {
            key: np.array(values[: NODES.label_count(key)]) for key, values in given_tables.items()
        }
        tables = changed if is_new else {**tables, **changed}
        rows, answers = kept.follow("Any", tables, (), NODES)
        assert len(set(rows.tolist())) == len(rows)
        kept.column[rows] = answers
        expected = np.zeros(SIZE, dtype=np.int64)
        for key, table in tables.items():
            expected += table[NODES.label_codes(key)]
        assert kept.column.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "tables", [None, {"rack": np.zeros(3, dtype=np.int64)}, {"none": np.zeros(1, dtype=np.bool_)}]
)
def test_tables_that_do_not_fit_are_not_believed(tables: object) -> None:
    with pytest.raises(Unsure):
        ByDomain(np.int64, SIZE).follow("Any", tables, (), NODES)  # type: ignore[arg-type]


def test_extra_points_count_for_one_choice() -> None:
    field = Field(NODES)
    rows = np.array([3, 40, 70])
    field.put(rows, np.array([5, 5, 5]))
    field.open(rows, np.array([True, True, True]))
    assert field.best_with(rows, np.array([0, 1, 0])) == 40
    assert field.best() == winner(
        {row: row in (3, 40, 70) for row in range(SIZE)}, dict.fromkeys(range(SIZE), 5)
    )
    everybody = np.arange(SIZE)
    field.put(everybody, np.zeros(SIZE, dtype=np.int64))
    field.open(everybody, np.ones(SIZE, dtype=np.bool_))
    extra = everybody % 3
    points = dict(enumerate(extra.tolist()))
    assert field.best_with(None, extra) == winner(dict.fromkeys(range(SIZE), True), points)
    assert field.best_with(everybody, extra) == field.best_with(None, extra)
