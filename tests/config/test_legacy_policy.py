from __future__ import annotations

from typing import Any

import pytest

from mooring import config as cfg
from mooring.config.legacy import names
from mooring.errors import ConfigError

HEAD = "kind: Policy\napiVersion: v1\n"


def read(body: str) -> cfg.Loaded:
    return cfg.read_text(HEAD + body, "policy.yaml")


def profile(body: str) -> dict[str, Any]:
    found: dict[str, Any] = read(body).document["profiles"][0]
    return found


def filters(body: str) -> set[str]:
    plugins = profile(body).get("plugins", {})
    off = {
        ref["name"]
        for point in ("multiPoint", "filter")
        for ref in plugins.get(point, {}).get("disabled", [])
    }
    return set(names.V1_FILTERS) - off


def scores(body: str) -> dict[str, int]:
    score = profile(body).get("plugins", {}).get("score", {})
    return {ref["name"]: ref["weight"] for ref in score.get("enabled", [])}


def problems(body: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(body)
    return str(caught.value).splitlines()


def test_takes_an_absent_list_for_the_usual_ones() -> None:
    assert filters("") == set(names.V1_FILTERS)
    assert filters("predicates: null\n") == set(names.V1_FILTERS)
    assert scores("") == {name: 2 if name == names.SPREAD else 1 for name in names.V1_SCORES}


def test_takes_an_empty_list_for_none_but_the_mandatory_ones() -> None:
    assert filters("predicates: []\n") == {"TaintToleration", "NodeUnschedulable"}
    assert scores("priorities: []\n") == {}


@pytest.mark.parametrize(
    ("predicate", "plugins"),
    [
        ("GeneralPredicates", {"NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"}),
        ("PodFitsResources", {"NodeResourcesFit"}),
        ("HostName", {"NodeName"}),
        ("PodFitsHostPorts", {"NodePorts"}),
        ("PodFitsPorts", {"NodePorts"}),
        ("MatchNodeSelector", {"NodeAffinity"}),
        ("NoDiskConflict", {"VolumeRestrictions"}),
        ("CheckVolumeBinding", {"VolumeBinding"}),
        ("NoVolumeZoneConflict", {"VolumeZone"}),
        ("MaxCSIVolumeCountPred", {"NodeVolumeLimits"}),
        ("MaxEBSVolumeCount", {"NodeVolumeLimits"}),
        ("MatchInterPodAffinity", {"InterPodAffinity"}),
        ("EvenPodsSpread", {"PodTopologySpread"}),
        ("CheckNodeCondition", set()),
        ("CheckNodeLabelPresence", set()),
        ("PodToleratesNodeTaints", set()),
    ],
)
def test_reads_a_predicate_as_plugins(predicate: str, plugins: set[str]) -> None:
    chosen = filters(f"predicates: [{{name: {predicate}}}]\n")
    assert chosen == {"TaintToleration", "NodeUnschedulable", *plugins}


@pytest.mark.parametrize(
    ("priority", "plugin"),
    [
        ("LeastRequestedPriority", "NodeResourcesFit"),
        ("MostRequestedPriority", "NodeResourcesFit"),
        ("BalancedResourceAllocation", "NodeResourcesBalancedAllocation"),
        ("SelectorSpreadPriority", "PodTopologySpread"),
        ("ServiceSpreadingPriority", "PodTopologySpread"),
        ("EvenPodsSpreadPriority", "PodTopologySpread"),
        ("InterPodAffinityPriority", "InterPodAffinity"),
        ("NodeAffinityPriority", "NodeAffinity"),
        ("TaintTolerationPriority", "TaintToleration"),
        ("ImageLocalityPriority", "ImageLocality"),
    ],
)
def test_reads_a_priority_as_a_score_with_its_weight(priority: str, plugin: str) -> None:
    assert scores(f"priorities: [{{name: {priority}, weight: 6}}]\n") == {plugin: 6}


def test_leaves_out_what_changes_nothing() -> None:
    body = """priorities:
- {name: EqualPriority, weight: 1}
- {name: NodePreferAvoidPodsPriority, weight: 9}
"""
    assert scores(body) == {}
    assert {note.path for note in read(body).notes} >= {"priorities[0]", "priorities"}


def test_filters_and_scores_apart() -> None:
    plugins = profile(
        "predicates: [{name: MatchInterPodAffinity}]\n"
        "priorities: [{name: NodeAffinityPriority, weight: 1}]\n"
    )["plugins"]
    assert {"name": "InterPodAffinity"} in plugins["score"]["disabled"]
    assert plugins["filter"] == {"disabled": [{"name": "NodeAffinity"}]}
    assert plugins["preFilter"] == {"disabled": [{"name": "NodeAffinity"}]}


def test_spreads_by_selector_only_when_asked() -> None:
    even = "{name: EvenPodsSpreadPriority, weight: 3}"
    alone = profile(f"priorities: [{even}]\n")
    assert alone["pluginConfig"] == [
        {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
    ]
    both = f"priorities: [{{name: SelectorSpreadPriority, weight: 5}}, {even}]\n"
    assert "pluginConfig" not in profile(both)
    assert scores(both) == {"PodTopologySpread": 3}


def test_gives_the_weight_of_hard_affinity_to_its_plugin() -> None:
    body = "hardPodAffinitySymmetricWeight: 7\n"
    entry = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}
    assert profile(body)["pluginConfig"] == [entry]
    assert "pluginConfig" not in profile(body + "priorities: []\n")
    assert problems("hardPodAffinitySymmetricWeight: 101\n") == [
        "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]"
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("predicates: [{name: X}]", 'predicates[0].name: predicate type not found for "X"'),
        (
            "priorities: [{name: X, weight: 1}]",
            'priorities[0].name: priority type not found for "X"',
        ),
        (
            "priorities: [{name: ImageLocalityPriority}]",
            "priorities[0].weight: priority ImageLocalityPriority should have a positive weight"
            " applied to it or it has overflown",
        ),
        (
            "predicates: [{name: X, argument: {}}]",
            "predicates[0].argument: exactly 1 predicate argument is required, numArgs: 0",
        ),
        (
            "priorities:\n"
            "- {name: X, weight: 1, argument: {labelPreference: {}, serviceAntiAffinity: {}}}",
            "priorities[0].argument: exactly 1 priority argument is required, numArgs: 2",
        ),
        (
            "predicates: [{name: X, argument: {labelsPresence: {labels: [a], presence: true}}}]",
            "predicates[0]: NodeLabel has no counterpart in v1",
        ),
        (
            "predicates: [{name: X, argument: {serviceAffinity: {labels: [a]}}}]",
            "predicates[0]: ServiceAffinity has no counterpart in v1",
        ),
        (
            "priorities: [{name: X, weight: 1, argument: {labelPreference: {label: a}}}]",
            "priorities[0]: NodeLabel has no counterpart in v1",
        ),
        (
            "priorities: [{name: X, weight: 1, argument: {serviceAntiAffinity: {label: a}}}]",
            "priorities[0]: ServiceAffinity has no counterpart in v1",
        ),
        (
            "priorities: [{name: ResourceLimitsPriority, weight: 1}]",
            "priorities[0]: NodeResourceLimits has no counterpart in v1",
        ),
        (
            "priorities: [{name: X, weight: 1, argument: {requestedToCapacityRatioArguments: {}}}]",
            "priorities: RequestedToCapacityRatio: shape: at least one point must be specified",
        ),
        (
            "priorities: [{name: LeastRequestedPriority, weight: 1},"
            " {name: MostRequestedPriority, weight: 1}]",
            "priorities: scores by NodeResourcesLeastAllocated and NodeResourcesMostAllocated",
        ),
        ("predicates: 7", "predicates: expected array, got int 7"),
        ("extenders: [{prioritizeVerb: p}]", "extenders[0].weight: Invalid value: 0"),
    ],
)
def test_refuses_what_cannot_be(body: str, expected: str) -> None:
    (problem,) = problems(f"{body}\n")
    assert problem.startswith(expected)


def test_reads_json_and_the_newer_group() -> None:
    text = '{"kind": "Policy", "apiVersion": "kubescheduler.config.k8s.io/v1", "priorities": []}'
    loaded = cfg.read_text(text)
    assert loaded.written_as == "Policy"
    assert loaded.config.profiles[0].scheduler_name == "default-scheduler"
