"""Checks of what only our own plugins declare: tables by topology domain, and scores by one label.

`check_declarations_are_true` evaluates with these tables as well, but a wrong entry shows there
only if it changes which nodes are feasible or which one is the best. Here every entry is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mooring.cache.internals import on_rows_of
from mooring.cache.snapshot import Nodes
from mooring.framework._internal import (
    DomainFilter,
    DomainScore,
    DomainTable,
    ScoreByLabel,
    ScoresByCode,
)
from mooring.framework.plugin import PreFilter, PreScore, Score
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.testing._bench import Bench, Fault, describe
from mooring.testing._check import on_every_case
from mooring.testing._declarations import after, steps

Entries = np.ndarray[Any, Any]


@on_every_case(DomainFilter)
def check_domains_refuse_alike(bench: Bench) -> None:
    """`filter_by_domain` refuses the nodes that `filter` refuses, and no others."""
    answers = bench.evaluate()
    plugin, nodes = bench.plugin, bench.cache.nodes
    assert isinstance(plugin, DomainFilter)
    if not answers.statuses or plugin.name in answers.state.skip_filter:
        return
    given = bench.call(plugin.filter_by_domain, answers.state, bench.case.pod, nodes)
    tables = _entries(given, np.dtype(np.bool_), nodes)
    for node in nodes:
        refusing = [key for key, table in tables.items() if table[node.label_code(key)]]
        if bool(refusing) == answers.statuses[node.name].ok:
            raise Fault(
                f"node {node.name} is refused for {refusing} by filter_by_domain(), but filter()"
                f" says {describe(answers.statuses[node.name])}"
            )


@on_every_case(DomainScore)
def check_domains_score_alike(bench: Bench) -> None:
    """`score_by_domain` gives the points of `score`, with a `pre_score` told of all nodes."""
    raw = bench.evaluate().raw
    plugin, nodes = bench.plugin, bench.cache.nodes
    assert isinstance(plugin, DomainScore)
    state = _prepared(bench, nodes)
    if not raw or state is None:
        return
    given = bench.call(plugin.score_by_domain, state, bench.case.pod, nodes)
    tables = _entries(given, np.dtype(np.int64), nodes)
    for name, score in raw.items():
        node = nodes.get(name)
        assert node is not None
        points = sum(int(table[node.label_code(key)]) for key, table in tables.items())
        if points != score:
            raise Fault(f"node {name} has {points} by score_by_domain(), but {score} by score()")


@on_every_case(ScoreByLabel)
def check_labels_score_alike(bench: Bench) -> None:
    """`normalized_by_label` gives what `score_all` and `normalize_score` give, or None."""
    feasible = bench.evaluate().feasible
    plugin, nodes, pod, dice = bench.plugin, bench.cache.nodes, bench.case.pod, bench.dice
    assert isinstance(plugin, ScoreByLabel)
    for share in (1.0, 0.6):  # all that fit, and those that other filters let through, too
        fit = [name in feasible and dice.random() < share for name in nodes.names]
        some = nodes.take(np.array(fit, np.bool_))
        state = _prepared(bench, some)
        given = None if state is None else bench.call(plugin.normalized_by_label, state, pod, some)
        if given is None or state is None:
            continue
        if isinstance(given, ScoresByCode):
            table, codes = given.points, on_rows_of(some, given.codes)
        else:
            table = _entries({given.key: given.points}, np.dtype(np.int64), some)[given.key]
            codes = some.label_codes(given.key)
        if ((table < MIN_SCORE) | (table > MAX_SCORE)).any():
            raise Fault(f"final_by_label() gives {table.tolist()}, expected 0 to 100")
        caller = bench.plugins.caller
        raw = caller.score_all(plugin, state, pod, some)
        scores = caller.normalized(plugin, state, pod, some, raw)
        for node, points, score in zip(some, table[codes], scores.tolist(), strict=True):
            if points != score:
                text = f"node {node.name} has {points} by final_by_label(), but {score} in the end"
                raise Fault(text)


@on_every_case(DomainFilter, DomainScore)
def check_local_tables_are_local(bench: Bench) -> None:
    """With one cache key and basis, entries depend on nothing but the pods of their domain."""
    pod, key_of = bench.case.pod, bench.plugin.cache_key
    key, before = key_of(pod), dict(_local_tables(bench))
    for step in steps(bench):
        with after(bench, step):
            other = step.pod or pod
            if key_of(other) != key or not bench.plugin.applies_to(other):
                continue
            changed = step.change.node if step.change is not None else ""
            node = bench.cache.nodes.get(changed)
            if step.change is not None and not (step.change.is_of_pods and node is not None):
                continue  # when nodes change, all entries are asked for again
            for (what, label), (basis, new) in _local_tables(bench, step.pod):
                known, old = before.get((what, label), (None, new))
                here = -1 if node is None else node.label_code(label)
                codes = (old != new).nonzero()[0].tolist() if known == basis else []
                for code in codes:
                    if code != here:
                        raise Fault(
                            f"{what} says {new[code]} of {label}, code {code}, {step.words}, but"
                            f" {old[code]} before"
                        )


def _prepared(bench: Bench, nodes: Nodes) -> CycleState | None:
    """The state after PreFilter and PreScore with these nodes; None if nothing is to be scored."""
    bench.begin()
    plugin, state, pod = bench.plugin, CycleState(), bench.case.pod
    if isinstance(plugin, PreFilter) and plugin.name not in state.skip_filter:
        bench.call(plugin.pre_filter, state, pod, bench.cache.nodes)
    if not isinstance(plugin, Score) or plugin.name in state.skip_score or not len(nodes):
        return None
    if isinstance(plugin, PreScore) and not bench.call(plugin.pre_score, state, pod, nodes).ok:
        return None
    return state


def _local_tables(
    bench: Bench, pod: Any = None
) -> Iterator[tuple[tuple[str, str], tuple[object, Entries]]]:
    """By method and label key: the basis, and all entries."""
    plugin, nodes = bench.plugin, bench.cache.nodes
    pod = bench.case.pod if pod is None else pod
    answers = bench.evaluate(pod)
    for kind, method, dtype in (
        (DomainFilter, "filter_by_domain", np.bool_),
        (DomainScore, "score_by_domain", np.int64),
    ):
        skips = answers.state.skip_filter if kind is DomainFilter else answers.state.skip_score
        is_asked = answers.statuses if kind is DomainFilter else answers.raw
        if not isinstance(plugin, kind) or not is_asked or plugin.name in skips:
            continue
        given = bench.call(getattr(plugin, method), answers.state, pod, nodes)
        entries = _entries(given, np.dtype(dtype), nodes)
        for key, table in given.items():
            if isinstance(table, DomainTable):
                yield (f"{method}()", key), (table.basis, entries[key])


def _entries(given: object, dtype: np.dtype[Any], nodes: Nodes) -> Mapping[str, Entries]:
    if not isinstance(given, Mapping):
        raise Fault(f"expected a table per label key, not {given!r}")
    tables = {}
    for key, table in given.items():
        size = nodes.label_count(key)
        if isinstance(table, DomainTable):
            table = table.at(np.arange(size))
        if table.dtype != dtype or table.shape != (size,):
            raise Fault(f"the table for {key} is {table!r}, expected {size} values of {dtype}")
        tables[key] = table
    return tables


PRIVATE_CHECKS = (
    check_domains_refuse_alike,
    check_domains_score_alike,
    check_labels_score_alike,
    check_local_tables_are_local,
)
