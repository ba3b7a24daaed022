"""Devices that serve an extended resource count in the scores of the resource plugins."""

from __future__ import annotations

import pytest

from mooring.plugins.dynamicresources.plugin import DynamicResources
from mooring.plugins.noderesources.balanced import NodeResourcesBalancedAllocation
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.simulator.simulation import Simulation
from mooring.testing import (
    StubHandle,
    build,
    device_class,
    node,
    pod,
    resource_claim,
    resource_slice,
)

RESOURCE = "example.com/gpu"
SERVING = device_class("gpu", 'device.driver == "gpu.example.com"', extended_resource=RESOURCE)


def configuration(plugin: str, args: str) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      score:
        disabled: [{{name: "*"}}]
        enabled: [{{name: {plugin}}}]
    pluginConfig:
      - name: {plugin}
        args: {args}
"""


def fit(kind: str) -> str:
    resources = f"[{{name: {RESOURCE}, weight: 1}}]"
    return configuration(
        "NodeResourcesFit", f"{{scoringStrategy: {{type: {kind}, resources: {resources}}}}}"
    )


def placed_soon(sim: Simulation, name: str, cpu: str | None = None) -> None:
    """Binding waits until a claim made for the pod is seen."""
    sim.schedule(pod(name, cpu=cpu, requests={RESOURCE: 1}))
    sim.advance(2)


@pytest.mark.parametrize("keep_attempts", [True, False], ids=["in full", "by class"])
@pytest.mark.parametrize(
    ("kind", "placed"),
    [("LeastAllocated", ["b", "b", "a", "b"]), ("MostAllocated", ["a", "a", "b", "b"])],
)
def test_fit_scores_nodes_by_free_devices(
    kind: str, placed: list[str], keep_attempts: bool
) -> None:
    with Simulation(config=fit(kind), keep_attempts=keep_attempts, check_share=1.0) as sim:
        sim.apply(SERVING, node("a"), node("b"), resource_slice("a", 4), resource_slice("b", 4))
        sim.apply(resource_claim("held", allocated=["gpu-0", "gpu-1"], on="a"))
        for number in range(4):
            placed_soon(sim, f"p{number}")
        assert [sim.node_of(f"p{number}") for number in range(4)] == placed


@pytest.mark.parametrize("keep_attempts", [True, False], ids=["in full", "by class"])
def test_devices_that_several_nodes_share_count_as_they_are_now(keep_attempts: bool) -> None:
    with Simulation(config=fit("MostAllocated"), keep_attempts=keep_attempts) as sim:
        sim.apply(SERVING, *(node(name, labels={"rack": name[0]}) for name in ("a1", "a2", "b1")))
        for rack in "ab":
            sim.apply(resource_slice("", 8, pool=rack, node_selector={"rack": rack}))
        held = resource_claim("held", allocated=["a/gpu-6", "a/gpu-7"])
        sim.apply(held)
        placed_soon(sim, "p0")
        assert sim.node_of("p0").startswith("a")
        sim.delete(held)
        sim.apply(resource_claim("more", allocated=["b/gpu-5", "b/gpu-6", "b/gpu-7"]))
        placed_soon(sim, "p1")
        assert sim.node_of("p1") == "b1"


@pytest.mark.parametrize("plugin", [NodeResourcesFit, NodeResourcesBalancedAllocation])
def test_shared_devices_in_use_are_part_of_the_key(
    plugin: type[NodeResourcesFit | NodeResourcesBalancedAllocation],
) -> None:
    """What is kept of a node is not asked for again as long as the key is the same."""
    handle = StubHandle(objects=[SERVING, resource_slice("", 2), resource_claim("other")])
    resources = [{"name": RESOURCE, "weight": 1}]
    scored = {"resources": resources}
    args = {"scoring_strategy": scored} if plugin is NodeResourcesFit else scored
    built = build(plugin, handle=handle, **args)
    handle.objects.declare(DynamicResources.reads)
    asking = pod("p", requests={RESOURCE: 1})
    before = built.cache_key(asking)
    assert built.cache_key(asking) == before
    handle.objects.put(resource_claim("held", allocated=["shared/gpu-0"]))
    assert built.cache_key(asking) != before


def test_devices_that_the_class_does_not_select_do_not_count() -> None:
    with Simulation(config=fit("MostAllocated")) as sim:
        sim.apply(SERVING, node("a"), node("b"), resource_slice("a", 3), resource_slice("b", 2))
        sim.apply(resource_slice("b", 8, driver="other", name="others"))
        placed_soon(sim, "p")
        assert sim.node_of("p") == "b"  # one of two devices is more than one of three


def test_balance_counts_devices() -> None:
    resources = f"[{{name: cpu, weight: 1}}, {{name: {RESOURCE}, weight: 1}}]"
    config = configuration("NodeResourcesBalancedAllocation", f"{{resources: {resources}}}")
    with Simulation(config=config) as sim:
        sim.apply(SERVING, node("a", cpu="4"), node("b", cpu="4"))
        sim.apply(resource_slice("a", 1), resource_slice("b", 4))
        placed_soon(sim, "p", cpu="1")
        assert sim.node_of("p") == "b"  # a quarter of both


def test_a_profile_without_devices_scores_as_if_there_were_none() -> None:
    config = fit("MostAllocated").replace(
        "    plugins:\n", "    plugins:\n      multiPoint: {disabled: [{name: DynamicResources}]}\n"
    )
    with Simulation(config=config) as sim:
        sim.apply(SERVING, node("a", resources={RESOURCE: 2}), node("b", resources={RESOURCE: 1}))
        sim.schedule(pod("p", requests={RESOURCE: 1}))
        assert sim.node_of("p") == "b"
