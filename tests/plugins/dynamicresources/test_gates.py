"""DeviceTaintRules and attributes with several values: only with their feature gates."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.plugins.dynamicresources.objects import DRIVER

from mooring import config as cfg
from mooring.api.codec import convert
from mooring.api.meta import Object
from mooring.api.resource import Device, DeviceTaintRule, ResourceClaim
from mooring.framework._internal import DEVICE_TAINT_RULES, LIST_ATTRIBUTES
from mooring.plugins.dynamicresources.cel import CompileError, compile_selector, device_value
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry
from mooring.scheduler.rbac import cluster_permissions
from mooring.scheduler.scheduler import Scheduler
from mooring.simulator.simulation import Simulation
from mooring.testing import (
    device_class,
    device_request,
    node,
    pod,
    resource_claim,
    resource_slice,
)

CLASS = device_class("gpu")


class GatedSimulation(Simulation):
    """A simulation whose scheduler has feature gates."""

    def __init__(self, *gates: str) -> None:
        def gated(*args: object, **kwargs: object) -> Scheduler:
            return Scheduler(*args, **kwargs, feature_gates=frozenset(gates))  # type: ignore[arg-type]  # passed on

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mooring.simulator.simulation.Scheduler", gated)
            super().__init__()


def taint_rule(name: str, effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    spec = {"taint": {"key": "broken", "effect": effect}}
    if selector:
        spec["deviceSelector"] = selector
    return convert({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "free"),
    [
        (taint_rule("all"), []),
        (taint_rule("driver", driver=DRIVER), []),
        (taint_rule("other", driver="other"), ["a/gpu-0", "a/gpu-1"]),
        (taint_rule("pool", pool="b"), ["a/gpu-0", "a/gpu-1"]),
        (taint_rule("device", pool="a", device="gpu-0"), ["a/gpu-1"]),
        (taint_rule("informs", effect="None"), ["a/gpu-0", "a/gpu-1"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_rule_taints_the_devices_that_it_selects(rule: DeviceTaintRule, free: list[str]) -> None:
    with GatedSimulation(DEVICE_TAINT_RULES) as sim:
        claims = [resource_claim(f"c{n}") for n in range(2)]
        sim.apply(CLASS, node("a"), resource_slice("a", 2), rule, *claims)
        sim.schedule(*(pod(f"p{n}", claims=[f"c{n}"]) for n in range(2)))
        assert devices_in(sim, "c0", "c1") == free


def devices_in(sim: Simulation, *names: str) -> list[str]:
    found = (sim.cluster.find(ResourceClaim, name, "default") for name in names)
    return [
        f"{result.pool}/{result.device}"
        for claim in found
        if claim is not None and claim.allocation is not None
        for result in claim.allocation.devices.results
    ]


def test_a_rule_that_goes_or_changes_wakes_the_pod() -> None:
    for after in (None, taint_rule("r", pool="elsewhere")):
        with GatedSimulation(DEVICE_TAINT_RULES) as sim:
            sim.apply(
                CLASS, node("a"), resource_slice("a", 1), taint_rule("r"), resource_claim("c")
            )
            sim.schedule(pod("p", claims=["c"]))
            assert sim.where("p") == "unschedulable"
            if after is None:
                sim.delete(taint_rule("r"))
            else:
                sim.apply(after)
            sim.advance(10)
            assert sim.node_of("p") == "a"


def test_without_the_gate_rules_are_neither_watched_nor_read() -> None:
    with Simulation() as sim:
        sim.apply(CLASS, node("a"), resource_slice("a", 1), taint_rule("all"), resource_claim("c"))
        sim.schedule(pod("p", claims=["c"]))
        assert sim.node_of("p") == "a"


def test_rights_for_rules_are_asked_for_with_the_gate_only() -> None:
    for gates in (frozenset[str](), frozenset({DEVICE_TAINT_RULES})):
        plans = plan_profiles(cfg.default_configuration(), Registry.discover(), gates)
        asked = {one.resource for one in cluster_permissions(plans, reviews=False)}
        assert ("devicetaintrules" in asked) == bool(gates)


# --- several values -------------------------------------------------------------------------------


def several(name: str, **attributes: Iterable[object]) -> Device:
    raw = {
        "name": name,
        "attributes": {key: {"strings": list(values)} for key, values in attributes.items()},
    }
    return convert(raw, Device)


G = f'device.attributes["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (f'"b" in {G}.links', True),
        (f'{G}.links.includes("b")', True),
        (f'{G}.links.includes("z")', False),
        (f'{G}.model.includes("A100")', True),
        (f'{G}.model.includes("T4")', False),
        (f'{G}.links.exists(one, one == "a")', True),
        (f"{G}.versions[0].isLessThan(semver('2.0.0'))", True),
        (f"size({G}.links) == 2", True),
        (f"{G}.ready", True),
    ],
)
def test_selectors_read_attributes_with_several_values(expression: str, answer: bool) -> None:
    raw = {
        "name": "d",
        "attributes": {
            "links": {"strings": ["a", "b"]},
            "model": {"string": "A100"},
            "versions": {"versions": ["1.0.0"]},
            "ready": {"bool": True},
        },
    }
    selector = compile_selector(expression, has_lists=True)
    assert not isinstance(selector, CompileError), selector
    value = device_value(DRIVER, convert(raw, Device), has_lists=True)
    assert selector.matches(value) is answer


def test_without_the_gate_lists_fail_as_before_and_includes_is_not_known() -> None:
    with Simulation() as sim:
        odd = resource_slice("a", [several("gpu-0", links=["x"])])
        sim.apply(device_class("gpu", "true"), node("a"), odd, resource_claim("c"))
        sim.schedule(pod("p", claims=["c"]))
        assert "attribute links: unsupported attribute value" in sim.why("p")
    found = compile_selector(f'{G}.model.includes("A100")')
    assert isinstance(found, CompileError)
    assert "undeclared reference to 'includes'" in found.text


def links(match: bool) -> list[Object]:
    attribute = f"{DRIVER}/links"
    slices = resource_slice(
        "a",
        [
            several("gpu-0", links=["x", "y"]),
            several("gpu-1", links=["x"]),
            several("gpu-2", links=["y", "z"]),
            several("gpu-3", links=["z", "y"]),
        ],
    )
    if match:
        return [CLASS, slices, resource_claim("c", device_request("gpus", 3), match=attribute)]
    asked = (device_request("one"), device_request("two"))
    return [CLASS, slices, resource_claim("c", *asked, distinct=attribute)]


def test_devices_match_by_a_value_in_common_also_after_a_step_back() -> None:
    with GatedSimulation(LIST_ATTRIBUTES) as sim:
        sim.apply(node("a"), *links(match=True))
        sim.schedule(pod("p", claims=["c"]))
        # gpu-0 and gpu-1 have x in common, and no third device has: y is found by stepping back.
        assert devices_in(sim, "c") == ["a/gpu-0", "a/gpu-2", "a/gpu-3"]


def test_devices_are_distinct_if_they_have_no_value_in_common() -> None:
    with GatedSimulation(LIST_ATTRIBUTES) as sim:
        sim.apply(node("a"), *links(match=False))
        sim.schedule(pod("p", claims=["c"]))
        # All others share a value with gpu-0.
        assert devices_in(sim, "c") == ["a/gpu-1", "a/gpu-2"]
