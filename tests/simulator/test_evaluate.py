"""What an evaluation tells beyond the recorded decisions."""

from typing import Any

import mooring.framework as fw
from mooring.lens.snapshot import ClusterState
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario
from mooring.testing import node, pod


class TwoReasons(fw.Filter):
    name = "TwoReasons"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable("wet", "cold")


def told(
    wanted: fw.Pod,
    nodes: list[fw.Node],
    pods: tuple[fw.Pod, ...] = (),
    profile: dict[str, Any] | None = None,
) -> dict[str, Any]:
    cluster = ClusterState(tuple(one.api for one in nodes), tuple(one.api for one in pods))
    scenario = Scenario(wanted.api, profile=profile, cluster=cluster)
    return Evaluator(plugins=[TwoReasons]).trial(scenario).run()


def test_every_feasible_node_has_one_point_if_no_plugin_scores() -> None:
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    result = told(pod("p"), [node("a"), node("b")], profile=profile)
    assert (result["total"], result["best"]) == ({"a": 1, "b": 1}, ["a", "b"])
    assert "scores" not in result


def test_sorts_the_reasons_of_a_node() -> None:
    profile = {"plugins": {"filter": {"enabled": [{"name": "TwoReasons"}]}}}
    result = told(pod("p"), [node("a")], profile=profile)
    assert result["outcome"] == "Unschedulable"
    assert result["filter"]["a"]["reasons"] == ["cold", "wet"]


def test_names_the_victims_only_if_one_node_is_best() -> None:
    high, nodes = pod("high", cpu=2, priority=9), [node("a", cpu=2), node("b", cpu=2)]
    low = pod("low", cpu=2, priority=1, on="a")
    one = told(high, nodes, (low, pod("other", cpu=2, priority=5, on="b")))["postFilter"]
    assert (one["nominatedNodes"], one["victims"]) == (["a"], ["default/low"])
    tied = told(high, nodes, (low, pod("other", cpu=2, priority=1, on="b")))["postFilter"]
    assert tied["nominatedNodes"] == ["a", "b"]
    assert (tied["victims"], tied["deleted"]) == (None, None)
