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

CLAIMS: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
NONE = fw.Verdicts(0)


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
    reason = "the pod uses resource claims, which mooring does not support yet"
    assert plugin.pre_enqueue(greedy) == fw.Status.unresolvable(reason)
    assert plugin.pre_filter(state, greedy, nodes()) == fw.Status.unresolvable(reason)
    assert plugin.post_filter(state, greedy, nodes(), NONE).rejected


def test_never_places_a_pod_without_its_claims() -> None:
    with Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("p", spec=CLAIMS))
        assert sim.where("p") == "gated"
        sim.advance(600)
        assert sim.node_of("p") == ""


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
