"""What kube-scheduler does not have: best-fit devices, packed nodes, evictions for devices."""

from __future__ import annotations

import json

import pytest
from tests.plugins.dynamicresources.objects import DRIVER

from mooring.api.meta import Object
from mooring.api.resource import ResourceClaim
from mooring.errors import ConfigError
from mooring.simulator.simulation import Simulation
from mooring.testing import (
    device,
    device_class,
    device_request,
    node,
    pod,
    resource_claim,
    resource_claim_template,
    resource_slice,
)

CLASS = device_class("gpu")


def configured(**args: object) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    pluginConfig:
      - name: DynamicResources
        args: {json.dumps(args)}
"""


def devices_of(sim: Simulation, name: str = "c") -> list[str]:
    claim = sim.cluster.find(ResourceClaim, name, "default")
    assert claim is not None
    assert claim.allocation is not None, sim.why("p")
    return [one.device for one in claim.allocation.devices.results]


# --- best fit -------------------------------------------------------------------------------------

SIZES = resource_slice(
    "a",
    [device(f"gpu-{size}", capacity={"memory": f"{size}Gi"}) for size in (80, 20, 40)],
)
CARDS: list[Object] = [
    resource_slice(
        "a",
        [
            device("whole", consumes={"card": {"memory": "80Gi"}}),
            device("part", consumes={"card": {"memory": "20Gi"}}),
        ],
        slices=2,
    ),
    resource_slice("a", name="counters", slices=2, counters={"card": {"memory": "80Gi"}}),
]
SHARED = resource_slice(
    "a", [device(name, capacity={"memory": "80Gi"}, shared=True) for name in ("one", "two")]
)


@pytest.mark.parametrize(
    ("objects", "capacity", "first", "best"),
    [
        ([SIZES], {}, "gpu-80", "gpu-20"),
        ([SIZES], {"memory": "30Gi"}, "gpu-80", "gpu-40"),
        (CARDS, {}, "whole", "part"),
    ],
)
def test_best_fit_takes_the_smallest_device_that_will_do(
    objects: list[Object], capacity: dict[str, str], first: str, best: str
) -> None:
    for choice, taken in (("FirstFit", first), ("BestFit", best)):
        with Simulation(config=configured(deviceChoice=choice)) as sim:
            wish = device_request(capacity=capacity)
            sim.apply(CLASS, node("a"), *objects, resource_claim("c", wish))
            sim.schedule(pod("p", claims=["c"]))
            assert devices_of(sim) == [taken]


def test_best_fit_fills_a_shared_device_that_is_in_use_already() -> None:
    wish = device_request(capacity={"memory": "10Gi"})
    for choice, taken in (("FirstFit", "one"), ("BestFit", "two")):
        with Simulation(config=configured(deviceChoice=choice)) as sim:
            sim.apply(
                CLASS, node("a"), SHARED, resource_claim("c", wish), resource_claim("d", wish)
            )
            sim.apply(resource_claim("full", device_request(capacity={"memory": "80Gi"})))
            sim.schedule(pod("q", claims=["full"]))
            assert devices_of(sim, "full") == ["one"]
            sim.schedule(pod("half", claims=["d"]))
            assert devices_of(sim, "d") == ["two"]
            sim.delete(sim.pod("q"))
            sim.schedule(pod("p", claims=["c"]))
            assert devices_of(sim) == [taken]


# --- packed nodes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_attempts", [True, False], ids=["in full", "by class"])
def test_packing_fills_nodes_whose_devices_are_in_use(keep_attempts: bool) -> None:
    config = configured(packNodes=True)
    with Simulation(config=config, keep_attempts=keep_attempts, check_share=1.0) as sim:
        sim.apply(CLASS, *(node(name) for name in "abc"), resource_claim_template("gpu"))
        sim.apply(*(resource_slice(name, 2) for name in "abc"))
        sim.apply(resource_claim("held", allocated=["gpu-1"], on="b"))
        for number in range(5):
            sim.schedule(pod(f"p{number}", claim_templates=["gpu"]))
        placed = [sim.node_of(f"p{number}") for number in range(5)]
        assert placed[0] == "b"
        assert placed[1] == placed[2] != placed[3] == placed[4]


def test_packing_does_not_outweigh_preferred_alternatives() -> None:
    either = device_request(
        "r",
        first_available=[
            device_request("big", device_class="big"),
            device_request("any"),
        ],
    )
    big = device_class("big", f'device.capacity["{DRIVER}"].?memory.hasValue()')
    with Simulation(config=configured(packNodes=True)) as sim:
        sim.apply(CLASS, big, node("a"), node("b"), resource_claim("c", either))
        sim.apply(resource_slice("a", 4), resource_claim("held", allocated=["gpu-0"], on="a"))
        sim.apply(resource_slice("b", [device("gpu-0", capacity={"memory": "1"})]))
        sim.schedule(pod("p", claims=["c"]))
        assert sim.node_of("p") == "b"


# --- evictions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("allowed", "evicted"), [(True, ["low-1"]), (False, [])])
def test_a_pod_of_lower_priority_is_evicted_for_its_devices(
    allowed: bool, evicted: list[str]
) -> None:
    with Simulation(config=configured(preemptDeviceHolders=allowed)) as sim:
        sim.apply(CLASS, node("a"), resource_slice("a", 2), resource_claim_template("gpu"))
        sim.schedule(pod("low-5", priority=5, claim_templates=["gpu"]))
        sim.schedule(pod("low-1", priority=1, claim_templates=["gpu"]))
        sim.schedule(pod("plain", priority=0))
        sim.schedule(pod("urgent", priority=10, claim_templates=["gpu"]))
        sim.advance(60)
        there = {one.name for one in sim.cluster.pods()}
        assert sorted({"low-1", "low-5", "plain"} - there) == evicted
        assert sim.node_of("urgent") == ("a" if allowed else "")


def test_no_pod_is_evicted_whose_devices_another_pod_uses_too() -> None:
    with Simulation(config=configured(preemptDeviceHolders=True)) as sim:
        sim.apply(CLASS, node("a"), resource_slice("a", 1), resource_claim("shared"))
        sim.schedule(pod("low", priority=1, claims=["shared"]))
        sim.schedule(pod("high", priority=20, claims=["shared"]))
        sim.apply(resource_claim("mine"))
        sim.schedule(pod("urgent", priority=10, claims=["mine"]))
        sim.advance(30)
        assert {one.name for one in sim.cluster.pods()} == {"low", "high", "urgent"}


def test_no_pod_is_evicted_for_devices_of_a_claim_that_no_pod_uses() -> None:
    with Simulation(config=configured(preemptDeviceHolders=True)) as sim:
        sim.apply(CLASS, node("a"), resource_slice("a", 1))
        sim.apply(resource_claim("held", allocated=["gpu-0"], on="a"), resource_claim("mine"))
        sim.schedule(pod("low", priority=1))
        sim.schedule(pod("urgent", priority=10, claims=["mine"]))
        sim.advance(30)
        assert {one.name for one in sim.cluster.pods()} == {"low", "urgent"}


def test_a_pod_on_another_node_is_not_gone_in_the_dry_run_of_this_one() -> None:
    """All nodes could use the device, but only where its holder runs does an eviction free it."""
    others = ["b", "c", "d"]
    with Simulation(config=configured(preemptDeviceHolders=True)) as sim:
        sim.apply(*(node(name, cpu=2) for name in ("a", *others)))
        sim.apply(CLASS, resource_slice("", 1), resource_claim("held"), resource_claim("mine"))
        sim.schedule(pod("holder", cpu=1, priority=5, claims=["held"], node_selector=on("a")))
        for name in others:
            sim.schedule(pod(f"on-{name}", cpu=1, priority=1, node_selector=on(name)))
        sim.schedule(pod("urgent", cpu=2, priority=10, claims=["mine"]))
        sim.advance(60)
        there = {one.name for one in sim.cluster.pods()}
        assert there == {"urgent", *(f"on-{name}" for name in others)}


def on(name: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": name}


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(ConfigError, match='deviceChoice: invalid value "Largest"; expected one of'):
        Simulation(config=configured(deviceChoice="Largest"))
