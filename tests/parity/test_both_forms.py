"""On every recorded cluster, each plugin's vectorised form says what its per-node form says."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from mooring.cache.snapshot import Nodes
from mooring.framework import Filter, Score
from mooring.simulator.evaluate import Evaluator, Trial
from mooring.simulator.scenario import Scenario, read_scenarios

DATA = Path(__file__).with_name("data")
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator()


@pytest.mark.parametrize("family", FAMILIES)
def test_both_forms_agree_on_recorded_clusters(family: str, evaluator: Evaluator) -> None:
    compared: Counter[str] = Counter()
    with gzip.open(DATA / f"{family}.jsonl.gz") as lines:
        for scenario in read_scenarios(lines):
            assert isinstance(scenario, Scenario)
            compare(evaluator.trial(scenario), scenario.id, compared)
    assert compared["filter"]
    assert compared["score"]


def compare(trial: Trial, name: str, compared: Counter[str]) -> None:
    state, pod, nodes = trial.state, trial.pod, trial.nodes
    if not len(nodes) or not trial.runner.pre_filter(state, pod, nodes).status.ok:
        return
    for plugin in trial.profile.at("filter", Filter):
        if plugin.name not in state.skip_filter:
            answers = plugin.filter_all(state, pod, nodes)
            for row, node in enumerate(nodes):
                expected = plugin.filter(state, pod, node)
                assert answers.status(row) == expected, f"{name}: {plugin.name} on {node.name}"
            compared["filter"] += len(nodes)
    verdicts, status = trial.evaluation.filter(state, pod, nodes)
    if status.ok and verdicts.passed.any():
        compare_scores(trial, nodes.take(verdicts.passed), name, compared)


def compare_scores(trial: Trial, feasible: Nodes, name: str, compared: Counter[str]) -> None:
    state, pod = trial.state, trial.pod
    if not trial.runner.pre_score(state, pod, feasible).ok:
        return
    for plugin in trial.profile.at("score", Score):
        if plugin.name not in state.skip_score:
            scores = plugin.score_all(state, pod, feasible)
            expected = [plugin.score(state, pod, node) for node in feasible]
            assert scores.tolist() == expected, f"{name}: {plugin.name}"
            compared["score"] += len(expected)
