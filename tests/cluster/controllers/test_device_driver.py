from __future__ import annotations

import pytest
from tests.cluster.virtual_cluster import NODES, VirtualCluster, names, virtual_cluster

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.device_driver import CLASSES, DRIVER, SLICES
from mooring.cluster.simulated_devices import DEVICES, read_devices


def slices(cluster: VirtualCluster) -> list[Object]:
    return cluster.all(SLICES)


def annotate(cluster: VirtualCluster, node: str, text: str) -> None:
    def change(value: Object) -> None:
        value["metadata"].setdefault("annotations", {})[DEVICES] = text

    cluster.verbs.modify(NODES, "", node, change)
    cluster.settle()


def devices(cluster: VirtualCluster) -> list[str]:
    return [device["name"] for one in slices(cluster) for device in one["spec"]["devices"]]


def test_publishes_the_devices_of_a_node_and_their_class() -> None:
    with virtual_cluster() as cluster:
        text = "gpu=2:model=a100:memory=80Gi:nvlink=true:cores=108"
        cluster.nodes(1, annotations={DEVICES: text})
        cluster.settle()
        [one] = slices(cluster)
        spec = one["spec"]
        assert (spec["driver"], spec["nodeName"]) == (DRIVER, "n0")
        assert spec["pool"] == {"name": "n0", "generation": 1, "resourceSliceCount": 1}
        assert spec["devices"][1] == {
            "name": "gpu-1",
            "attributes": {
                "type": {"string": "gpu"},
                "index": {"int": 1},
                "model": {"string": "a100"},
                "nvlink": {"bool": True},
                "cores": {"int": 108},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        [found] = cluster.all(CLASSES)
        assert found["metadata"]["name"] == "gpu"


def test_a_change_is_published_as_a_new_generation() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.settle()
        assert slices(cluster) == []
        annotate(cluster, "n0", "gpu=2")
        annotate(cluster, "n0", "gpu=1; nic=2")
        assert devices(cluster) == ["gpu-0", "nic-0", "nic-1"]
        assert slices(cluster)[0]["spec"]["pool"]["generation"] == 2
        assert names(cluster.all(CLASSES)) == ["gpu", "nic"]
        annotate(cluster, "n0", "")
        assert slices(cluster) == []


def test_many_devices_are_several_slices_of_one_pool() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, annotations={DEVICES: "gpu=300"})
        cluster.settle()
        assert sorted(len(one["spec"]["devices"]) for one in slices(cluster)) == [44, 128, 128]
        assert {one["spec"]["pool"]["resourceSliceCount"] for one in slices(cluster)} == {3}


def test_slices_go_with_their_node_and_come_back_if_deleted() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(2, annotations={DEVICES: "gpu=1"})
        cluster.settle()
        [first, _] = slices(cluster)
        cluster.verbs.delete(SLICES, "", first["metadata"]["name"])
        cluster.settle()
        assert len(slices(cluster)) == 2
        cluster.verbs.delete(NODES, "", "n0")
        cluster.advance(60)
        assert [one["spec"]["nodeName"] for one in slices(cluster)] == ["n1"]


def test_a_wrong_annotation_is_an_event_and_changes_nothing() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, annotations={DEVICES: "gpu=2"})
        cluster.settle()
        annotate(cluster, "n0", "gpu=lots")
        assert devices(cluster) == ["gpu-0", "gpu-1"]
        [event] = cluster.events("InvalidDevices")
        assert "expected gpu=1 to gpu=1024, got 'gpu=lots'" in event["message"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("GPU=1", "expected a type in lower case"),
        ("gpu", "expected gpu=1"),
        ("gpu=0", "expected gpu=1"),
        ("gpu=2000", "expected gpu=1"),
        ("gpu=1:model", "expected an attribute such as model=a100"),
        ("gpu=1; gpu=2", "gpu is named twice"),
        ("gpu=1000; nic=1000", "at most 1024 devices"),
    ],
)
def test_what_is_wrong_with_an_annotation_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_devices(text)
