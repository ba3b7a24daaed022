"""What would make room on a node: which pods would have to go, and how a pod asks for less."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

import mooring.framework as fw
from mooring.api import codec, core
from mooring.api.meta import OwnerReference
from mooring.cache.pods import Pod
from mooring.plugins.noderesources.shortages import asking_for, cheapest, in_one_unit, text_of
from mooring.testing import pod

ONE_CPU = {"cpu": 1000}


def first(*pods: fw.Pod, needs: dict[str, int] | None = None) -> list[str]:
    return [one.name for one in next(iter(cheapest(pods, needs or ONE_CPU)))]


def daemon(name: str, cpu: int) -> fw.Pod:
    owner = OwnerReference(kind="DaemonSet", name="d", controller=True)
    api = pod(name, cpu=cpu).api
    meta = structs.replace(api.metadata, owner_references=(owner,))
    return Pod(structs.replace(api, metadata=meta))


def test_the_least_important_pod_that_frees_enough_goes() -> None:
    assert first(pod("vip", cpu=1, priority=9), pod("low", cpu=2, priority=1)) == ["low"]
    assert first(pod("large", cpu=3), pod("small", cpu=1)) == ["small"]
    assert first(pod("tiny", cpu="100m"), pod("enough", cpu=1)) == ["enough"]


def test_several_unimportant_pods_go_before_one_that_is_important() -> None:
    halves = [pod(name, cpu="500m", priority=1) for name in ("a", "b")]
    assert first(pod("vip", cpu=1, priority=9), *halves) == ["a", "b"]


def test_daemons_come_back_so_others_go_first() -> None:
    assert first(daemon("daemon", 1), pod("vip", cpu=1, priority=9)) == ["vip"]


def test_a_pod_that_is_leaving_already_is_waited_for() -> None:
    assert first(pod("low", cpu=1), pod("leaving", cpu=1, priority=9, deleting=True)) == ["leaving"]


def test_nobody_goes_if_all_together_free_too_little() -> None:
    assert list(cheapest([pod("a", cpu="900m")], ONE_CPU)) == []
    assert first(pod("a"), needs={"pods": 1}) == ["a"]


def container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [container("a", "3"), container("b", "2")]},
        {"containers": [container("a", "1")], "initContainers": [container("i", "4")]},
        {
            "containers": [container("a", "2")],
            "initContainers": [container("i", "3", restartPolicy="Always"), container("j", "4")],
        },
        {"containers": [container("a", "2")], "overhead": {"cpu": "500m"}},
        {"containers": [container("a", "2")], "resources": {"requests": {"cpu": "4"}}},
    ],
)
def test_a_pod_asks_for_less_whatever_its_containers(spec: dict[str, Any]) -> None:
    before = codec.convert({"metadata": {"name": "p"}, "spec": spec}, core.Pod)
    assert Pod(before).requests("cpu") > 1500
    assert Pod(asking_for(before, "cpu", 1500)).requests("cpu") == 1500


def test_amounts_read_as_people_write_them() -> None:
    assert text_of("cpu", 1500) == "1500m"
    assert text_of("memory", 4 * 2**30 - 1) == "4095Mi"
    assert text_of("memory", 4 * 2**30 - 1, up=True) == "4Gi"
    assert text_of("example.com/gpu", 2) == "2"


@pytest.mark.parametrize(
    ("resource", "amounts", "texts"),
    [
        ("cpu", (1000, 1500), ["1", "1.5"]),
        ("cpu", (250, 500), ["250m", "500m"]),
        ("cpu", (250, 10_000), ["0.25", "10"]),
        ("cpu", (2000, 1875, 125), ["2000m", "1875m", "125m"]),
        ("cpu", (0, 1500), ["0", "1500m"]),
        ("cpu", (0, 0), ["0", "0"]),
        ("memory", (2**29, 2**31), ["0.5Gi", "2Gi"]),
        ("memory", (100 * 2**20, 2**31), ["100Mi", "2048Mi"]),
        ("example.com/gpu", (1, 0, 2), ["1", "0", "2"]),
    ],
)
def test_the_amounts_of_a_sentence_have_one_unit(
    resource: str, amounts: tuple[int, ...], texts: list[str]
) -> None:
    assert in_one_unit(resource, *amounts) == texts
