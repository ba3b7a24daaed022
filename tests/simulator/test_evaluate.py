"""What an evaluation tells beyond the recorded decisions."""

from typing import Any

import pytest

import mooring.framework as fw
from mooring import config as cfg
from mooring.errors import ConfigError
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


def waiting(*pods: fw.Pod) -> list[dict[str, Any]]:
    cluster = ClusterState((node("a", cpu=2).api,), tuple(one.api for one in pods))
    return list(Evaluator().waiting_pods(cluster))


def test_a_nominated_pod_does_not_stand_in_its_own_way() -> None:
    first = pod("first", cpu=2, nominated="a", priority=5)
    results = {one["id"]: one for one in waiting(first, pod("second", cpu=2))}
    assert results["default/first"]["best"] == ["a"]
    assert results["default/second"]["outcome"] == "Unschedulable"  # the room is promised


def test_a_pod_of_another_scheduler_has_an_error_and_the_others_a_result() -> None:
    stray, ours = waiting(pod("stray", scheduler="theirs"), pod("ours"))
    assert stray == {
        "id": "default/stray",
        "error": 'pod.spec.schedulerName: no profile for schedulerName "theirs";'
        " there are: default-scheduler",
    }
    assert ours["best"] == ["a"]


def test_extenders_are_refused_because_the_result_would_differ() -> None:
    text = f"""
apiVersion: {cfg.API_VERSION}
kind: {cfg.KIND}
extenders: [{{urlPrefix: "http://example.com", filterVerb: filter}}]
"""
    with pytest.raises(ConfigError, match="extenders: an evaluation cannot call extenders"):
        Evaluator(cfg.load_text(text))
