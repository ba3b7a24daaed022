from __future__ import annotations

from typing import Any

import pytest

from mooring import config as cfg
from mooring.errors import ConfigError


def read(version: str, body: str = "") -> cfg.Loaded:
    head = f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
    return cfg.read_text(head + body, "f.yaml")


def profile(version: str, body: str) -> dict[str, Any]:
    found: dict[str, Any] = read(version, f"profiles: [{body}]\n").document["profiles"][0]
    return found


def weights(version: str, score: str) -> dict[str, int]:
    enabled = profile(version, f"{{plugins: {{score: {score}}}}}")["plugins"]["score"]["enabled"]
    return {ref["name"]: ref["weight"] for ref in enabled}


def problems(version: str, body: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(version, body)
    return str(caught.value).splitlines()


def test_keeps_the_weights_that_were_the_default() -> None:
    expected = {
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesFit": 1,
        "NodeAffinity": 1,
        "PodTopologySpread": 2,
        "TaintToleration": 1,
    }
    assert weights("v1beta2", "{}") == expected
    assert weights("v1beta1", "{}") == expected
    assert weights("v1alpha2", "{}") == {**expected, "PodTopologySpread": 1}


def test_leaves_the_defaults_of_v1beta3_to_v1() -> None:
    assert "profiles" not in read("v1beta3").document
    assert read("v1beta3").config == cfg.default_configuration()


def test_takes_scores_away_and_gives_them_other_weights() -> None:
    score = "{disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 9}]}"
    found = weights("v1beta2", score)
    assert found["NodeAffinity"] == 9
    assert "ImageLocality" not in found
    converted = profile("v1beta2", f"{{plugins: {{score: {score}}}}}")
    assert converted["plugins"]["score"]["disabled"] == [{"name": "ImageLocality"}]


def test_reads_a_weight_of_zero_as_one() -> None:
    assert weights("v1beta2", "{enabled: [{name: NodeAffinity, weight: 0}]}")["NodeAffinity"] == 1


def test_adds_plugins_of_ones_own_after_the_defaults() -> None:
    found = weights("v1beta2", "{enabled: [{name: Mine, weight: 4}]}")
    assert list(found)[-1] == "Mine"
    assert found["Mine"] == 4


def test_does_not_move_a_filter_that_is_named_again() -> None:
    plugins = "filter: {enabled: [{name: NodePorts}, {name: Mine}]}"
    assert profile("v1beta2", f"{{plugins: {{{plugins}}}}}")["plugins"]["filter"] == {
        "enabled": [{"name": "Mine"}]
    }


@pytest.mark.parametrize(
    ("scorer", "kind"),
    [
        ("NodeResourcesMostAllocated", "MostAllocated"),
        ("RequestedToCapacityRatio", "RequestedToCapacityRatio"),
    ],
)
def test_makes_a_strategy_of_what_was_a_plugin(scorer: str, kind: str) -> None:
    body = f"""
- plugins:
    score:
      disabled: [{{name: NodeResourcesLeastAllocated}}]
      enabled: [{{name: {scorer}, weight: 4}}]
  pluginConfig:
  - {{name: {scorer}, args: {{shape: [{{utilization: 1, score: 2}}], resources: [{{name: x}}]}}}}
"""
    converted = read("v1beta1", f"profiles: {body}").document["profiles"][0]
    strategy = converted["pluginConfig"][0]["args"]["scoringStrategy"]
    assert strategy["type"] == kind
    assert strategy["resources"] == [{"name": "x"}]
    assert ("requestedToCapacityRatio" in strategy) == (kind == scorer)
    fit = next(r for r in converted["plugins"]["score"]["enabled"] if "Fit" in r["name"])
    assert fit == {"name": "NodeResourcesFit", "weight": 4}


def test_refuses_two_ways_to_score_resources_at_once() -> None:
    body = "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated}]}}}]\n"
    assert problems("v1beta1", body) == [
        "profiles[0].plugins.score: scores by NodeResourcesLeastAllocated and"
        " NodeResourcesMostAllocated at once, which one NodeResourcesFit cannot do in v1;"
        " disable all but one of them"
    ]


def test_says_that_arguments_of_a_score_that_is_off_have_no_effect() -> None:
    body = "profiles: [{pluginConfig: [{name: NodeResourcesMostAllocated, args: {resources: []}}]}]"
    loaded = read("v1beta1", body)
    assert "pluginConfig" not in loaded.document["profiles"][0]
    text = "NodeResourcesMostAllocated is not enabled: its arguments have no effect"
    assert cfg.Note("profiles[0].plugins.score", text) in loaded.notes


def test_uses_default_constraints_where_giving_them_was_enough() -> None:
    constraint = "{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}"
    entry = f"{{name: PodTopologySpread, args: {{defaultConstraints: [{constraint}]}}}}"
    for version, expected in ("v1beta1", "List"), ("v1beta2", None), ("v1beta3", None):
        args = profile(version, f"{{pluginConfig: [{entry}]}}")["pluginConfig"][0]["args"]
        assert args.get("defaultingType") == expected


@pytest.mark.parametrize(
    ("name", "args"),
    [("NodeLabel", "{presentLabels: [gpu]}"), ("ServiceAffinity", "{affinityLabels: [zone]}")],
)
def test_refuses_what_has_no_counterpart_unless_it_does_nothing(name: str, args: str) -> None:
    plugins = f"plugins: {{filter: {{enabled: [{{name: {name}}}]}}}}"
    body = f"profiles: [{{{plugins}, pluginConfig: [{{name: {name}, args: {args}}}]}}]\n"
    (problem,) = problems("v1beta1", body)
    place = "profiles[0].plugins.filter.enabled[0]"
    assert problem.startswith(f"{place}: {name} has no counterpart in v1")
    idle = read("v1beta1", f"profiles: [{{{plugins}}}]\n")
    assert cfg.Note(place, f"{name} without arguments does nothing; left out") in idle.notes
    assert name not in cfg.to_v1_yaml(idle).partition("kind:")[2]


def test_refuses_fields_that_a_version_does_not_know() -> None:
    assert problems("v1beta3", "healthzBindAddress: x\n")[0].startswith(
        "healthzBindAddress: unknown field"
    )
    body = "profiles: [{plugins: {multiPoint: {}, unreserve: {}}}]\n"
    assert [problem.partition(";")[0] for problem in problems("v1beta1", body)] == [
        "profiles[0].plugins.multiPoint: unknown field",
        "profiles[0].plugins.unreserve: unknown field",
    ]


def test_reports_what_is_wrong_in_any_version_with_the_same_words() -> None:
    assert problems("v1beta2", "percentageOfNodesToScore: 101\nparallelism: x\n") == [
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        'parallelism: expected int, got str "x"',
    ]


def test_leaves_out_what_v1beta2_never_acted_on() -> None:
    loaded = read("v1beta2", "profiles: [{plugins: {multiPoint: {enabled: [{name: Mine}]}}}]\n")
    assert "multiPoint" not in loaded.document["profiles"][0]["plugins"]
    assert any(note.path == "profiles[0].plugins.multiPoint" for note in loaded.notes)


def test_folds_selector_spread_of_v1beta3_into_the_spread_that_is_on() -> None:
    body = "{plugins: {multiPoint: {enabled: [{name: SelectorSpread}, {name: Mine}]}}}"
    assert profile("v1beta3", body)["plugins"] == {"multiPoint": {"enabled": [{"name": "Mine"}]}}
    off = body.replace("]}}}", "], disabled: [{name: PodTopologySpread}]}}}")
    (problem,) = problems("v1beta3", f"profiles: [{off}]\n")
    assert "PodTopologySpread, which is disabled" in problem


def test_refuses_selector_spread_beside_constraints_of_ones_own() -> None:
    constraint = "{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}"
    body = f"""
profiles:
- plugins: {{score: {{enabled: [{{name: SelectorSpread}}]}}}}
  pluginConfig: [{{name: PodTopologySpread, args: {{defaultConstraints: [{constraint}]}}}}]
"""
    (problem,) = problems("v1beta2", body)
    assert "SelectorSpread beside defaultConstraints of PodTopologySpread" in problem
