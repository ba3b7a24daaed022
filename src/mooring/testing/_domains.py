"""Are topology domains all that a plugin looks at, as it says, and does it answer alike by them?

A scheduler asks such a plugin for tables, and follows them from pod to pod: see `decision.domains`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mooring.cache.arrays import IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.plugin import (
    DomainFilter,
    DomainScore,
    NormalizeScore,
    PreFilter,
    PreScore,
    Score,
)
from mooring.framework.results import LabelScores, LocalTable
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.testing._attempt import (
    Attempt,
    Bench,
    Fault,
    Trial,
    asking,
    by_name,
    describe,
    same,
    show,
)
from mooring.testing._changes import changes
from mooring.testing._check import on_every_case
from mooring.testing._compare import compare, compare_scores
from mooring.testing._keys import Key, describe_stranger, has_tables, key_of, strangers_to
from mooring.testing._likenesses import Stranger, strangers_one_by_one

Entries = np.ndarray[Any, Any]


@on_every_case(DomainFilter)
def check_domains_refuse_alike(trial: Trial) -> None:
    """`filter_by_domain` refuses the nodes that `filter_all` refuses, and no others."""
    attempt = trial.bench().attempt()
    plugin = attempt.plugin
    assert isinstance(plugin, DomainFilter)
    if not attempt.prepare_filter():
        return
    with asking("filter_by_domain"):
        answer: object = plugin.filter_by_domain(attempt.state, attempt.pod, attempt.nodes)
    tables = _tables(answer, "filter_by_domain()", np.dtype(np.bool_), attempt.nodes)
    statuses = attempt.filter(attempt.candidates)
    for node in attempt.candidates:
        refusing = [key for key, table in tables.items() if table[node.label_code(key)]]
        status = statuses[node.name]
        if bool(refusing) == status.ok:
            word = f"is refused for its {refusing[0]}" if refusing else "is not refused"
            raise Fault(
                f"node {node.name} {word} by filter_by_domain(), but filter_all() says"
                f" {describe(status)}"
            )


@on_every_case(DomainScore)
def check_domains_score_alike(trial: Trial) -> None:
    """`score_by_domain` gives the points of `score_all`, with a `pre_score` told of all nodes."""
    full = trial.bench().attempt().run()
    if full.feasible is None or not len(full.feasible):
        return
    attempt = trial.bench().attempt()
    plugin = attempt.plugin
    assert isinstance(plugin, DomainScore)
    attempt.prepare_filter()
    is_scored = attempt.prepare_scores(attempt.nodes)
    ours, theirs = attempt.pre_score, full.pre_score
    if ours is not None and theirs is not None and not same(ours, theirs):
        raise Fault(
            f"pre_score gives {describe(ours)} when told of all nodes, but {describe(theirs)} when"
            " told of those that fit; a DomainScore must not look at which nodes fit"
        )
    if not is_scored:
        return
    with asking("score_by_domain"):
        answer: object = plugin.score_by_domain(attempt.state, attempt.pod, attempt.nodes)
    tables = _tables(answer, "score_by_domain()", np.dtype(np.int64), attempt.nodes)
    points = {
        node.name: sum(int(table[node.label_code(key)]) for key, table in tables.items())
        for node in full.feasible
    }
    compare_scores(points, full.raw, "by score_by_domain()", "by score_all()")


@on_every_case(DomainFilter, DomainScore)
def check_local_tables_are_local(trial: Trial) -> None:
    """Entries of a `LocalTable` stay the same if pods change elsewhere and the basis does not.

    They are the same for all pods with equal cache keys.
    """
    bench = trial.bench()
    attempt = bench.attempt()
    before = _local_tables(attempt)
    for stranger in _sharing(bench):
        _compare_local_tables(bench, before, stranger)
    for change in changes(trial.case, ()):
        if not change.pods_of:
            continue
        change.make(bench.cache)
        try:
            later = bench.attempt()
            later.state.earlier = attempt.state
            after = _local_tables(later)
        finally:
            change.undo(bench.cache)
        node = bench.cache.nodes.get(change.pods_of)
        for (what, key), (basis, new) in after.items():
            known, old = before.get((what, key), (None, new))
            if node is None or known != basis or len(old) != len(new):
                continue
            differs = (old != new).nonzero()[0]
            for code in differs[differs != node.label_code(key)].tolist():
                raise Fault(
                    f"{what} says {new[code]} of {key}={bench.cache.nodes.label_values(key)[code]}"
                    f" after {change.words}, but {old[code]} before; with the same basis, a"
                    " LocalTable must not look at pods of other domains"
                )


def _compare_local_tables(
    bench: Bench, before: Mapping[tuple[str, str], tuple[object, Entries]], stranger: Stranger
) -> None:
    for place, (basis, found) in _local_tables(bench.attempt(pod=stranger.pod)).items():
        known, expected = before.get(place, (None, found))
        if known != basis or len(found) != len(expected):
            continue
        for code in (found != expected).nonzero()[0].tolist():
            what, key = place
            raise Fault(
                f"{what} says {found[code]} of {key}={bench.cache.nodes.label_values(key)[code]}"
                f" for {describe_stranger(stranger)}, but {expected[code]} for"
                f" {bench.case.pod.key}; with equal cache keys and the same basis, entries of a"
                " LocalTable must be the same"
            )


@on_every_case(Score)
def check_labels_score_alike(trial: Trial) -> None:
    """`final_by_label` gives what `score_all` and `normalize_score` give, if it gives anything."""
    if trial.plugin_class.final_by_label is Score.final_by_label:  # type: ignore[attr-defined]  # a Score
        return
    whole = trial.bench().attempt()
    whole.filter_all_points()
    if whole.feasible is None:
        return
    feasible = np.array([name in whole.feasible.names for name in whole.nodes.names], np.bool_)
    dice = trial.dice
    others = np.array([dice.random() < 0.6 for _ in feasible], np.bool_)  # whom others let through
    for fitting in (feasible, feasible & others):
        if fitting.any():
            _compare_final(trial, fitting)


@on_every_case(NormalizeScore)
def check_extremes_are_all_that_matters(trial: Trial) -> None:
    """With `by_extremes`: points become the same whichever nodes have them, and however many.

    They become the same for all pods with equal cache keys.
    """
    plugin_class = trial.plugin_class
    if not (issubclass(plugin_class, NormalizeScore) and plugin_class.by_extremes):
        return
    bench = trial.bench()
    attempt = bench.attempt()
    attempt.filter_all_points()
    feasible = attempt.feasible
    if feasible is None or not len(feasible) or not attempt.prepare_scores(feasible):
        return
    raw = attempt.score(feasible)
    different = np.unique(raw)
    some = attempt.nodes.take(np.arange(len(different)))
    normal = attempt.normalize(some, different)
    expected = attempt.normalize(feasible, raw)
    alone = dict(zip(different.tolist(), normal.tolist(), strict=True))
    for name, points, found in zip(feasible.names, raw.tolist(), expected.tolist(), strict=True):
        if alone[points] != found:
            raise Fault(
                f"normalize_score makes {found} of the {points} points of node {name}, but"
                f" {alone[points]} where every number of points occurs once; by_extremes says that"
                " only the points and the extremes matter"
            )
    for stranger in _sharing(bench):
        _compare_normalized(bench, different, normal, stranger)


def _compare_normalized(
    bench: Bench, raw: IntArray, expected: IntArray, stranger: Stranger
) -> None:
    attempt = bench.attempt(pod=stranger.pod)
    attempt.filter_all_points()
    if attempt.feasible is None or not attempt.prepare_scores(attempt.feasible):
        return
    found = attempt.normalize(attempt.nodes.take(np.arange(len(raw))), raw)
    for points, ours, theirs in zip(raw.tolist(), found.tolist(), expected.tolist(), strict=True):
        if ours != theirs:
            raise Fault(
                f"normalize_score makes {ours} of {points} points for"
                f" {describe_stranger(stranger)}, but {theirs} for {bench.case.pod.key};"
                " by_extremes says that only points and extremes matter, for pods with equal keys"
            )


@on_every_case(PreFilter, PreScore)
def check_earlier_pods_leave_no_trace(trial: Trial) -> None:
    """What was stored for an earlier pod (`state.earlier`) changes no answer."""
    bench = trial.bench()
    pod, key = trial.case.pod, key_of(bench, trial.case.pod)
    if key.is_kept or not key.applies:
        return  # then it is asked only once, or never

    def is_like(other: Pod) -> bool:
        return key_of(bench, other) == key

    _compare_with_earlier(bench, Stranger(pod, ()), key)
    try:
        for stranger in strangers_to(trial.case, is_like):
            _compare_with_earlier(bench, stranger, key)
    except Fault:
        for nearer in strangers_one_by_one(pod, is_like):
            _compare_with_earlier(bench, nearer, key)
        raise


def _compare_final(trial: Trial, fitting: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    attempt = trial.bench().attempt()
    plugin = attempt.plugin
    assert isinstance(plugin, Score)
    attempt.prepare_filter()
    nodes = attempt.nodes.take(fitting)
    if not attempt.prepare_scores(nodes):
        return
    with asking("final_by_label"):
        answer: object = plugin.final_by_label(attempt.state, attempt.pod, nodes)
    if answer is None:
        return
    if not isinstance(answer, LabelScores) or not isinstance(answer.key, str):
        raise Fault(f"final_by_label() returned {show(answer)}, expected LabelScores or None")
    tables = _tables({answer.key: answer.points}, "final_by_label()", np.dtype(np.int64), nodes)
    table = tables[answer.key]
    for code in ((table < MIN_SCORE) | (table > MAX_SCORE)).nonzero()[0].tolist():
        raise Fault(
            f"final_by_label() gives {table[code]} points for"
            f" {answer.key}={nodes.label_values(answer.key)[code]},"
            f" expected {MIN_SCORE} to {MAX_SCORE}"
        )
    points = {node.name: int(table[node.label_code(answer.key)]) for node in nodes}
    expected = by_name(nodes, attempt.normalize(nodes, attempt.score(nodes)))
    compare_scores(
        points, expected, "by final_by_label()", "by score_all() in the end", "normalised score"
    )


def _compare_with_earlier(bench: Bench, stranger: Stranger, key: Key) -> None:
    """The answers if this pod came earlier, with and without changes since."""
    before = bench.attempt(pod=stranger.pod).run()
    differs = f" with other {', '.join(stranger.others)}" if stranger.others else ""
    told = f"with the state of an earlier pod{differs}"
    _compare_later(bench, before, f"with nothing changed, {told}")
    for change in changes(bench.case, bench.plugin.reads):
        change.make(bench.cache)
        try:
            if key_of(bench, bench.case.pod) == key:
                _compare_later(bench, before, f"after {change.words}, {told}")
        finally:
            change.undo(bench.cache)


def _compare_later(bench: Bench, before: Attempt, this: str) -> None:
    expected = bench.attempt().run()
    later = bench.attempt()
    later.state.earlier = before.state
    compare(later.run(), expected, this, "without one")


def _sharing(bench: Bench) -> list[Stranger]:
    """Other pods that share what is kept for the pod of the case, if anything is."""
    key = key_of(bench, bench.case.pod)
    if not key.is_kept and not (key.applies and has_tables(type(bench.plugin))):
        return []
    return strangers_to(bench.case, lambda other: key_of(bench, other) == key)


def _local_tables(attempt: Attempt) -> dict[tuple[str, str], tuple[object, Entries]]:
    """By method and label key: the basis, and all entries."""
    plugin = attempt.plugin
    answers: list[tuple[str, type, object]] = []
    if attempt.prepare_filter() and isinstance(plugin, DomainFilter):
        with asking("filter_by_domain"):
            answer: object = plugin.filter_by_domain(attempt.state, attempt.pod, attempt.nodes)
        answers.append(("filter_by_domain()", np.bool_, answer))
    is_scored = attempt.pre_filter_passed and attempt.prepare_scores(attempt.nodes)
    if is_scored and isinstance(plugin, DomainScore):
        with asking("score_by_domain"):
            answer = plugin.score_by_domain(attempt.state, attempt.pod, attempt.nodes)
        answers.append(("score_by_domain()", np.int64, answer))
    found: dict[tuple[str, str], tuple[object, Entries]] = {}
    for what, dtype, answer in answers:
        entries = _tables(answer, what, np.dtype(dtype), attempt.nodes)
        assert isinstance(answer, Mapping)
        for key, table in answer.items():
            if isinstance(table, LocalTable):
                found[what, key] = (table.basis, entries[key])
    return found


def _tables(answer: object, what: str, dtype: np.dtype[Any], nodes: Nodes) -> Mapping[str, Entries]:
    if not isinstance(answer, Mapping):
        raise Fault(f"{what} returned {show(answer)}, expected a table per label key")
    tables = {}
    for key, table in answer.items():
        size = nodes.label_count(key)
        if isinstance(table, LocalTable):
            with asking("LocalTable.at"):
                table = table.at(np.arange(size))
        fits = isinstance(table, np.ndarray) and table.dtype == dtype and table.shape == (size,)
        if not fits:
            raise Fault(
                f"{what} returned {show(table)} for {key},"
                f" expected an array of {size} values of {dtype}"
            )
        tables[key] = table
    return tables
