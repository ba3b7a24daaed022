"""Tables by topology domain, followed from pod to pod, give every node its answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decision.three_zones import MANY_ROWS, NODES, ROWS, SIZE

from mooring.cache.arrays import IntArray
from mooring.decision.domains import DomainAnswers
from mooring.framework._internal import DomainTable

TABLES = st.dictionaries(
    st.sampled_from(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "none"]),
    st.lists(st.integers(-1, 2), min_size=SIZE + 1, max_size=SIZE + 1),
)


def by_domain() -> DomainAnswers[np.int64]:
    return DomainAnswers("Any", lambda at, codes: at(codes), np.zeros(SIZE, dtype=np.int64))


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
        assert (kept.column[rows] != answers).all()
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
                key: DomainTable((key, basis), table.__getitem__) for key, table in tables.items()
            }
        gone = moved if what == "moved" else []
        found, answers = kept.follow(given_tables, touched | {*gone}, gone, NODES)
        assert len(set(found.tolist())) == len(found)
        assert (kept.column[found] != answers).all()
        kept.column[found] = answers
        assert kept.column.tolist() == on_nodes(tables)


def test_a_local_table_is_asked_about_nothing_else() -> None:
    kept = by_domain()
    asked: list[list[int]] = []

    def at(codes: IntArray) -> IntArray:
        asked.append(codes.tolist())
        return np.zeros(len(codes), dtype=np.int64)

    table = {"rack": DomainTable("basis", at)}
    kept.follow(table, {1}, (), NODES)
    kept.follow(table, {1, 9}, (), NODES)
    kept.follow(table, {1, 9}, {9}, NODES)
    everything = list(range(NODES.label_count("rack")))
    codes = NODES.label_codes("rack")
    assert asked[0] == asked[2] == everything
    assert set(asked[1]) == {int(codes[1]), int(codes[9])}


def test_of_the_domains_that_were_touched_only_those_that_differ_are_given() -> None:
    kept = by_domain()
    entries = np.zeros(NODES.label_count("rack"), dtype=np.int64)
    table = {"rack": DomainTable("basis", lambda codes: entries[codes])}
    kept.follow(table, (), (), NODES)
    code = int(NODES.label_codes("rack")[1])
    entries[code] = 3
    rows, answers = kept.follow(table, {1, 2, 9}, (), NODES)
    assert set(NODES.label_codes("rack")[rows].tolist()) == {code}
    assert answers == 3


@pytest.mark.parametrize(
    "tables",
    [
        None,
        {"rack": np.zeros(3, dtype=np.int64)},
        {"none": np.zeros(1, dtype=np.bool_)},
        {"rack": DomainTable(None, lambda codes: codes[:1])},
    ],
)
def test_tables_that_do_not_fit_are_not_believed(tables: object) -> None:
    with pytest.raises(TypeError):
        by_domain().follow(tables, (), (), NODES)
