"""An explanation says what the scheduler's evaluation says: refusals, totals, victims.

`MOORING_LENS_EVERY=1` compares all recorded decisions of kube-scheduler instead of every 20th.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mooring.cache.pods import Pod
from mooring.errors import ConfigError
from mooring.lens.explanation import Explanation
from mooring.lens.groups import Grouping
from mooring.lens.private import PrivateCluster, sorted_by_name
from mooring.simulator.claims import allocating, assume_in_flight
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario, read_scenarios

DATA = Path(__file__).parents[1] / "parity" / "data"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))
EVERY = int(os.environ.get("MOORING_LENS_EVERY", "20"))


def scenarios(family: str) -> Iterator[tuple[Scenario, dict[str, Any]]]:
    evaluator = Evaluator()
    with gzip.open(DATA / f"{family}.jsonl.gz") as lines:
        for number, line in enumerate(lines):
            if number % EVERY:
                continue
            (scenario,) = read_scenarios([line])
            assert isinstance(scenario, Scenario)
            try:
                result = evaluator.trial(scenario).run()
            except ConfigError:
                continue
            yield scenario, result


def compare(private: PrivateCluster, pod: Pod, told: Explanation, result: dict[str, Any]) -> None:
    names = private.nodes.names
    assert sum(group.nodes for group in told.groups) == (len(names) if told.groups else 0)
    if result["outcome"] == "Gated":
        assert told.kind == "gated"
        return
    if result["outcome"] == "NoNodes":
        assert told.message == result["fitError"]
        return
    if result["outcome"] == "Error":
        assert told.kind == "error"
        return
    if "total" in result:
        assert told.choice is not None
        assert told.choice.node in result["best"] or len(result["best"]) > 1
        assert told.choice.total == max(result["total"].values())
        for score in told.choice.nodes:
            if score.plugins:
                assert score.total == result["total"][score.node]
                assert sum(one.weighted for one in score.plugins) == score.total
    else:
        assert told.message == result["fitErrorFinal"]
    if "filter" in result:
        compare_refusals(private, pod, result["filter"])
    if result.get("postFilter", {}).get("candidates") and told.preemption is not None:
        after = result["postFilter"]
        assert told.preemption.helps == (after["code"] == "Success")
        if told.preemption.helps:
            assert told.preemption.node in after["nominatedNodes"]
            assert told.preemption.count == len(after["candidates"])
            for one in told.preemption.candidates:
                expected = after["candidates"][one.node]
                assert list(one.victims) == expected["victims"]
                assert one.pdb_violations == expected["numPDBViolations"]


def compare_refusals(private: PrivateCluster, pod: Pod, expected: dict[str, Any]) -> None:
    """Each filter alone, and the first refusal, node by node."""
    evaluation = private.evaluate(pod)
    grouping = Grouping(evaluation, private.evaluator.what_if, private.profile.plugins)
    groups = grouping.groups()
    rows = np.concatenate(grouping.members) if grouping.members else np.array([])
    assert sorted(rows.tolist()) == list(range(len(private.nodes)))
    for group, members in zip(groups, grouping.members, strict=True):
        for row in members.tolist():
            refusals = grouping.refusals_at(row)
            assert [(s.plugin, s.reasons) for s in refusals] == [
                (one.plugin, one.reasons) for one in group.refusals
            ]
            said = expected[private.nodes.names[row]]
            if said.get("prefiltered"):
                continue
            if not refusals:
                assert said["code"] == "Success"
            else:
                assert sorted(refusals[0].reasons) == said["reasons"]
                assert refusals[0].plugin == said.get("plugin", refusals[0].plugin)


@pytest.mark.parametrize("family", FAMILIES)
def test_says_what_was_recorded(family: str) -> None:
    evaluator = Evaluator()
    count = 0
    for scenario, result in scenarios(family):
        plan = evaluator.trial(scenario)._plan
        private = PrivateCluster(plan, sorted_by_name(scenario.cluster))
        assume_in_flight(allocating(private.profile), scenario.in_flight, private.cache.objects)
        pod = Pod(scenario.pod)
        if pod.node_name:
            continue  # explained as if it were on no node
        compare(private, pod, private.inspector.explain(pod), result)
        count += 1
    assert count
