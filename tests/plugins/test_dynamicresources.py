"""Pods without claims pass in silence; pods with claims are refused in words."""

from typing import Any

import numpy as np
import pytest

import mooring.framework as fw
from mooring.errors import ConfigError
from mooring.plugins.dynamicresources import DynamicResources
from mooring.simulator import Simulation
from mooring.testing.build import build
from mooring.testing.builders import node, nodes, pod
from mooring.testing.sandbox import Sandbox

CLAIMS: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
NONE = fw.Verdicts(0)
REASON = "the pod uses resource claims, which mooring does not support yet"


def test_says_nothing_about_a_pod_without_claims() -> None:
    plugin, plain, cluster = build(DynamicResources), pod(), nodes(node("a"), node("b"))
    state = fw.CycleState()
    assert plugin.pre_enqueue(plain) is fw.OK
    assert plugin.pre_filter(state, plain, cluster) is fw.SKIP
    assert plugin.filter(state, plain, cluster[0]) is fw.OK
    assert plugin.score_all(state, plain, cluster).tolist() == [0, 0]
    zeros = np.zeros(2, dtype=np.int64)
    assert plugin.normalize_score(state, plain, cluster, zeros).tolist() == [0, 0]
    assert plugin.reserve(state, plain, "a") is fw.OK
    assert plugin.pre_flight(state, plain, "a") is fw.SKIP


def test_has_nothing_to_deallocate() -> None:
    plugin, cluster, state = build(DynamicResources), nodes(node("a")), fw.CycleState()
    plugin.pre_filter(state, pod(), cluster)
    expected = fw.Status.unschedulable("no new claims to deallocate")
    assert plugin.post_filter(state, pod(), cluster, NONE) == expected


def test_is_lost_if_it_was_not_asked_before() -> None:
    plugin, cluster = build(DynamicResources), nodes(node("a"))
    found = plugin.post_filter(fw.CycleState(), pod(), cluster, NONE)
    assert found == fw.Status.error("not found")


def test_refuses_pods_with_claims_and_says_that_it_is_our_fault() -> None:
    plugin, greedy, state = build(DynamicResources), pod(spec=CLAIMS), fw.CycleState()
    assert plugin.pre_enqueue(greedy) is fw.OK
    assert plugin.pre_filter(state, greedy, nodes()) == fw.Status.unresolvable(REASON)
    assert plugin.post_filter(state, greedy, nodes(), NONE).rejected


def test_never_places_a_pod_without_its_claims() -> None:
    with Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("p", spec=CLAIMS))
        assert sim.where("p") == "unschedulable"
        sim.advance(600)
        assert sim.node_of("p") == ""


def test_says_once_why_a_pod_with_claims_waits_whatever_else_happens() -> None:
    with Simulation() as sim:
        sim.apply(node("a"), pod("other", on="a"))
        sim.schedule(pod("p", uid="p", spec=CLAIMS))
        assert sim.why("p").startswith(f"0/1 nodes are available: {REASON}.")
        sim.apply(node("b"), node("a", labels={"disk": "ssd"}), pod("more"))
        sim.delete(sim.pod("other"))
        sim.apply(pod("p", uid="p", labels={"app": "web"}, spec=CLAIMS))
        sim.advance(200)
        [event] = [event for event in sim.events if event.pod == "default/p"]
        assert (event.type, event.reason) == ("Warning", "FailedScheduling")
        assert REASON in event.note
        assert [attempt.pod.name for attempt in sim.attempts] == ["p", "more"]


def test_tries_a_pod_with_claims_again_only_when_unschedulable_pods_are_flushed() -> None:
    with Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("p", spec=CLAIMS))
        sim.advance(299)
        assert len(sim.attempts) == 1
        sim.advance(60)
        assert len(sim.attempts) == 2


def test_leaves_a_pod_with_claims_to_its_scheduling_gates_first() -> None:
    with Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("p", uid="p", gates=["wait"], spec=CLAIMS))
        assert (sim.where("p"), sim.events) == ("gated", [])
        sim.schedule(pod("p", uid="p", spec=CLAIMS))
        assert (sim.where("p"), len(sim.events)) == ("unschedulable", 1)


def test_shows_kubectl_why_a_pod_with_claims_waits() -> None:
    plain = {"containers": [{"name": "c", "image": "app"}]}
    with Sandbox() as cluster:
        cluster.add_nodes(2)
        cluster.start_scheduler()
        for name, spec in (("plain", plain), ("p", {**plain, **CLAIMS})):
            cluster.apply(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            )
        cluster.wait_until_bound("plain")
        cluster.advance(200)
        said = f"0/2 nodes are available: {REASON}."
        [event] = cluster.events("p")
        assert (event.type, event.reason) == ("Warning", "FailedScheduling")
        assert event.message.startswith(said)
        [condition] = cluster.get("pod", "p")["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
        assert condition["reason"] == "Unschedulable"
        assert condition["message"] == event.message == cluster.why("p")


def test_knows_the_arguments() -> None:
    args = build(DynamicResources, filterTimeout="0s", bindingTimeout="1s").args
    assert (str(args.filter_timeout), str(args.binding_timeout)) == ("0s", "1s")
    args = build(DynamicResources).args
    assert (str(args.filter_timeout), str(args.binding_timeout)) == ("10s", "10m0s")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"filterTimeout": "-1s"}, 'filterTimeout: Invalid value: "-1s": must be zero or positive'),
        (
            {"bindingTimeout": "999ms"},
            'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
        ),
        ({"bindingTimeout": "soon"}, "time: invalid duration"),
    ],
)
def test_refuses_times_that_make_no_sense(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build(DynamicResources, **args)
    assert problem in str(refused.value)
