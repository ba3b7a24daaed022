"""Devices in answers about clusters: how many pods fit, and where claims go when pods move."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.simulator.clusters import snapshot

from mooring.api import core
from mooring.api.resource import ResourceClaim
from mooring.cache.pods import Pod
from mooring.errors import ConfigError
from mooring.lens.snapshot import Snapshot
from mooring.simulator.capacity import Demand, capacity
from mooring.simulator.changes import ClusterChanges
from mooring.simulator.imagine import Run, imagine
from mooring.testing import (
    device_class,
    device_request,
    node,
    pod,
    resource_claim,
    resource_claim_template,
    resource_slice,
)

CLASS = device_class("gpu")
PAIR = resource_claim_template("pair", device_request("gpus", 2))


def running(name: str, on: str, *devices: str) -> list[core.Pod | ResourceClaim]:
    """A pod on a node, with a claim made from the template."""
    api = pod(name, on=on, claim_templates=["pair"]).api
    asked = device_request("gpus", 2)
    claim = resource_claim(
        f"{name}-pair", asked, owner=Pod(api), allocated=devices, on=on, used_by=[Pod(api)]
    )
    made = core.PodResourceClaimStatus(name="pair", resource_claim_name=claim.name)
    status = structs.replace(api.status, resource_claim_statuses=(made,))
    return [structs.replace(api, status=status), claim]


def cluster(*more: object) -> Snapshot:
    return snapshot(
        CLASS, PAIR, node("a"), node("b"), resource_slice("a", 4), resource_slice("b", 3), *more
    )


def test_counts_pods_by_the_devices_that_their_template_asks_for() -> None:
    shape = pod("train", cpu="100m", claim_templates=["pair"]).api
    answer = capacity(
        cluster(*running("old", "a", "gpu-0", "gpu-3")), Demand(shapes=(shape,)), Run()
    )
    assert (answer.total, answer.nodes) == (2, {"a": 1, "b": 1})
    assert answer.bottlenecks == {"cannot allocate all claims": 2}
    assert answer.message == "0/2 nodes are available: 2 cannot allocate all claims."


def test_a_template_may_come_with_the_pod() -> None:
    shape = pod("train", claim_templates=["three"]).api
    three = resource_claim_template("three", device_request("gpus", 3))
    answer = capacity(cluster(), Demand(shapes=(shape,), templates=(three,)), Run())
    assert (answer.total, answer.nodes) == (2, {"a": 1, "b": 1})


def test_a_template_that_is_not_there_is_named() -> None:
    shape = pod("train", claim_templates=["none"]).api
    with pytest.raises(ConfigError, match='train: pod "default/train": ResourceClaim not created'):
        capacity(cluster(), Demand(shapes=(shape,)), Run())


def test_a_pod_that_is_drained_gives_its_devices_back_and_gets_others() -> None:
    given = cluster(*running("one", "a", "gpu-0", "gpu-1"), *running("two", "b", "gpu-0", "gpu-1"))
    outcome = imagine(given, Run(changes=ClusterChanges(drain=("b",))))
    assert outcome.placements == {"default/one": "a", "default/two": "a"}


def test_the_devices_of_a_lost_pod_serve_one_that_waits() -> None:
    waiting = pod("late", claim_templates=["pair"], node_selector={"kubernetes.io/hostname": "b"})
    given = cluster(*running("two", "b", "gpu-0", "gpu-1"), waiting)
    assert imagine(given, Run()).placements["default/late"] == ""
    outcome = imagine(given, Run(changes=ClusterChanges(cordon=("a",)), reschedule=True))
    assert sorted(outcome.placements.values()) == ["", "b"]
    gone = structs.replace(
        given.cluster, pods=tuple(one for one in given.cluster.pods if one.name != "two")
    )
    assert imagine(structs.replace(given, cluster=gone), Run()).placements == {"default/late": "b"}


def test_an_added_node_has_devices_like_its_model() -> None:
    pods = [pod(f"p{number}", claim_templates=["pair"]) for number in range(5)]
    given = cluster(*pods)
    assert sorted(imagine(given, Run()).placements.values()) == ["", "", "a", "a", "b"]
    added = ClusterChanges(add_nodes=1, like=node("a").api)
    outcome = imagine(given, Run(changes=added))
    assert sorted(outcome.placements.values()) == ["a", "a", "a-new-1", "a-new-1", "b"]
