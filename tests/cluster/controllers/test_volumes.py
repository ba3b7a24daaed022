from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.stage import PODS, Stage, names, pod, stage

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.volumes import CLAIMS, SELECTED_NODE, SIMULATED, VOLUMES


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


def phases(play: Stage) -> dict[str, str]:
    return {
        value["metadata"]["name"]: value["status"]["phase"]
        for value in (*play.all(CLAIMS), *play.all(VOLUMES))
    }


def test_binds_the_smallest_volume_that_will_do() -> None:
    with stage() as play:
        play.create(volume("large", "10Gi"), volume("small", "500Mi"), volume("right", "2Gi"))
        play.create(claim())
        play.settle()
        assert phases(play) == {
            "data": "Bound",
            "large": "Available",
            "small": "Available",
            "right": "Bound",
        }
        found = play.get(CLAIMS, "data")
        assert found["spec"]["volumeName"] == "right"
        assert found["status"]["capacity"] == {"storage": "2Gi"}
        assert found["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        reference = play.get(VOLUMES, "right")["spec"]["claimRef"]
        assert reference["uid"] == found["metadata"]["uid"]


def test_waits_for_a_volume_that_will_do() -> None:
    with stage() as play:
        play.create(claim(selector={"matchLabels": {"tier": "gold"}}), volume("plain", "5Gi"))
        play.settle()
        assert phases(play)["data"] == "Pending"
        gold = volume("gold", "5Gi")
        gold["metadata"]["labels"] = {"tier": "gold"}
        play.create(gold)
        play.settle()
        assert play.get(CLAIMS, "data")["spec"]["volumeName"] == "gold"


def test_keeps_a_volume_for_the_claim_it_is_promised_to() -> None:
    with stage() as play:
        promise = {"namespace": "default", "name": "later"}
        play.create(volume("kept", "1Gi", claimRef=promise), claim("other"))
        play.settle()
        assert phases(play) == {"other": "Pending", "kept": "Available"}
        play.create(claim("later"))
        play.settle()
        assert phases(play) == {"other": "Pending", "later": "Bound", "kept": "Bound"}


def test_makes_a_volume_when_a_class_says_so() -> None:
    with stage() as play:
        play.create(storage_class("fast", SIMULATED), claim(of="fast"))
        play.settle()
        [made] = play.all(VOLUMES)
        assert made["metadata"]["name"] == f"pvc-{play.get(CLAIMS, 'data')['metadata']['uid']}"
        assert made["status"]["phase"] == "Bound"
        assert phases(play)["data"] == "Bound"
        play.verbs.delete(CLAIMS, "default", "data")
        play.settle()
        assert play.all(VOLUMES) == []


@pytest.mark.parametrize("is_generous", [True, False])
def test_makes_volumes_of_other_provisioners_only_if_asked_to(is_generous: bool) -> None:
    with stage(provision_any=is_generous) as play:
        play.create(storage_class("cloud", "disks.example.com"), claim(of="cloud"))
        play.create(storage_class("local", "kubernetes.io/no-provisioner"), claim("l", of="local"))
        play.settle()
        assert phases(play)["data"] == ("Bound" if is_generous else "Pending")
        assert phases(play)["l"] == "Pending"


def test_leaves_a_claim_that_waits_for_a_pod_to_the_scheduler() -> None:
    with stage() as play:
        play.nodes(zones=("a",))
        play.create(storage_class("late", SIMULATED, waits=True), claim(of="late"))
        play.create(volume("there", "5Gi", of="late"))
        play.advance(60)
        assert phases(play) == {"data": "Pending", "there": "Available"}

        def select(value: Object) -> None:
            value["metadata"]["annotations"] = {SELECTED_NODE: "n0"}

        play.verbs.modify(CLAIMS, "default", "data", select)
        play.settle()
        found = play.get(CLAIMS, "data")
        assert found["status"]["phase"] == "Bound"
        made = play.get(VOLUMES, found["spec"]["volumeName"])
        [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        [test] = term["matchExpressions"]
        assert (test["key"], test["values"]) == ("topology.kubernetes.io/zone", ["a"])
        for key in ("volume.kubernetes.io/storage-provisioner", SELECTED_NODE):
            assert key in found["metadata"]["annotations"]


def test_keeps_the_promise_of_the_scheduler() -> None:
    with stage() as play:
        play.create(storage_class("late", "kubernetes.io/no-provisioner", waits=True))
        play.create(volume("disk", "5Gi", of="late"), claim(of="late"))
        play.settle()
        asked = play.get(CLAIMS, "data")["metadata"]

        def promise(value: Object) -> None:
            value["spec"]["claimRef"] = {
                "namespace": "default",
                "name": "data",
                "uid": asked["uid"],
            }

        play.verbs.modify(VOLUMES, "", "disk", promise)
        play.settle()
        assert phases(play) == {"data": "Bound", "disk": "Bound"}


def test_gives_a_volume_up_when_its_claim_is_gone() -> None:
    with stage() as play:
        play.create(volume("disk", "5Gi", persistentVolumeReclaimPolicy="Retain"), claim())
        play.settle()
        play.verbs.delete(CLAIMS, "default", "data")
        play.settle()
        assert phases(play) == {"disk": "Released"}
        play.create(claim())
        play.settle()
        assert phases(play) == {"data": "Pending", "disk": "Released"}


def test_calls_a_claim_lost_whose_volume_is_gone() -> None:
    with stage() as play:
        play.create(volume("disk", "5Gi"), claim())
        play.settle()
        play.verbs.delete(VOLUMES, "", "disk")
        play.settle()
        assert phases(play) == {"data": "Lost"}


def test_makes_the_claims_that_a_pod_describes_itself() -> None:
    with stage() as play:
        play.nodes()
        play.create(storage_class("fast", SIMULATED))
        template = {"spec": claim(of="fast")["spec"]}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        play.create(pod("p", volumes=volumes))
        play.settle()
        [made] = play.all(CLAIMS)
        assert made["metadata"]["name"] == "p-scratch"
        assert made["status"]["phase"] == "Bound"
        play.verbs.delete(PODS, "default", "p", grace=0)
        play.settle()
        assert names(play.all(CLAIMS)) == names(play.all(VOLUMES)) == []
