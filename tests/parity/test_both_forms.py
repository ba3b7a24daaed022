"""On every recorded cluster, each plugin's vectorised form says what its per-node form says."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.parity.recordings import FAMILIES, evaluator, recordings

from mooring.cache.snapshot import Nodes
from mooring.decision.scoring import Scores
from mooring.framework import Filter, Score
from mooring.simulator.evaluate import Trial


@pytest.mark.parametrize("family", FAMILIES)
def test_both_forms_agree_on_recorded_clusters(family: str) -> None:
    compared: Counter[str] = Counter()
    for scenario, _ in recordings(family):
        compare(evaluator().trial(scenario), scenario.id, compared)
    assert compared["filter"]
    assert compared["score"]


def compare(trial: Trial, name: str, compared: Counter[str]) -> None:
    state, pod, nodes = trial.state, trial.pod, trial.nodes
    if not len(nodes):
        return
    evaluation = trial.evaluator.begin(state, pod, nodes, use_memory=False)
    if not evaluation.passed_pre_filter:
        return
    for plugin in trial.profile.at(Filter):
        if plugin.name not in state.skip_filter:
            answers = plugin.filter_all(state, pod, nodes)
            for row, node in enumerate(nodes):
                expected = plugin.filter(state, pod, node)
                assert answers.status(row) == expected, f"{name}: {plugin.name} on {node.name}"
            compared["filter"] += len(nodes)
    evaluation.filter()
    if evaluation.status.ok and evaluation.count:
        scores = evaluation.scores()
        if scores is not None:
            compare_scores(trial, nodes.take(evaluation.feasible), scores, name, compared)


def compare_scores(
    trial: Trial, feasible: Nodes, scores: Scores, name: str, compared: Counter[str]
) -> None:
    scorers = {plugin.name: plugin for plugin in trial.profile.at(Score)}
    for table in scores.plugins:
        plugin = scorers[table.plugin]
        expected = [plugin.score(trial.state, trial.pod, node) for node in feasible]
        assert table.raw.tolist() == expected, f"{name}: {plugin.name}"
        compared["score"] += len(expected)
