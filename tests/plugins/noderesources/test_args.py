"""What the resource plugins accept as arguments, and what they say to the rest."""

from typing import Any

import pytest

from mooring.errors import ConfigError
from mooring.plugins.noderesources.balanced import NodeResourcesBalancedAllocation
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.testing.build import build

Json = dict[str, Any]


def test_fit_scores_emptiness_of_cpu_and_memory_unless_told_otherwise() -> None:
    strategy = build(NodeResourcesFit).args.scoring_strategy
    assert strategy.type == "LeastAllocated"
    assert [(r.name, r.weight) for r in strategy.resources] == [("cpu", 1), ("memory", 1)]


@pytest.mark.parametrize("resources", [[], None])
def test_an_empty_list_of_resources_means_the_default(resources: list[Json] | None) -> None:
    fit = build(
        NodeResourcesFit, scoring_strategy={"type": "MostAllocated", "resources": resources}
    )
    assert [r.name for r in fit.args.scoring_strategy.resources] == ["cpu", "memory"]
    balanced = build(NodeResourcesBalancedAllocation, resources=resources)
    assert [r.name for r in balanced.args.resources] == ["cpu", "memory"]


def test_a_weight_of_zero_means_one() -> None:
    resources = [{"name": "cpu", "weight": 0}]
    fit = build(NodeResourcesFit, scoring_strategy={"resources": resources})
    assert fit.args.scoring_strategy.resources[0].weight == 1
    assert build(NodeResourcesBalancedAllocation, resources=resources).args.resources[0].weight == 1


def shape(*points: tuple[int, int]) -> Json:
    return {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {
            "shape": [{"utilization": x, "score": y} for x, y in points],
        },
    }


@pytest.mark.parametrize(
    ("args", "place", "complaint"),
    [
        (
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0]",
            "resource weight of cpu not in valid range (0, 100]",
        ),
        (
            {"scoringStrategy": {"resources": [{"name": "cpu"}, {"name": "x/y", "weight": -1}]}},
            "scoringStrategy.resources[1]",
            "resource weight of x/y not in valid range (0, 100]",
        ),
        (
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy",
            "must be specified when type is RequestedToCapacityRatio",
        ),
        (
            {"scoringStrategy": {**shape((0, 0)), "type": "MostAllocated"}},
            "scoringStrategy",
            "must be nil when type is not RequestedToCapacityRatio",
        ),
        (
            {"scoringStrategy": shape()},
            "scoringStrategy.requestedToCapacityRatio",
            "at least one point must be specified",
        ),
        (
            {"scoringStrategy": shape((0, 0), (50, 5), (50, 6))},
            "scoringStrategy.requestedToCapacityRatio",
            "values must be sorted in increasing order",
        ),
        (
            {"scoringStrategy": shape((0, 0), (101, 5))},
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization",
            "<= 100",
        ),
        (
            {"scoringStrategy": shape((0, 11))},
            "scoringStrategy.requestedToCapacityRatio.shape[0].score",
            "<= 10",
        ),
        ({"scoringStrategy": {"type": "Tetris"}}, "scoringStrategy.type", "LeastAllocated"),
        (
            {"ignoredResourceGroups": ["fine.example.com", "example.com/gpu"]},
            "ignoredResourceGroups[1]",
            "resource group name can't contain '/'",
        ),
        ({"ignoredResources": ["not a name"]}, "ignoredResources[0]", "'not a name'"),
        ({"ignoredResource": ["x"]}, "ignoredResource", "unknown field"),
    ],
)
def test_fit_refuses(args: Json, place: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build(NodeResourcesFit, **args)
    assert place in str(refused.value)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("resources", "complaint"),
    [
        ([{"name": "cpu", "weight": 2}], "must be 1"),
        ([{"name": "cpu"}, {"name": "memory"}, {"name": "cpu"}], 'Duplicate value: "cpu"'),
        ([{"weight": 1}], "Required value"),
    ],
)
def test_balanced_refuses(resources: list[Json], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build(NodeResourcesBalancedAllocation, resources=resources)
    assert complaint in str(refused.value)
