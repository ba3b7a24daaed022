"""Claims on a real API server: devices, rivals, and a scheduler that dies on the way."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.controlplane.admin import ApiFailure, Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import nodes, pod
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import (
    node_of,
    placements,
    wait_for_event,
    wait_until_bound,
)
from tests.integration.mooring_process import NAME, start_mooring

PODS = int(os.environ.get("MOORING_CLAIM_PODS", "40"))
DEVICES = int(os.environ.get("MOORING_CLAIM_DEVICES", "8"))  # of a node
DRIVER = "toy.example.com"
API = "resource.k8s.io/v1"
CLAIM = f"{API}/ResourceClaim"


class ToyDriver:
    """Publishes devices, as the driver of real ones would."""

    def __init__(self, plane: Plane, suffix: str) -> None:
        self._admin = plane.admin
        self._suffix = suffix  # claims of earlier tests hold devices of other pools
        self._names: list[str] = []

    def publish(self, node: str, count: int, **spec: object) -> None:
        devices = [
            {"name": f"toy-{number}", "attributes": {"numa": {"int": number % 2}}}
            for number in range(count)
        ]
        pool = {"name": f"{node}-{self._suffix}", "generation": 1, "resourceSliceCount": 1}
        self._names.append(f"slice-{node}")
        self._create(
            "ResourceSlice",
            f"slice-{node}",
            {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices, **spec},
        )

    def add_class(self, **spec: object) -> None:
        selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        self._create("DeviceClass", "toy", {"selectors": selectors, **spec})

    def _create(self, kind: str, name: str, spec: Object) -> None:
        value = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self._admin.create(value)

    def withdraw(self) -> None:
        for name in self._names:
            self._admin.delete(f"{API}/ResourceSlice", name)
        with suppress(ApiFailure):
            self._admin.delete(f"{API}/DeviceClass", "toy")


@pytest.fixture
def driver(control_plane: Plane, namespace: str) -> Iterator[ToyDriver]:
    toys = ToyDriver(control_plane, namespace)
    yield toys
    toys.withdraw()


def claim(name: str, namespace: str, count: int = 1) -> Object:
    exactly = {"deviceClassName": "toy", "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "toy", "exactly": exactly}]}},
    }


def user_of(name: str, namespace: str) -> Object:
    value = pod(name, namespace=namespace, scheduler=NAME, cpu="10m")
    value["spec"]["resourceClaims"] = [{"name": "toy", "resourceClaimName": name}]
    return value


def from_template(name: str, namespace: str) -> Object:
    value = pod(name, namespace=namespace, scheduler=NAME, cpu="10m")
    value["spec"]["resourceClaims"] = [{"name": "toy", "resourceClaimTemplateName": "toy"}]
    return value


def make_claims(plane: Plane, namespace: str, names: list[str]) -> None:
    """What the claim controller does for pods of a template; the real server runs none."""
    for name in names:
        value = claim(name, namespace)
        uid = plane.admin.get("Pod", name, namespace)["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        value["metadata"]["ownerReferences"] = [owner]
        value["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "toy"}
        plane.admin.create(value)
        made = {"resourceClaimStatuses": [{"name": "toy", "resourceClaimName": name}]}
        plane.admin.patch("Pod", name, {"status": made}, namespace, subresource="status")


@contextmanager
def rival(plane: Plane, namespace: str) -> Iterator[None]:
    """Something else that changes the same claims all the time."""
    is_over = threading.Event()

    def write() -> None:
        turn = 0
        while not is_over.is_set():
            for value in plane.admin.list(CLAIM, namespace):
                turn += 1
                change = {"metadata": {"labels": {"turn": str(turn)}}}
                with suppress(ApiFailure):
                    plane.admin.patch(CLAIM, value["metadata"]["name"], change, namespace)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def devices_in_use(plane: Plane, namespace: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for value in plane.admin.list(CLAIM, namespace):
        allocation = value.get("status", {}).get("allocation") or {"devices": {"results": []}}
        for one in allocation["devices"]["results"]:
            found[f"{one['pool']}/{one['device']}"] += 1
    return found


def assert_each_has_its_own_device(plane: Plane, namespace: str, names: list[str]) -> None:
    in_use = devices_in_use(plane, namespace)
    assert (len(in_use), set(in_use.values())) == (len(names), {1})
    for value in plane.admin.list(CLAIM, namespace):
        name = value["metadata"]["name"]
        assert [one["name"] for one in value["status"]["reservedFor"]] == [name]
        assert value["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        (term,) = value["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [node_of(plane, namespace, name)]


def add_devices(plane: Plane, driver: ToyDriver, size: int) -> None:
    plane.admin.create_many(nodes(size))
    driver.add_class()
    for number in range(size):
        driver.publish(f"node-{number:05}", DEVICES)


def with_devices(plane: Plane, namespace: str, driver: ToyDriver, count: int) -> list[str]:
    """Nodes with hardly more devices than claims; the names of claims, and of pods to come."""
    add_devices(plane, driver, -(-count // DEVICES) + 1)
    names = [f"p{number:03}" for number in range(count)]
    plane.admin.create_many(claim(name, namespace) for name in names)
    return names


def test_no_device_is_given_twice_whatever_happens(
    control_plane: Plane, namespace: str, driver: ToyDriver
) -> None:
    """Pods of a template; the size of all: MOORING_CLAIM_PODS=500 MOORING_CLAIM_DEVICES=48."""
    add_devices(control_plane, driver, -(-PODS // 8))
    names = [f"p{number:03}" for number in range(PODS)]
    scheduler = start_mooring(control_plane)
    with rival(control_plane, namespace):
        control_plane.admin.create_many(from_template(name, namespace) for name in names)
        make_claims(control_plane, namespace, names[: PODS // 2])
        wait_until(
            lambda: sum(map(bool, placements(control_plane, namespace).values())) > PODS // 3,
            what="a third of the pods is bound",
        )
        scheduler.process.kill()
        make_claims(control_plane, namespace, names[PODS // 2 :])
        start_mooring(control_plane, name="second")
        wait_until_bound(control_plane, namespace, *names, timeout=120)
    assert_each_has_its_own_device(control_plane, namespace, names)


def test_lost_replies_neither_lose_a_device_nor_give_it_twice(
    control_plane: ControlPlane, namespace: str, driver: ToyDriver
) -> None:
    names = with_devices(control_plane, namespace, driver, PODS // 2)
    proxy = control_plane.proxy(seed=5)
    proxy.faults.cut_claim_replies = 0.3
    proxy.faults.cut_bind_replies = 0.2
    start_mooring(control_plane, server=proxy.url)
    control_plane.admin.create_many(user_of(name, namespace) for name in names)
    wait_until_bound(control_plane, namespace, *names, timeout=120)
    assert proxy.counters["claim replies cut"] > 3
    assert_each_has_its_own_device(control_plane, namespace, names)


def test_kube_scheduler_can_take_over_midway_and_give_back(
    control_plane: Plane, namespace: str, driver: ToyDriver
) -> None:
    names = with_devices(control_plane, namespace, driver, PODS)
    profile = {"profiles": [{"schedulerName": "default-scheduler"}]}
    thirds = [names[place::3] for place in range(3)]

    def bound() -> int:
        return sum(map(bool, placements(control_plane, namespace).values()))

    def add(some: list[str], until: int) -> None:
        pods = [user_of(name, namespace) for name in some]
        for one in pods:
            one["spec"]["schedulerName"] = "default-scheduler"
        control_plane.admin.create_many(pods)
        wait_until(lambda: bound() >= until, what=f"{until} pods are bound", timeout=90)

    ours = start_mooring(control_plane, config=profile)
    add(thirds[0], len(thirds[0]) // 2)
    ours.process.kill()  # in the middle of a batch
    theirs = control_plane.kube_scheduler()
    add(thirds[1], len(thirds[0]) + len(thirds[1]) // 2)
    theirs.kill()
    start_mooring(control_plane, config=profile, name="again")
    add(thirds[2], len(names))
    assert_each_has_its_own_device(control_plane, namespace, names)


def test_a_device_that_becomes_free_is_given_to_the_pod_that_waits(
    control_plane: Plane, namespace: str, driver: ToyDriver
) -> None:
    admin = control_plane.admin
    admin.create_many(nodes(1))
    driver.add_class()
    for name in ("first", "second"):
        admin.create(claim(name, namespace))
    start_mooring(control_plane)
    admin.create(user_of("first", namespace))
    told = wait_for_event(control_plane, namespace, "first", "FailedScheduling", "cannot allocate")
    assert told["note"].startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    driver.publish("node-00000", 1)  # a slice is all that was missing
    wait_until_bound(control_plane, namespace, "first")
    admin.create(user_of("second", namespace))
    wait_for_event(control_plane, namespace, "second", "FailedScheduling", "cannot allocate")
    released = {"status": {"allocation": None, "reservedFor": None}}
    admin.patch(CLAIM, "first", released, namespace, subresource="status")
    wait_until_bound(control_plane, namespace, "second")
    assert set(devices_in_use(control_plane, namespace).values()) == {1}


def test_an_extended_resource_gets_a_claim_of_its_own(
    control_plane: Plane, namespace: str, driver: ToyDriver
) -> None:
    admin = control_plane.admin
    admin.create_many(nodes(2))
    driver.add_class(extendedResourceName="example.com/toy")
    driver.publish("node-00001", 2)
    start_mooring(control_plane)
    wishing = pod("wishing", namespace=namespace, scheduler=NAME, cpu="10m")
    resources = wishing["spec"]["containers"][0]["resources"]
    for kind in ("requests", "limits"):
        resources.setdefault(kind, {})["example.com/toy"] = "2"
    admin.create(wishing)
    wait_until_bound(control_plane, namespace, "wishing")
    assert node_of(control_plane, namespace, "wishing") == "node-00001"
    status = admin.get("Pod", "wishing", namespace)["status"]["extendedResourceClaimStatus"]
    made = admin.get(CLAIM, status["resourceClaimName"], namespace)
    assert len(made["status"]["allocation"]["devices"]["results"]) == 2
    assert status["requestMappings"] == [
        {
            "containerName": wishing["spec"]["containers"][0]["name"],
            "resourceName": "example.com/toy",
            "requestName": "container-0-request-1",
        }
    ]
