from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import PODS, VirtualCluster, names, pod, virtual_cluster

from mooring.cluster.apiserver.resources import CLAIMS
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.persistent_volumes import SELECTED_NODE, SIMULATED, VOLUMES


def claim(name: str = "data", *, size: str = "1Gi", of: str = "", **spec: Any) -> Object:
    body = {"accessModes": ["ReadWriteOnce"], "storageClassName": of, **spec}
    body["resources"] = {"requests": {"storage": size}}
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": body,
    }


def volume(name: str, size: str, *, of: str = "", **spec: Any) -> Object:
    body = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": of,
        "hostPath": {"path": "/data"},
        **spec,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": body,
    }


def storage_class(name: str, provisioner: str, *, waits: bool = False) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def phases(cluster: VirtualCluster) -> dict[str, str]:
    return {
        value["metadata"]["name"]: value["status"]["phase"]
        for value in (*cluster.all(CLAIMS), *cluster.all(VOLUMES))
    }


def test_binds_the_smallest_volume_that_will_do() -> None:
    with virtual_cluster() as cluster:
        cluster.create(volume("large", "10Gi"), volume("small", "500Mi"), volume("right", "2Gi"))
        cluster.create(claim())
        cluster.settle()
        assert phases(cluster) == {
            "data": "Bound",
            "large": "Available",
            "small": "Available",
            "right": "Bound",
        }
        found = cluster.get(CLAIMS, "data")
        assert found["spec"]["volumeName"] == "right"
        assert found["status"]["capacity"] == {"storage": "2Gi"}
        assert found["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        reference = cluster.get(VOLUMES, "right")["spec"]["claimRef"]
        assert reference["uid"] == found["metadata"]["uid"]


def test_waits_for_a_volume_that_will_do() -> None:
    with virtual_cluster() as cluster:
        cluster.create(claim(selector={"matchLabels": {"tier": "gold"}}), volume("plain", "5Gi"))
        cluster.settle()
        assert phases(cluster)["data"] == "Pending"
        gold = volume("gold", "5Gi")
        gold["metadata"]["labels"] = {"tier": "gold"}
        cluster.create(gold)
        cluster.settle()
        assert cluster.get(CLAIMS, "data")["spec"]["volumeName"] == "gold"


def test_keeps_a_volume_for_the_claim_it_is_promised_to() -> None:
    with virtual_cluster() as cluster:
        promise = {"namespace": "default", "name": "later"}
        cluster.create(volume("kept", "1Gi", claimRef=promise), claim("other"))
        cluster.settle()
        assert phases(cluster) == {"other": "Pending", "kept": "Available"}
        cluster.create(claim("later"))
        cluster.settle()
        assert phases(cluster) == {"other": "Pending", "later": "Bound", "kept": "Bound"}


def test_makes_a_volume_when_a_class_says_so() -> None:
    with virtual_cluster() as cluster:
        cluster.create(storage_class("fast", SIMULATED), claim(of="fast"))
        cluster.settle()
        [made] = cluster.all(VOLUMES)
        assert made["metadata"]["name"] == f"pvc-{cluster.get(CLAIMS, 'data')['metadata']['uid']}"
        assert made["status"]["phase"] == "Bound"
        assert phases(cluster)["data"] == "Bound"
        cluster.verbs.delete(CLAIMS, "default", "data")
        cluster.settle()
        assert cluster.all(VOLUMES) == []


@pytest.mark.parametrize("is_generous", [True, False])
def test_makes_volumes_of_other_provisioners_only_if_asked_to(is_generous: bool) -> None:
    with virtual_cluster(provision_any=is_generous) as cluster:
        cluster.create(storage_class("cloud", "disks.example.com"), claim(of="cloud"))
        cluster.create(
            storage_class("local", "kubernetes.io/no-provisioner"), claim("l", of="local")
        )
        cluster.settle()
        assert phases(cluster)["data"] == ("Bound" if is_generous else "Pending")
        assert phases(cluster)["l"] == "Pending"


def test_leaves_a_claim_that_waits_for_a_pod_to_the_scheduler() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(zones=("a",))
        cluster.create(storage_class("late", SIMULATED, waits=True), claim(of="late"))
        cluster.create(volume("there", "5Gi", of="late"))
        cluster.advance(60)
        assert phases(cluster) == {"data": "Pending", "there": "Available"}

        def select(value: Object) -> None:
            value["metadata"]["annotations"] = {SELECTED_NODE: "n0"}

        cluster.verbs.modify(CLAIMS, "default", "data", select)
        cluster.settle()
        found = cluster.get(CLAIMS, "data")
        assert found["status"]["phase"] == "Bound"
        made = cluster.get(VOLUMES, found["spec"]["volumeName"])
        [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        [test] = term["matchExpressions"]
        assert (test["key"], test["values"]) == ("topology.kubernetes.io/zone", ["a"])
        for key in ("volume.kubernetes.io/storage-provisioner", SELECTED_NODE):
            assert key in found["metadata"]["annotations"]


def test_keeps_the_promise_of_the_scheduler() -> None:
    with virtual_cluster() as cluster:
        cluster.create(storage_class("late", "kubernetes.io/no-provisioner", waits=True))
        cluster.create(volume("disk", "5Gi", of="late"), claim(of="late"))
        cluster.settle()
        asked = cluster.get(CLAIMS, "data")["metadata"]

        def promise(value: Object) -> None:
            value["spec"]["claimRef"] = {
                "namespace": "default",
                "name": "data",
                "uid": asked["uid"],
            }

        cluster.verbs.modify(VOLUMES, "", "disk", promise)
        cluster.settle()
        assert phases(cluster) == {"data": "Bound", "disk": "Bound"}


def test_gives_a_volume_up_when_its_claim_is_gone() -> None:
    with virtual_cluster() as cluster:
        cluster.create(volume("disk", "5Gi", persistentVolumeReclaimPolicy="Retain"), claim())
        cluster.settle()
        cluster.verbs.delete(CLAIMS, "default", "data")
        cluster.settle()
        assert phases(cluster) == {"disk": "Released"}
        cluster.create(claim())
        cluster.settle()
        assert phases(cluster) == {"data": "Pending", "disk": "Released"}


def test_calls_a_claim_lost_whose_volume_is_gone() -> None:
    with virtual_cluster() as cluster:
        cluster.create(volume("disk", "5Gi"), claim())
        cluster.settle()
        cluster.verbs.delete(VOLUMES, "", "disk")
        cluster.settle()
        assert phases(cluster) == {"data": "Lost"}


def test_makes_the_claims_that_a_pod_describes_itself() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(storage_class("fast", SIMULATED))
        template = {"spec": claim(of="fast")["spec"]}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        cluster.create(pod("p", volumes=volumes))
        cluster.settle()
        [made] = cluster.all(CLAIMS)
        assert made["metadata"]["name"] == "p-scratch"
        assert made["status"]["phase"] == "Bound"
        cluster.verbs.delete(PODS, "default", "p", grace=0)
        cluster.settle()
        assert names(cluster.all(CLAIMS)) == names(cluster.all(VOLUMES)) == []


@pytest.mark.parametrize(
    "unfit",
    [
        volume("v", "2Gi", of="fast"),
        volume("v", "2Gi", volumeMode="Block"),
        volume("v", "2Gi", accessModes=["ReadOnlyMany"]),
    ],
    ids=["class", "mode", "access"],
)
def test_leaves_a_volume_that_will_not_do(unfit: Object) -> None:
    with virtual_cluster() as cluster:
        cluster.create(unfit, claim())
        cluster.settle()
        assert phases(cluster) == {"data": "Pending", "v": "Available"}


def test_finds_a_volume_by_its_labels() -> None:
    with virtual_cluster() as cluster:
        cluster.create(volume("plain", "1Gi"), volume("labelled", "5Gi"))

        def label(value: Object) -> None:
            value["metadata"]["labels"] = {"disk": "ssd"}

        cluster.verbs.modify(VOLUMES, "", "labelled", label)
        cluster.create(claim(selector={"matchLabels": {"disk": "ssd"}}))
        cluster.settle()
        assert phases(cluster) == {"data": "Bound", "labelled": "Bound", "plain": "Available"}


@pytest.mark.parametrize("node", ["bare", "gone"])
def test_makes_a_volume_for_every_node_if_it_can_not_tell_where_the_pod_is(node: str) -> None:
    with virtual_cluster() as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
        cluster.create(storage_class("local", SIMULATED, waits=True))
        waiting = claim(of="local")
        waiting["metadata"]["annotations"] = {SELECTED_NODE: node}
        cluster.create(waiting)
        cluster.settle()
        [made] = cluster.all(VOLUMES)
        assert made["status"]["phase"] == "Bound"
        assert "nodeAffinity" not in made["spec"]
