"""Is it true what a plugin says its answers depend on? A wrong `scope` places pods wrongly.

Answers are kept as a scheduler keeps them for pods with equal cache keys; then something happens
that must not matter to them, and they are compared with those of an attempt of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mooring.cache.pods import Pod
from mooring.framework.plugin import (
    Filter,
    NormalizeScore,
    PreFilter,
    PreScore,
    Score,
)
from mooring.framework.scope import Scope
from mooring.testing._attempt import Bench, Fault, Raised, Trial, show
from mooring.testing._changes import Change, changes
from mooring.testing._check import on_every_case
from mooring.testing._kept import Kept
from mooring.testing._keys import (
    BY_SPEC,
    Key,
    check_is_asked_again,
    describe_stranger,
    has_own_key,
    has_scope,
    has_tables,
    key_of,
    known_of,
    strangers_to,
)
from mooring.testing._likenesses import (
    OUTSIDE_SPEC,
    SAME_SPEC,
    TWINS,
    Stranger,
    strangers_one_by_one,
    twin_of,
)
from mooring.testing.build import START

_CLAIMS: Final = {
    Scope.OBJECT: "scope OBJECT says that only the cache key and the node's own object matter",
    Scope.NODE: "scope NODE says that only the cache key, the node and the pods on it matter",
}
_HOUR: Final = 3_600.0  # seconds
_ALSO_POINTS: Final = (0, 1, 100)


# --- pods of one class ----------------------------------------------------------------------------


@on_every_case(PreFilter, Filter, PreScore, Score)
def check_pods_of_a_class_are_alike(trial: Trial) -> None:
    """With a scope: pods that differ in name, age or status get the same answers, at any time."""
    scoped = _scoped(trial)
    if scoped is None:
        return
    bench, key = scoped
    pod, claim = trial.case.pod, _claim(key)
    _compare_keys(bench, key)
    kept = Kept(bench.attempt())
    twin = twin_of(pod)
    try:
        _compare_twin(bench, kept, twin, f"for {twin.key} of the same class", claim, _HOUR, 1)
    except Fault:
        _compare_twin(bench, kept, pod, "when pre_score is given the nodes that fit only", claim)
        _compare_twin(bench, kept, pod, "an hour later", claim, seconds=_HOUR)
        _compare_twin(bench, kept, pod, "with other random numbers", claim, other_seed=1)
        for difference, change in TWINS.items():
            other = Pod(change(pod.api))
            _compare_twin(bench, kept, other, f"for a pod {difference}", claim)
        raise


def _compare_keys(bench: Bench, key: Key) -> None:
    """The key is asked for once for pods that differ in name, age or status.

    A key such as `pod.spec` may tell volumes without a source apart: it makes no difference.
    """
    pod = bench.case.pod
    for difference, change in SAME_SPEC.items():
        found = key_of(bench, Pod(change(pod.api)))
        if found != key:
            text = found.difference(key, f"for a pod {difference}", f"for {pod.key}")
            raise Fault(
                f"{text}; it is asked for once for all pods with the same namespace, labels,"
                " annotations, controller and spec"
            )


def _compare_twin(
    bench: Bench,
    kept: Kept,
    twin: Pod,
    this: str,
    claim: str,
    seconds: float = 0.0,
    other_seed: int = 0,
) -> None:
    """The twin comes later, and the dice have rolled on."""
    fresh = bench.attempt(pod=twin)
    bench.handle.random.seed(bench.case.seed + other_seed)
    bench.handle.clock.time = START + seconds
    try:
        kept.compare(fresh.run(), kept.names, this, f"for {bench.case.pod.key} before", claim)
        kept.compare_again(fresh, kept.names, f"for {twin.key}")
    finally:
        bench.handle.clock.time = START


# --- what happens meanwhile -----------------------------------------------------------------------


@on_every_case(PreFilter, Filter, PreScore, Score)
def check_scope_is_all_that_matters(trial: Trial) -> None:
    """With a scope: what happens elsewhere changes no answer, unless the cache key changes too.

    If it changes, that is noticed.
    """
    plugin_class = trial.plugin_class
    if not has_scope(plugin_class) and not has_tables(plugin_class):
        return
    bench = trial.bench()
    key = known_of(bench).key
    kept = Kept(bench.attempt()) if key.is_kept else None
    for change in changes(trial.case, bench.plugin.reads):
        if kept is not None:
            _survive(bench, kept, change, key)
        else:
            _follow_key(bench, change)


def _survive(bench: Bench, kept: Kept, change: Change, key: Key) -> None:
    """The kept answers are right after a change; what fails is traced to a part of it."""
    try:
        is_current = _compare_after(bench, kept, change, key)
    except Fault:
        for part in change.parts():
            _survive(bench, kept, part, key)
        raise
    if not is_current:
        for part in change.parts():
            _survive(bench, kept, part, key)


def _compare_after(bench: Bench, kept: Kept, change: Change, key: Key) -> bool:
    """Whether there was anything to compare: answers are kept for one key, not for another."""
    if not _follow_key(bench, change):
        return False
    change.make(bench.cache)
    try:
        fresh = bench.attempt().run()
        touched = {change.node, change.pods_of} if key.scope is Scope.NODE else {change.node}
        present = kept.names.intersection(fresh.nodes.names)
        this, claim = f"after {change.words}", f"{_claim(key)}, and {_still(bench, key)}"
        kept.compare(fresh, present - touched, this, "before", claim)
        if not change.is_structural:  # then all is asked again
            kept.compare_again(fresh, present & touched, this)
    finally:
        change.undo(bench.cache)
    return True


def _follow_key(bench: Bench, change: Change) -> bool:
    """Whether the key is the same after a change; another one must not go unnoticed."""
    before = known_of(bench)
    change.make(bench.cache)
    try:
        after = known_of(bench)
    finally:
        change.undo(bench.cache)
    check_is_asked_again(bench, before, after, change.words)
    return after.key == before.key


# --- cache keys -----------------------------------------------------------------------------------


@on_every_case(PreFilter, Filter, PreScore, Score)
def check_cache_key_is_all_that_matters(trial: Trial) -> None:
    """With a scope and a `cache_key`: pods with equal keys get the same answers."""
    if not has_own_key(trial.plugin_class):
        return
    scoped = _scoped(trial)
    if scoped is None:
        return
    bench, key = scoped
    pod = trial.case.pod
    if bench.plugin.key_from_spec:
        _compare_keys_by_spec(bench, key)

    def is_like(other: Pod) -> bool:
        return key_of(bench, other) == key

    kept = Kept(bench.attempt())
    try:
        for stranger in strangers_to(trial.case, is_like):
            _compare_stranger(bench, kept, stranger, key)
    except Fault:
        for nearer in strangers_one_by_one(pod, is_like):
            _compare_stranger(bench, kept, nearer, key)
        raise


def _compare_stranger(bench: Bench, kept: Kept, stranger: Stranger, key: Key) -> None:
    this = f"for {describe_stranger(stranger)}"
    claim = f"cache_key() says that all that matters of both is {show(key.own)}"
    fresh = bench.attempt(pod=stranger.pod).run()
    kept.compare(fresh, kept.names, this, f"for {bench.case.pod.key}", claim)
    kept.compare_again(fresh, kept.names, this)


def _compare_keys_by_spec(bench: Bench, key: Key) -> None:
    pod = bench.case.pod
    for other, change in OUTSIDE_SPEC.items():
        found = key_of(bench, Pod(change(pod.api)))
        if found != key:
            text = found.difference(key, f"for a pod with other {other}", f"for {pod.key}")
            raise Fault(f"{text}; {BY_SPEC}")


# --- equal points ---------------------------------------------------------------------------------


@on_every_case(NormalizeScore)
def check_equal_points_stay_equal(trial: Trial) -> None:
    """With `by_extremes`: where all nodes have equal points, they have them once normalised."""
    plugin_class = trial.plugin_class
    if not (issubclass(plugin_class, NormalizeScore) and plugin_class.by_extremes):
        return
    attempt = trial.bench().attempt()
    attempt.filter_all_points()
    feasible = attempt.feasible
    if feasible is None or len(feasible) < 2 or not attempt.prepare_scores(feasible):
        return
    given = np.unique(attempt.score(feasible)).tolist()
    for value in dict.fromkeys((given[0], given[-1], *_ALSO_POINTS)):
        for size in {2, (len(feasible) + 1) // 2, len(feasible)}:
            nodes = feasible.take(np.arange(size))
            try:
                found = attempt.normalize(nodes, np.full(size, value, dtype=np.int64))
            except Raised:
                if value in given:
                    raise
                continue  # it need not cope with points that it never gives
            if (found != found[0]).any():
                other = int((found != found[0]).argmax())
                raise Fault(
                    f"normalize_score makes {found[0]} of {value} points of node {nodes.names[0]},"
                    f" but {found[other]} of as many of node {nodes.names[other]};"
                    " by_extremes says that equal points of all nodes become equal points"
                )


# --- inside ---------------------------------------------------------------------------------------


def _scoped(trial: Trial) -> tuple[Bench, Key] | None:
    """The plugin in front of the case, and what answers are kept by; None if none are kept."""
    if not has_scope(trial.plugin_class) or not trial.case.cluster.nodes:
        return None
    bench = trial.bench()
    key = key_of(bench, trial.case.pod)
    return (bench, key) if key.is_kept else None


def _claim(key: Key) -> str:
    assert key.scope is not None
    return _CLAIMS[key.scope]


def _still(bench: Bench, key: Key) -> str:
    if has_own_key(type(bench.plugin)):
        return f"cache_key() still is {show(key.own)}"
    return "the cache key is still the same"
