"""The plain walk decides as kube-scheduler 1.36 was recorded, so other tests may rely on it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from tests.decision.plain_walk import Walk
from tests.oracle.compare import differences
from tests.parity.recordings import FAMILIES, evaluator, recordings

import mooring.framework as fw
from mooring.simulator.evaluate import Trial

LEFT_OUT: Final = (  # or compared apart
    "postFilter",
    "fitErrorFinal",
    "preFilter",
    "filter",
    "allocations",
    "bind",
)
EXCLUDED: Final = "node(s) didn't satisfy plugin(s) ["

Answer = dict[str, Any]


@pytest.mark.parametrize("family", FAMILIES)
def test_decides_as_recorded(family: str) -> None:
    different: list[str] = []
    outcomes: Counter[str] = Counter()
    for scenario, expect in recordings(family):
        outcomes[expect["outcome"]] += 1
        if expect["outcome"] != "Gated":  # PreEnqueue refuses: there is no attempt
            found = compare(expect, walk_of(evaluator().trial(scenario)))
            different += [f"{scenario.id}: {difference}" for difference in found[:1]]
    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])
    assert outcomes.total() - outcomes["Gated"] > 90
    if family != "images":  # which refuse nothing
        assert outcomes["Scheduled"] > 10
        assert outcomes["Unschedulable"] > 1


def walk_of(trial: Trial) -> Walk:
    nominator = trial.nominator
    nominated = {name: nominator.nominated_on(name) for name in nominator.nominated_nodes()}
    return Walk(trial.profile, fw.CycleState(), trial.pod, trial.nodes, nominated, in_full=True)


def compare(expect: Answer, walk: Walk) -> list[str]:
    expected = {key: value for key, value in expect.items() if key not in LEFT_OUT}
    expected["filter"] = recorded_refusals(expect, walk.nodes.names)
    if expect["outcome"] == "NoNodes":
        expected["outcome"] = "Unschedulable"
    return differences(expected, answer_of(walk))


def recorded_refusals(expect: Answer, names: tuple[str, ...]) -> Answer:
    """The status of every node that was refused.

    Nodes that PreFilter excludes were filtered all the same when the recording was made.
    """
    if "filter" not in expect and "preFilter" in expect:
        return dict.fromkeys(names, expect["preFilter"])
    return {
        name: {"prefiltered": True} if status.get("prefiltered") else status
        for name, status in expect.get("filter", {}).items()
        if status["code"] != "Success"
    }


def answer_of(walk: Walk) -> Answer:
    """The walk in the format of the recordings."""
    answer: Answer = {"feasible": sorted(walk.feasible), "filter": {}}
    for name, status in walk.refusals.items():
        is_excluded = status.message.startswith(EXCLUDED)
        words = {"code": status.code.label, "plugin": status.plugin, "reasons": status.reasons}
        answer["filter"][name] = {"prefiltered": True} if is_excluded else words
    if walk.status.ok:
        answer["outcome"] = "Scheduled"
        answer["total"], answer["best"] = walk.totals, sorted(walk.best)
        answer["scores"] = {
            plugin: {"weight": weight, "nodes": walk.normalized[plugin]}
            if plugin in walk.normalized
            else {"weight": weight, "skipped": True}
            for plugin, weight in walk.profile.weights.items()
        }
    elif walk.status.rejected:
        answer["outcome"], answer["fitError"] = "Unschedulable", walk.status.message
    else:
        answer["outcome"] = "Error"
        if "filter plugin" in walk.status.message:
            del answer["feasible"]  # a recording ends where a filter fails
        elif walk.feasible:
            answer["scoreError"] = walk.status.message
    return answer
