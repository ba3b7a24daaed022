"""Is it true that a plugin has nothing to say for the pods that `applies_to` leaves out?

A scheduler does not call the plugin for them; without `applies_to` it would, and the outcome has to
be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.cache.pods import Pod
from mooring.framework.plugin import (
    Base,
    Filter,
    Permit,
    PreBind,
    PreFilter,
    PreScore,
    Reserve,
    Score,
)
from mooring.framework.results import OnlyNodes, Wait
from mooring.testing._attempt import Attempt, Bench, Fault, Trial, asking, describe, expect_status
from mooring.testing._changes import changes
from mooring.testing._check import on_every_case
from mooring.testing._keys import applies
from mooring.testing._likenesses import TWINS
from mooring.testing.build import START

_HOUR: Final = 3_600.0  # seconds
_CHOSEN: Final = 2  # nodes for which Reserve, Permit and PreBind are tried


@on_every_case(PreFilter, Filter, PreScore, Score, Reserve, Permit, PreBind)
def check_applies_to_is_true(trial: Trial) -> None:
    """With `applies_to`: it looks at the pod alone; if it is False, no point changes anything."""
    if trial.plugin_class.applies_to is Base.applies_to:
        return
    bench = trial.bench()
    answer = applies(bench, trial.case.pod)
    for found, this in _asked_again(bench):
        if found != answer:
            raise Fault(
                f"applies_to() is {found} {this}, but {answer} for {trial.case.pod.key};"
                " it may look at the pod alone, and not at its name, age or status"
            )
    if not answer:
        _check_silence(bench.attempt())


def _asked_again(bench: Bench) -> Iterator[tuple[bool, str]]:
    """What it says where it has to say the same, and where that is."""
    pod, handle = bench.case.pod, bench.handle
    for difference, change in TWINS.items():
        yield applies(bench, Pod(change(pod.api))), f"for a pod {difference}"
    handle.clock.time = START + _HOUR
    handle.random.seed(bench.case.seed + 1)
    try:
        yield applies(bench, pod), "an hour later, with other random numbers"
    finally:
        handle.clock.time = START
    for happening in changes(bench.case, bench.plugin.reads):
        happening.make(bench.cache)
        handle.nodes = bench.cache.nodes
        try:
            yield applies(bench, pod), f"after {happening.words}"
        finally:
            happening.undo(bench.cache)


def _check_silence(attempt: Attempt) -> None:
    attempt.run()
    answer = attempt.pre_filter
    if isinstance(answer, OnlyNodes) or not attempt.pre_filter_passed:
        raise _said(attempt, "pre_filter", answer, "OK or SKIP")
    for name, status in attempt.statuses.items():
        if not status.ok:
            raise _said(attempt, "filter", status, "OK", name)
    prepared = attempt.pre_score
    if prepared is not None and not prepared.ok and not prepared.skipped:
        raise _said(attempt, "pre_score", prepared, "OK or SKIP")
    scores = list(attempt.scores.items())
    for name, points in scores[1:]:
        first, expected = scores[0]
        if points != expected:
            raise Fault(
                f"score is {points} for node {name} and {expected} for node {first} in the end,"
                f" although applies_to() is False for {attempt.pod.key}: expected equal scores"
            )
    for name in attempt.nodes.names[:_CHOSEN]:
        _check_silence_after(attempt, name)


def _check_silence_after(attempt: Attempt, name: str) -> None:
    """For a node that was chosen."""
    plugin, state, pod = attempt.plugin, attempt.state, attempt.pod
    answer: object
    if isinstance(plugin, Reserve):
        with asking("reserve", name):
            answer = plugin.reserve(state, pod, name)
        with asking("unreserve", name):
            plugin.unreserve(state, pod, name)
        if not expect_status(answer, "reserve()").ok:
            raise _said(attempt, "reserve", answer, "OK", name)
    if isinstance(plugin, Permit):
        with asking("permit", name):
            answer = plugin.permit(state, pod, name)
        if isinstance(answer, Wait) or not expect_status(answer, "permit()").ok:
            raise _said(attempt, "permit", answer, "OK", name)
    if isinstance(plugin, PreBind):
        with asking("pre_flight", name):
            answer = plugin.pre_flight(state, pod, name)
        if not expect_status(answer, "pre_flight()").skipped:
            raise _said(attempt, "pre_flight", answer, "SKIP", name)


def _said(attempt: Attempt, point: str, answer: object, expected: str, node: str = "") -> Fault:
    place = f" for node {node}" if node else ""
    return Fault(
        f"{point} gives {describe(answer)}{place}, although applies_to() is False for"
        f" {attempt.pod.key}: expected {expected}"
    )
