"""`-v 10`: the score of every plugin for every feasible node, in kube-scheduler's words."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from mooring.decision.scoring import PluginScores, Scores
from mooring.framework import OK
from mooring.observe.log import TRACE
from mooring.scheduler.cycle import Decision
from mooring.scheduler.score_log import log_scores
from mooring.simulator import Simulation
from mooring.testing import node, pod

BY_PLUGIN = "Plugin scored node for pod"
BY_EXTENDER = "Extender scored node for pod"
TOTAL = "Calculated node's final score for pod"


def logged(caplog: pytest.LogCaptureFixture, message: str, key: str = "plugin") -> list[Any]:
    records = [vars(record) for record in caplog.records if record.getMessage() == message]
    assert {record["levelno"] for record in records} <= {TRACE}
    return [(record["pod"], record.get(key), record["node"], record["score"]) for record in records]


def schedule(caplog: pytest.LogCaptureFixture, level: int) -> None:
    with caplog.at_level(level, "mooring"), Simulation(keep_attempts=False) as sim:
        sim.apply(node("a", cpu=4, memory="8Gi"), node("b", cpu=4, memory="8Gi"))
        sim.apply(pod("x", cpu=2, memory="1Gi", on="a"), pod("y", cpu=1, memory="4Gi", on="b"))
        sim.schedule(pod("web", cpu=1, memory="1Gi"))
        assert sim.node_of("web") == "a"


def test_scores_are_weighted_and_totals_follow(caplog: pytest.LogCaptureFixture) -> None:
    schedule(caplog, TRACE)
    lines = logged(caplog, BY_PLUGIN)
    assert ("default/web", "NodeResourcesFit", "a", 50) in lines
    assert ("default/web", "NodeResourcesFit", "b", 43) in lines
    assert ("default/web", "NodeResourcesBalancedAllocation", "b", 78) in lines
    assert ("default/web", "TaintToleration", "a", 300) in lines  # its weight is 3
    assert logged(caplog, TOTAL) == [
        ("default/web", None, "a", 422),
        ("default/web", None, "b", 421),
    ]
    for name, total in (("a", 422), ("b", 421)):
        assert sum(score for _, _, scored, score in lines if scored == name) == total


def test_nothing_is_logged_below(caplog: pytest.LogCaptureFixture) -> None:
    schedule(caplog, logging.DEBUG)
    assert logged(caplog, BY_PLUGIN) == logged(caplog, TOTAL) == []


def test_a_choice_of_one_has_no_scores(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(TRACE, "mooring"), Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("web"))
        assert sim.node_of("web") == "a"
        assert len(sim.attempts) == 1
    assert logged(caplog, BY_PLUGIN) == logged(caplog, TOTAL) == []


def test_extenders_are_told_from_plugins(caplog: pytest.LogCaptureFixture) -> None:
    points = np.array([3, 0], dtype=np.int64)
    scores = Scores(
        (
            PluginScores("NodeAffinity", 2, points, points),
            PluginScores("http://x", 50, points, points),
            PluginScores("http://without-the-verb", 0, points, points),
        ),
        points * 52,
    )
    decision = Decision(OK, "b", names=("a", "b", "c"), rows=np.array([1, 2]), scores=scores)
    with caplog.at_level(TRACE, "mooring"):
        log_scores(pod("p"), decision, {"NodeAffinity"})
    assert logged(caplog, BY_PLUGIN) == [
        ("default/p", "NodeAffinity", "b", 6),
        ("default/p", "NodeAffinity", "c", 0),
    ]
    assert logged(caplog, BY_EXTENDER, "extender") == [
        ("default/p", "http://x", "b", 3),
        ("default/p", "http://x", "c", 0),
    ]
    assert logged(caplog, TOTAL) == [("default/p", None, "b", 156), ("default/p", None, "c", 0)]
