"""Every status code at PreScore, and every kind of score; QueueSort, which has no status."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.scheduler.recording import (
    Log,
    after,
    notes,
    place,
    probe,
    reason,
    rejectors,
    world,
)

import mooring.framework as fw
from mooring.framework import Code, Status
from mooring.testing.builders import pod


@pytest.mark.parametrize("code", Code)
def test_pre_score_skips_or_fails_the_attempt(code: Code) -> None:
    log: Log = []
    first = probe("First", log, pre_score=Status(code, ("no way",)))
    with world(first, probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        if code in (Code.SUCCESS, Code.SKIP):
            assert ("First.score" in log) is (code is Code.SUCCESS)
            assert ("First.normalize_score" in log) is (code is Code.SUCCESS)
            assert "Second.score" in log
            assert sim.node_of("p") == "a"
            return
        assert after(log, "pre_score") == "First.pre_score"
        assert place(sim, "p") == "error backoff"
        assert sim.why("p") == 'running PreScore plugin "First": no way'
        assert reason(sim, "p") == "SchedulerError"
        assert rejectors(sim, "p") == ""
        assert notes(sim, "p") == [f"FailedScheduling: {sim.why('p')}"]


def test_scores_each_plugin_then_normalises_it_then_the_next() -> None:
    log: Log = []
    with world(probe("First", log), probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        assert after(log, "pre_score").split(" First.reserve")[0] == (
            "First.pre_score Second.pre_score First.score First.normalize_score "
            "Second.score Second.normalize_score"
        )


def test_adds_scores_up_by_weight() -> None:
    log: Log = []

    def only(name: str, points: int) -> Callable[..., int]:
        return lambda self, state, pod, node: points if node.name == name else 0

    first = probe("First", log, score=only("a", 60))
    second = probe("Second", log, score=only("b", 31))
    weighted = "score: {enabled: [{name: First, weight: 1}, {name: Second, weight: 2}]}"
    with world(first, second, plugins=weighted) as sim:
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "b"
        scores = sim.attempts[0].decision.scores
        assert scores is not None
        assert scores.totals.tolist() == [60, 62]
        assert [(part.plugin, part.weight) for part in scores.plugins] == [
            ("First", 1),
            ("Second", 2),
        ]


def raising(*_: Any) -> Any:
    raise ValueError("boom")


@pytest.mark.parametrize(
    ("method", "answer", "why"),
    [
        ("score", raising, "running Score plugins: plugin {} failed with: ValueError: boom"),
        (
            "normalize_score",
            raising,
            "running Normalize on Score plugins: plugin {} failed with: ValueError: boom",
        ),
        (
            "normalize_score",
            lambda self, state, pod, nodes, scores: scores + 101,
            "applying score defaultWeights on Score plugins: plugin {} returns an invalid score "
            "101, it should in the range of [0, 100] after normalizing",
        ),
        (
            "score",
            -1,
            "applying score defaultWeights on Score plugins: plugin {} returns an invalid score "
            "-1, it should in the range of [0, 100] after normalizing",
        ),
        (
            "normalize_score",
            lambda self, state, pod, nodes, scores: scores[:1],
            "running Normalize on Score plugins: plugin {} failed with: "
            "returned array([0]), expected an int64 array of 2 scores",
        ),
        (
            "normalize_score",
            lambda self, state, pod, nodes, scores: scores / np.nan,
            "running Normalize on Score plugins: plugin {} failed with: "
            "returned 'float64 array', expected an int64 array of 2 scores",
        ),
    ],
)
def test_a_broken_score_is_an_error_that_names_the_plugin(
    method: str, answer: object, why: str
) -> None:
    log: Log = []
    with world(probe("First", log, **{method: answer}), probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == why.format('"First"')
        assert place(sim, "p") == "error backoff"
        assert "Second.score" not in log
        assert "First.reserve" not in log
        assert "First.post_filter" not in log


def test_scores_of_any_size_are_fine_once_normalised() -> None:
    log: Log = []
    far = probe("First", log, score=2**63 - 1, normalize_score=np.array([0, 100]))
    with world(far) as sim:
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "b"


class Backwards(fw.QueueSort):
    """Reverse alphabetical, by comparison."""

    name = "Backwards"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.name > b.pod.name


class Alphabetical(Backwards):
    """Alphabetical, by key."""

    name = "Alphabetical"

    def sort_key(self, queued: fw.QueuedPod) -> str:
        return queued.pod.name


@pytest.mark.parametrize(
    ("sort", "order"), [(Backwards, ["c", "b", "a"]), (Alphabetical, ["a", "b", "c"])]
)
def test_queue_sort_decides_who_is_first(sort: type[fw.QueueSort], order: list[str]) -> None:
    with world(sort, with_plugins=["DefaultBinder"]) as sim:
        sim.schedule(pod("b"), pod("c"), pod("a"))
        assert [attempt.pod.name for attempt in sim.attempts] == order
