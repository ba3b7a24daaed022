"""What DynamicResources says of its refusals in `mooring explain`, and what would help."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lens.clusters import explained, remedy, texts
from tests.lens.test_remedies import patched
from tests.sizes import sized

from mooring.api.meta import Object
from mooring.api.resource import Device, DeviceRequest, ResourceClaim
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.lens.explanation import Explanation
from mooring.lens.private import PrivateCluster, sorted_by_name
from mooring.lens.remedies import remedies_for
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario, read_scenarios
from mooring.testing import (
    device,
    device_class,
    device_request,
    node,
    pod,
    resource_claim,
    resource_slice,
)
from mooring.testing.devices import DRIVER

MODEL = f'device.attributes["{DRIVER}"].model == "A100"'
CLASS = device_class("gpu")


def a100(name: str, *taints: str) -> Device:
    return device(name, attributes={"model": "A100", "numa": int(name[-1]) // 2}, taints=taints)


def told(
    claim: ResourceClaim,
    *objects: Object,
    nodes: tuple[Node, ...] = (node("a"),),
    pods: tuple[Pod, ...] = (),
    classes: tuple[Object, ...] = (CLASS,),
) -> Explanation:
    wanting = pod("p", claims=[claim.name])
    return explained(wanting, nodes, pods, [*classes, claim, *objects])


def facts(found: Explanation) -> list[str]:
    return [fact.text for group in found.groups for one in group.refusals for fact in one.facts]


def wants(*requests: DeviceRequest, **more: str) -> ResourceClaim:
    return resource_claim("c", *requests, match=more.get("match", ""))


def test_devices_in_use_name_their_claims_and_the_pod_that_would_free_them() -> None:
    user = pod("user", on="a", claims=["held"])
    held = resource_claim("held", allocated=["gpu-0", "gpu-1"], on="a", used_by=[user])
    more = resource_claim("more", allocated=["gpu-2"], on="a")
    found = told(wants(device_request("gpus", 3)), resource_slice("a", 4), held, more, pods=(user,))
    assert facts(found) == [
        "request gpus of claim default/c asks for 3, 1 of 4 devices would do:"
        " 3 in use by default/held and default/more"
    ]
    assert found.kind == "waits for room"
    assert texts(found) == [
        "ask for 1 instead of 3 in request gpus of claim default/c",
        "default/user ends: devices of a of default/held are free",
        "add a node like a",
    ]


def test_the_fewest_claims_that_suffice_are_told_to_end() -> None:
    held = [
        resource_claim(f"h{n}", allocated=[f"gpu-{n}"], on="a", used_by=[f"user-{n}"])
        for n in range(3)
    ]
    found = told(wants(device_request("gpus", 2)), resource_slice("a", 3), *held)
    assert "default/user-0 and default/user-1 end: devices of a of default/h0 and default/h1" in (
        remedy(found, "end:").text
    )


def test_a_selector_that_says_no_is_named_and_may_be_dropped() -> None:
    found = told(wants(device_request(selectors=["true", MODEL])), resource_slice("a", _plain(2)))
    assert facts(found) == [
        "request gpu of claim default/c asks for 1, 0 of 2 devices would do:"
        f" 2 not selected by {MODEL}"
    ]
    assert found.kind == "misconfigured"
    assert texts(found) == [f"drop {MODEL} of request gpu of claim default/c"]


def _plain(count: int) -> list[Device]:
    return [device(f"gpu-{n}", attributes={"model": "T4"}) for n in range(count)]


def test_a_taint_can_be_tolerated_or_removed_by_its_driver() -> None:
    found = told(wants(), resource_slice("a", [a100("gpu-0", "broken=yes:NoExecute")]))
    assert facts(found) == [
        "request gpu of claim default/c asks for 1, 0 of 1 device would do:"
        " 1 tainted broken=yes:NoExecute"
    ]
    assert found.kind == "waits for others"
    assert texts(found) == [
        "tolerate broken=yes:NoExecute of devices in request gpu of claim default/c",
        "the driver removes broken=yes:NoExecute from its devices of a",
    ]


def test_a_taint_that_is_not_what_is_in_the_way_is_not_waited_for() -> None:
    found = told(
        wants(device_request(selectors=['device.driver == "other"'])),
        resource_slice("a", [a100("gpu-0", "broken:NoSchedule")]),
    )
    assert found.kind == "misconfigured"


def test_counters_capacities_and_attributes_that_are_short() -> None:
    parts = [device(f"part-{n}", consumes={"card": {"memory": "30Gi"}}) for n in range(2)]
    counters = resource_slice("a", name="c", slices=2, counters={"card": {"memory": "40Gi"}})
    pools = (resource_slice("a", parts, slices=2), counters)
    found = told(wants(device_request("parts", 2)), *pools)
    assert facts(found) == ["the requests take 60Gi of card/memory; 40Gi are left"]
    assert texts(found) == ["ask for 1 instead of 2 in request parts of claim default/c"]

    held = resource_claim("held", allocated=["part-0"], on="a")
    found = told(wants(), *pools, held)
    assert facts(found) == [
        "request gpu of claim default/c asks for 1, 0 of 2 devices would do:"
        " 1 in use by default/held, 1 taking 30Gi of card/memory, 10Gi left"
    ]
    assert texts(found) == [
        "default/held gives back devices of a",
        "add a node like a",
    ]

    small = resource_slice("a", [device("gpu-0", capacity={"memory": "40Gi"})])
    found = told(wants(device_request(capacity={"memory": "80Gi"})), small)
    assert facts(found)[0].endswith("1 with 40Gi memory, less than 80Gi")
    found = told(wants(device_request(capacity={"cores": "8"})), small)
    assert facts(found)[0].endswith("1 without capacity cores")
    found = told(wants(match=f"{DRIVER}/numa"), small)
    assert facts(found)[0].endswith(f"1 without attribute {DRIVER}/numa")


def test_a_constraint_that_no_value_satisfies_lists_the_values() -> None:
    devices = [a100(f"gpu-{n}") for n in (0, 2, 3)]
    found = told(
        wants(device_request("gpus", 3), match=f"{DRIVER}/numa"), resource_slice("a", devices)
    )
    assert facts(found) == [
        f"3 devices with equal {DRIVER}/numa are asked for; free are 2 with 1, 1 with 0"
    ]
    assert texts(found) == [
        "ask for 2 instead of 3 in request gpus of claim default/c",
        f"do not ask for equal {DRIVER}/numa of claim default/c",
    ]


def test_requests_that_compete_and_alternatives_that_are_all_short() -> None:
    found = told(wants(device_request("a", 2), device_request("b", 1)), resource_slice("a", 2))
    assert facts(found) == ["requests a and b ask for 3 devices, 2 can serve them"]
    either = device_request("r", first_available=[device_request("x", 4), device_request("y", 3)])
    found = told(wants(either), resource_slice("a", 2))
    assert [text.partition(",")[0] for text in facts(found)] == [
        "request r/x of claim default/c asks for 4",
        "request r/y of claim default/c asks for 3",
    ]


@pytest.mark.parametrize(
    ("slices", "text"),
    [
        (
            [resource_slice("a", 1, slices=2)],
            f"pool {DRIVER}/a is incomplete: 1 of 2 slices of generation 1 are there",
        ),
        (
            [resource_slice("a", [device("x"), device("x")])],
            f"pool {DRIVER}/a is invalid: two devices have one name",
        ),
        (
            [resource_slice("a", [device("x", consumes={"no": {"n": 1}})])],
            f"pool {DRIVER}/a is invalid: device x takes from a counter that is not there",
        ),
    ],
)
def test_pools_that_are_not_usable_say_why(slices: list[Object], text: str) -> None:
    found = told(wants(), *slices)
    assert text in facts(found)
    assert found.kind == "waits for others"


def test_nodes_with_equal_shortfalls_are_counted_and_the_nearest_comes_first() -> None:
    nodes = tuple(node(name) for name in "abcd")
    slices = [resource_slice("a", 1), resource_slice("b", 2), resource_slice("c", 2)]
    held = resource_claim("held", allocated=["gpu-0"], on="c")
    claim = wants(device_request("gpus", 3))
    found = told(claim, *slices, held, nodes=nodes)
    (group,) = found.groups
    assert group.said is not None
    told_of = [
        (fact.text.partition(" of claim default/c ")[2], fact.nodes, fact.node)
        for fact in group.said.facts
    ]
    assert told_of == [
        ("asks for 3, 2 of 2 devices would do", 1, "b"),
        ("asks for 3, 1 of 1 device would do", 1, "a"),
        ("asks for 3, 1 of 2 devices would do: 1 in use by default/held", 1, "c"),
        ("asks for 3 of class gpu, there are no devices", 1, "d"),
    ]


def test_a_class_that_does_not_exist_and_the_one_that_was_meant() -> None:
    found = told(wants(device_request(device_class="gpus")), resource_slice("a", 1))
    assert facts(found) == ["no device class gpus; did you mean gpu?"]
    assert texts(found) == ["request gpu of claim default/c with class gpu"]
    found = told(wants(), resource_slice("a", 1), classes=(device_class("nic"),))
    assert facts(found) == ["no device class gpu; there are nic"]
    assert found.kind == "misconfigured"


def test_claims_that_are_not_there_or_are_used_elsewhere() -> None:
    found = explained(pod("p", claims=["none"]), [node("a")])
    assert found.before is not None
    assert [fact.text for fact in found.before.facts] == ["claim default/none does not exist"]
    found = explained(pod("p", claim_templates=["t"]), [node("a")])
    assert found.before is not None
    assert [fact.text for fact in found.before.facts] == [
        "the claim of template default/t is not made yet"
    ]
    user = pod("user", on="b", claims=["c"])
    shared = resource_claim("c", allocated=["gpu-0"], on="b", used_by=[user])
    found = told(shared, resource_slice("a", 1), pods=(user,))
    assert facts(found) == [
        "claim default/c has devices for nodes with metadata.name In b, used by default/user"
    ]
    assert texts(found) == ["default/user ends: devices of default/c are free"]


def test_extended_resources_served_by_devices() -> None:
    served = device_class("gpu", extended_resource="example.com/gpu")
    wanting = pod("p", requests={"example.com/gpu": 3})
    found = explained(wanting, [node("a")], (), [served, resource_slice("a", 2)])
    assert facts(found) == [
        "request container-0-request-0 of the pod's extended resources asks for 3,"
        " 2 of 2 devices would do"
    ]
    assert texts(found)[0] == "ask for 2 example.com/gpu or less"
    both = pod("p", requests={"example.com/gpu": 1, "example.com/no": 1})
    found = explained(both, [node("a")], (), [served, resource_slice("a", 2)])
    assert "neither the node nor a device class offers example.com/no" in facts(found)


# --- recorded decisions ---------------------------------------------------------------------------


def refused_scenarios() -> Iterator[Scenario]:
    """Recorded scenarios of claims in which no node does: a part of them by default."""
    data = Path(__file__).parents[2] / "parity" / "data" / "dynamicresources.jsonl.gz"
    with gzip.open(data) as lines:
        for number, line in enumerate(lines):
            if number < sized(40):
                (scenario,) = read_scenarios([line])
                assert isinstance(scenario, Scenario)
                if not scenario.in_flight:
                    yield scenario


def test_every_recorded_refusal_has_facts_and_its_remedies_hold() -> None:
    refusals = remedies = 0
    for scenario in refused_scenarios():
        plan = Evaluator().trial(scenario)._plan
        if plan.scheduler_name != scenario.pod.spec.scheduler_name:
            continue
        state = sorted_by_name(scenario.cluster)
        private = PrivateCluster(plan, state, at=0.0)
        wanting = Pod(scenario.pod)
        found = private.inspector.explain(wanting, preemption=False)
        if found.kind in ("error", "fits", "gated"):
            continue
        for one in (refusal for group in found.groups for refusal in group.refusals):
            if one.plugin == "DynamicResources":
                refusals += 1
                assert one.facts, one.reasons
        assert not found.notes
        search = remedies_for(private, wanting)
        assert not search.problems
        for told_remedy in search.remedies:
            changed, pod_ = patched(state, wanting, told_remedy)
            evaluation = PrivateCluster(plan, changed, at=0.0).fits(pod_)
            assert evaluation is not None, told_remedy.text
            remedies += 1
    assert refusals > 10
    assert remedies > 5
