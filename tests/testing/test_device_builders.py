"""Builders of devices and claims: what they stand for, by what a scheduler makes of them."""

from mooring.api.resource import ResourceClaim
from mooring.testing import (
    Simulation,
    device,
    device_class,
    device_request,
    node,
    pod,
    resource_claim,
    resource_claim_template,
    resource_slice,
)
from mooring.testing.devices import DRIVER


def devices_of(sim: Simulation, name: str) -> list[str]:
    claim = sim.cluster.find(ResourceClaim, name, "default")
    assert claim is not None
    results = claim.allocation.devices.results if claim.allocation is not None else ()
    return [f"{one.request} {one.pool}/{one.device}" for one in results]


def test_a_claim_gets_devices_by_selector_constraint_and_toleration() -> None:
    devices = [
        device("gpu-0", attributes={"model": "A100", "numa": 0, "healthy": False}),
        device("gpu-1", attributes={"model": "A100", "numa": 0, "healthy": True}),
        device("gpu-2", attributes={"model": "A100", "numa": 1}, taints=["spare:NoSchedule"]),
        device("gpu-3", attributes={"model": "A100", "numa": 1}),
        device("gpu-4", attributes={"model": "T4", "numa": 0}),
    ]
    a100 = device_request("a", 2, selectors=[f'device.attributes["{DRIVER}"].model == "A100"'])
    spare = device_request("a", 2, device_class="all", tolerates=["spare"], selectors=["true"])
    with Simulation() as sim:
        sim.apply(device_class("gpu"), device_class("all"), node("n"), resource_slice("n", devices))
        sim.apply(resource_claim("one", a100, match=f"{DRIVER}/numa"))
        sim.apply(resource_claim("two", spare, distinct=f"{DRIVER}/numa"))
        sim.schedule(pod("p", claims=["one"]), pod("q", claims=["two"]))
        assert devices_of(sim, "one") == ["a n/gpu-0", "a n/gpu-1"]
        assert devices_of(sim, "two") == ["a n/gpu-2", "a n/gpu-4"]


def test_every_pod_gets_a_claim_from_the_template_and_gives_it_back() -> None:
    with Simulation() as sim:
        sim.apply(device_class("gpu"), node("n"), resource_slice("n", 2))
        sim.apply(resource_claim_template("gpu"))
        pods = [pod(f"p{number}", claim_templates=["gpu"]) for number in range(3)]
        sim.schedule(*pods)
        assert sim.placements() == {"p0": "n", "p1": "n", "p2": ""}
        assert devices_of(sim, "p0-gpu") == ["gpu n/gpu-0"]
        sim.delete(pods[0])
        sim.settle()
        sim.advance(10)
        assert sim.node_of("p2") == "n"
        assert devices_of(sim, "p2-gpu") == ["gpu n/gpu-0"]
        assert sim.cluster.find(ResourceClaim, "p0-gpu", "default") is None


def test_a_shared_claim_is_free_when_its_last_pod_is_gone() -> None:
    with Simulation() as sim:
        sim.apply(device_class("gpu"), node("n"), resource_slice("n", 1), resource_claim("c"))
        pods = [pod(name, claims=["c"]) for name in "pq"]
        sim.schedule(*pods)
        sim.delete(pods[0])
        assert devices_of(sim, "c") == ["gpu n/gpu-0"]
        sim.delete(pods[1])
        assert devices_of(sim, "c") == []


def test_alternatives_counters_shares_and_all() -> None:
    parts = [device(f"part-{i}", consumes={"card": {"memory": "20Gi"}}) for i in range(3)]
    nic = device("nic", capacity={"bandwidth": "10"}, shared=True)
    half = device_request("nic", device_class="nic", capacity={"bandwidth": 5})
    again = device_request("again", device_class="nic", capacity={"bandwidth": 5})
    first = device_request(
        "any", first_available=[device_request("many", 3), device_request("few", 2)]
    )
    with Simulation() as sim:
        sim.apply(
            device_class("gpu", f'device.driver == "{DRIVER}"'),
            device_class("nic", 'device.driver == "nic"', extended_resource="example.com/nic"),
            node("n"),
            resource_slice("n", parts, slices=2),
            resource_slice("n", name="card", slices=2, counters={"card": {"memory": "50Gi"}}),
            resource_slice("", [nic], driver="nic"),
            resource_claim("c", first),
            resource_claim("half", half, again),
            resource_claim("every", device_request("every", "All", admin=True)),
        )
        sim.schedule(pod("p", claims=["c", "half"]), pod("q", claims=["every"]))
        assert devices_of(sim, "c") == ["any/few n/part-0", "any/few n/part-1"]
        assert devices_of(sim, "half") == ["nic shared/nic", "again shared/nic"]
        sim.schedule(pod("r", requests={"example.com/nic": 1}))
        assert not sim.node_of("r")


def test_an_allocated_claim_is_used_where_its_devices_are() -> None:
    with Simulation() as sim:
        sim.apply(device_class("gpu"), node("a"), node("b"))
        sim.apply(resource_slice("a", 1), resource_slice("b", 1))
        sim.apply(resource_claim("c", allocated=["gpu-0"], on="b", used_by=["other"]))
        sim.schedule(pod("p", claims=["c"]))
        assert sim.node_of("p") == "b"
