from __future__ import annotations

import msgspec
from tests.simulator.clusters import snapshot, strategy

from mooring.lens.snapshot import Snapshot
from mooring.simulator.answers import ComparisonAnswer
from mooring.simulator.compare import closer, compare, differing
from mooring.simulator.imagine import Run
from mooring.simulator.sweeps import outcomes
from mooring.testing import node, pod

LEAST = Run(config=strategy("LeastAllocated"), config_name="least.yaml")
MOST = Run(config=strategy("MostAllocated"), config_name="most.yaml")


def ask(given: Snapshot, first: Run, second: Run) -> ComparisonAnswer:
    one, two = outcomes([(given, first), (given, second)])
    pods = differing(one, two)
    seen = outcomes([(given, closer(first, pods)), (given, closer(second, pods))])
    watched = (seen[0].watched, seen[1].watched)
    return compare(given, (first, second), (one, two), watched)


def found(answer: ComparisonAnswer) -> dict[str, tuple[str, str, str]]:
    return {one.pod: (one.first, one.second, one.plugin) for one in answer.differences}


def test_names_the_pods_and_the_plugin_that_made_the_difference() -> None:
    """Scenario 15 of the brief."""
    nodes = [node(name, cpu=4, memory="8Gi") for name in "ab"]
    given = snapshot(*nodes, *(pod(f"p{i}", cpu=1, memory="1Gi") for i in range(4)))
    answer = ask(given, LEAST, MOST)
    assert found(answer) == {
        "default/p1": ("b", "a", "NodeResourcesFit"),
        "default/p3": ("b", "a", "NodeResourcesFit"),
    }
    assert answer.by_plugin == {"NodeResourcesFit": 2}
    assert answer.placed == 4
    assert answer.first is not None
    assert answer.second is not None
    balance = [side.resources[0].imbalance for side in (answer.first, answer.second)]
    assert balance == [0.0, 0.5]
    assert (answer.first_config, answer.second_config) == ("least.yaml", "most.yaml")


def test_equal_configurations_make_no_difference() -> None:
    given = snapshot(node("a"), node("b"), *(pod(f"p{i}", cpu=1) for i in range(4)))
    answer = ask(given, LEAST, LEAST)
    assert (answer.differences, answer.by_plugin, answer.placed) == ((), {}, 4)


def test_a_filter_that_one_configuration_lacks_is_named() -> None:
    without = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""
    given = snapshot(
        node("tainted", cpu=64, taints=["x=y:NoSchedule"]),
        node("small", cpu=2),
        pod("p", cpu=1),
        pod("q", cpu=32),
    )
    answer = ask(given, Run(), Run(config=without, config_name="without"))
    assert found(answer) == {
        "default/p": ("small", "tainted", "TaintToleration"),
        "default/q": ("", "tainted", "TaintToleration"),
    }
    refused = answer.differences[0]
    assert refused.why == "tainted was refused: node(s) had untolerated taint(s)"
    assert answer.first is not None
    assert answer.second is not None
    assert (answer.first.waiting, answer.second.waiting) == (1, 0)


def test_preemptions_under_each_configuration_are_counted() -> None:
    given = snapshot(
        *(node(name, cpu=4) for name in "ab"),
        *(pod(f"low{i}", cpu=2, priority=0) for i in range(2)),
        pod("vip", cpu=4, priority=-1),  # last in the queue, and evicts nothing
        pod("big", cpu=3, priority=-2),
    )
    answer = ask(given, LEAST, MOST)
    assert answer.first is not None
    assert answer.second is not None
    # Spread out, the two leave no node empty: vip and big wait. Packed, vip has a node of its own.
    assert [side.waiting for side in (answer.first, answer.second)] == [2, 1]
    assert found(answer)["default/vip"] == ("", "b", "NodeResourcesFit")


def test_the_same_question_twice_has_the_same_bytes() -> None:
    given = snapshot(node("a"), node("b"), *(pod(f"p{i}", cpu="300m") for i in range(9)))
    first, second = (msgspec.json.encode(ask(given, LEAST, MOST)) for _ in range(2))
    assert first == second


def test_says_that_pods_with_a_node_are_not_placed_anew() -> None:
    given = snapshot(node("a"), node("b"), pod("old", on="a"), pod("new"))
    assert ask(given, Run(), Run()).notes == (
        "1 pod has a node and stays there: --reschedule places all pods anew",
    )
    again = Run(reschedule=True)
    assert ask(given, again, again).notes == ()
