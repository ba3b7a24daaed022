"""Is it true what a plugin says its answers depend on? A wrong `scope` places pods wrongly.

Answers are kept as a scheduler keeps them for pods of one class; then something happens that must
not matter to them, and they are compared with those of an attempt of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from mooring.cache.pods import Pod
from mooring.framework.plugin import (
    Base,
    Filter,
    NormalizeScore,
    PreFilter,
    PreScore,
    Score,
)
from mooring.framework.scope import Scope, is_steady
from mooring.testing._attempt import Bench, Fault, Raised, Trial, asking, show
from mooring.testing._changes import Change, changes
from mooring.testing._check import on_every_case
from mooring.testing._kept import Kept
from mooring.testing._likenesses import TWINS, Stranger, stranger_to, strangers_one_by_one, twin_of
from mooring.testing.build import START

_CLAIMS: Final = {
    Scope.OBJECT: "scope OBJECT says that only the pod's class and the node's own object matter",
    Scope.NODE: "scope NODE says that only the pod's class, the node and the pods on it matter",
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
    bench, claim = scoped
    pod = trial.case.pod
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
    """With a scope: what happens elsewhere changes no answer, unless `stamp` changes with it."""
    scoped = _scoped(trial)
    if scoped is None:
        return
    bench, claim = scoped
    kept = Kept(bench.attempt())
    sees_pods = _scope_of(bench, trial.case.pod) is Scope.NODE
    for change in changes(trial.case, bench.plugin.reads):
        _survive(bench, kept, change, sees_pods, claim)


def _survive(bench: Bench, kept: Kept, change: Change, sees_pods: bool, claim: str) -> None:
    """The kept answers are right after a change; what fails is traced to a part of it."""
    try:
        is_current = _compare_after(bench, kept, change, sees_pods, claim)
    except Fault:
        for part in change.parts():
            _survive(bench, kept, part, sees_pods, claim)
        raise
    if not is_current:
        for part in change.parts():
            _survive(bench, kept, part, sees_pods, claim)


def _compare_after(bench: Bench, kept: Kept, change: Change, sees_pods: bool, claim: str) -> bool:
    """Whether there was anything to compare: a new stamp voids what was kept."""
    before, moment = _stamp(bench), _moment(bench)
    change.make(bench.cache)
    try:
        after = _stamp(bench)
        if after != before:
            _check_steadiness(bench, before, after, moment, change)
            return False
        fresh = bench.attempt().run()
        touched = {change.node, change.pods_of} if sees_pods else {change.node}
        present = kept.names.intersection(fresh.nodes.names)
        this, claim = f"after {change.words}", f"{claim}, and stamp() still is {show(before)}"
        kept.compare(fresh, present - touched, this, "before", claim)
        if not change.is_structural:  # then all is asked again
            kept.compare_again(fresh, present & touched, this)
    finally:
        change.undo(bench.cache)
    return True


def _stamp(bench: Bench) -> Hashable:
    bench.handle.nodes = bench.cache.nodes
    with asking("stamp"):
        return bench.plugin.stamp(bench.case.pod)


def _moment(bench: Bench) -> Hashable:
    return bench.cache.nodes.structure, bench.handle.objects.changes


def _check_steadiness(
    bench: Bench, before: Hashable, after: Hashable, moment: Hashable, change: Change
) -> None:
    """Nobody would have asked for a steady stamp if nothing happened that it may depend on."""
    if is_steady(type(bench.plugin).stamp) and _moment(bench) == moment:
        raise Fault(
            f"after {change.words} stamp() is {show(after)}, before it was {show(before)}; @steady"
            " says that can't be: no node, no feature of pods on nodes and no object has changed"
        )


# --- parts of pods --------------------------------------------------------------------------------


@on_every_case(PreFilter, Filter, PreScore, Score)
def check_part_is_all_that_matters(trial: Trial) -> None:
    """With a `part_of`: pods that have that part in common get the same answers."""
    if trial.plugin_class.part_of is Base.part_of:
        return
    scoped = _scoped(trial)
    if scoped is None:
        return
    bench, _ = scoped
    pod = trial.case.pod
    part = _part(bench, pod)
    if part is None:
        return

    def is_like(other: Pod) -> bool:
        return _part(bench, other) == part

    kept = Kept(bench.attempt())
    strangers = [Stranger(other, ()) for other in trial.case.bystanders if is_like(other)]
    strangers.append(stranger_to(pod, is_like))
    try:
        for stranger in strangers:
            _compare_stranger(bench, kept, stranger, part)
    except Fault:
        for nearer in strangers_one_by_one(pod, is_like):
            _compare_stranger(bench, kept, nearer, part)
        raise


def _part(bench: Bench, pod: Pod) -> Hashable | None:
    """What matters of the pod; None: all, or no answers are shared."""
    if _scope_of(bench, pod) is not Scope.NODE:
        return None
    with asking("part_of"):
        part = bench.plugin.part_of(pod)
    try:
        hash(part)
    except TypeError:
        raise Fault(f"part_of() returned {show(part)}, expected something hashable") from None
    return part


def _compare_stranger(bench: Bench, kept: Kept, stranger: Stranger, part: Hashable) -> None:
    pod, differs = stranger.pod, ", ".join(stranger.others)
    this = f"for a pod with other {differs}" if differs else f"for {pod.key}"
    claim = f"part_of says that all that matters of both is {show(part)}"
    fresh = bench.attempt(pod=pod).run()
    kept.compare(fresh, kept.names, this, f"for {bench.case.pod.key}", claim)
    kept.compare_again(fresh, kept.names, this)


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


def _scoped(trial: Trial) -> tuple[Bench, str] | None:
    """The plugin in front of the case, and what it claims; None if it claims nothing."""
    plugin_class = trial.plugin_class
    if plugin_class.scope is None and plugin_class.scope_of is Base.scope_of:
        return None
    if not trial.case.cluster.nodes:
        return None
    bench = trial.bench()
    scope = _scope_of(bench, trial.case.pod)
    claim = _CLAIMS.get(scope) if scope is not None else None
    return (bench, claim) if claim is not None else None


def _scope_of(bench: Bench, pod: Pod) -> Scope | None:
    with asking("scope_of"):
        scope: object = bench.plugin.scope_of(pod)
    if scope is not None and not isinstance(scope, Scope):
        raise Fault(f"scope_of() returned {show(scope)}, expected a Scope or None")
    return scope
