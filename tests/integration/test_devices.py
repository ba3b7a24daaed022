"""Claims on a real API server: devices, rivals, and a scheduler that dies on the way."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.controlplane.admin import ApiFailure, Object
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
DEVICES = 8  # of a node
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


def test_no_device_is_given_twice_whatever_happens(
    control_plane: Plane, namespace: str, driver: ToyDriver
) -> None:
    admin = control_plane.admin
    count = -(-PODS // DEVICES) + 1
    admin.create_many(nodes(count))
    driver.add_class()
    for number in range(count):
        driver.publish(f"node-{number:05}", DEVICES)
    names = [f"p{number:03}" for number in range(PODS)]
    admin.create_many(claim(name, namespace) for name in names)
    scheduler = start_mooring(control_plane)
    with rival(control_plane, namespace):
        admin.create_many(user_of(name, namespace) for name in names)
        wait_until(
            lambda: sum(map(bool, placements(control_plane, namespace).values())) > PODS // 3,
            what="a third of the pods is bound",
        )
        scheduler.process.kill()
        start_mooring(control_plane, name="second")
        wait_until_bound(control_plane, namespace, *names, timeout=120)
    in_use = devices_in_use(control_plane, namespace)
    assert (len(in_use), set(in_use.values())) == (PODS, {1})
    for value in admin.list(CLAIM, namespace):
        name, status = value["metadata"]["name"], value["status"]
        assert [one["name"] for one in status["reservedFor"]] == [name]
        assert value["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        (term,) = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [node_of(control_plane, namespace, name)]


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
