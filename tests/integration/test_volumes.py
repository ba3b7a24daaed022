"""Claims that wait for a pod: chosen volumes and nodes are written, and nothing else is touched."""

from __future__ import annotations

from tests.controlplane.admin import Object
from tests.controlplane.fixtures import on_both
from tests.controlplane.objects import nodes, pod
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import node_of, wait_for_event, wait_until_bound
from tests.integration.mooring_process import NAME, start_mooring

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY = "pv.kubernetes.io/bound-by-controller"


@on_both
def test_waiting_claim_gets_a_volume_that_keeps_all_its_fields(
    control_plane: Plane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(nodes(3))
    admin.create(storage_class("local", "kubernetes.io/no-provisioner"))
    volume = create_volume(control_plane, volume_on("disk-1", "node-00001"))
    claim = admin.create(claim_of("local", namespace))
    start_mooring(control_plane)
    admin.create(user_of(claim))

    chosen = wait_until(
        lambda: changed(control_plane, volume, "spec", "claimRef"),
        what="the volume is chosen for the claim",
    )
    assert chosen["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert chosen["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert chosen["metadata"]["annotations"].pop(BOUND_BY) == "yes"
    assert without_claim(chosen) == without_claim(volume)
    assert node_of(control_plane, namespace, "user") == ""  # it is not bound before its volume

    bind_claim(control_plane, claim, "disk-1")  # in place of the controller
    wait_until_bound(control_plane, namespace, "user")
    assert node_of(control_plane, namespace, "user") == "node-00001"
    after = admin.get("PersistentVolumeClaim", "data", namespace)
    assert after["spec"].pop("volumeName") == "disk-1"
    assert after["metadata"]["annotations"].pop(COMPLETED) == "yes"
    assert what_was_given(after) == what_was_given(claim)


@on_both
def test_provisioner_is_told_the_node_by_a_claim_that_keeps_all_its_fields(
    control_plane: Plane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(nodes(3))
    admin.create(storage_class("disks", "example.com/disks"))
    claim = admin.create(claim_of("disks", namespace))
    start_mooring(control_plane)
    admin.create(user_of(claim, node_selector={"kubernetes.io/hostname": "node-00002"}))

    asked = wait_until(
        lambda: changed(control_plane, claim, "metadata", "annotations", SELECTED),
        what="the claim names the node",
    )
    assert asked["metadata"]["annotations"].pop(SELECTED) == "node-00002"
    assert what_was_given(asked) == what_was_given(claim)

    made = volume_on("fresh", "node-00002")
    made["spec"]["storageClassName"] = "disks"
    made["spec"]["claimRef"] = reference(claim)
    admin.create(made)
    bind_claim(control_plane, claim, "fresh")  # in place of provisioner and controller
    wait_until_bound(control_plane, namespace, "user")
    assert node_of(control_plane, namespace, "user") == "node-00002"


@on_both
def test_pod_waits_for_a_volume_that_can_be_reached(control_plane: Plane, namespace: str) -> None:
    admin = control_plane.admin
    admin.create_many(nodes(2))
    admin.create(storage_class("local", "kubernetes.io/no-provisioner"))
    claim = admin.create(claim_of("local", namespace))
    start_mooring(control_plane)
    admin.create(user_of(claim))
    why = "didn't find available persistent volumes to bind"
    told = wait_for_event(control_plane, namespace, "user", "FailedScheduling", why)
    assert told["note"].startswith(f"0/2 nodes are available: 2 node(s) {why}")
    volume = create_volume(control_plane, volume_on("late", "node-00000"))
    wait_until(
        lambda: changed(control_plane, volume, "spec", "claimRef"), what="the volume is chosen"
    )
    bind_claim(control_plane, claim, "late")
    wait_until_bound(control_plane, namespace, "user")


# --- objects -----------------------------------------------------------------------------------


def storage_class(name: str, provisioner: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume_on(name: str, node: str) -> Object:
    """With many fields that a scheduler has no reason to know."""
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": {"team": "storage"},
            "annotations": {"example.com/serial": "S3N-1", "example.com/shelf": "4"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "20Gi"},
            "csi": {
                "driver": "disks.example.com",
                "volumeHandle": f"handle-{name}",
                "fsType": "xfs",
                "volumeAttributes": {"iops": "4000", "encrypted": "true"},
                "nodeStageSecretRef": {"name": "keys", "namespace": "default"},
            },
            "mountOptions": ["noatime", "discard"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "volumeMode": "Filesystem",
        },
    }


def claim_of(class_: str, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "namespace": namespace,
            "labels": {"app": "database"},
            "annotations": {"example.com/owner": "team-a"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}, "limits": {"storage": "30Gi"}},
            "storageClassName": class_,
            "volumeMode": "Filesystem",
        },
    }


def user_of(claim: Object, node_selector: dict[str, str] | None = None) -> Object:
    meta = claim["metadata"]
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": meta["name"]}}
    return pod(
        "user",
        namespace=meta["namespace"],
        scheduler=NAME,
        node_selector=node_selector,
        spec={"volumes": [volume]},
    )


def reference(claim: Object) -> Object:
    meta = claim["metadata"]
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, **{key: meta[key] for key in ("name", "namespace", "uid")}}


# --- what controllers would do, and what changed -------------------------------------------------


def create_volume(control_plane: Plane, volume: Object) -> Object:
    """A volume that can be had."""
    control_plane.admin.create(volume)
    return control_plane.admin.patch(
        "PersistentVolume",
        volume["metadata"]["name"],
        {"status": {"phase": "Available"}},
        subresource="status",
    )


def bind_claim(control_plane: Plane, claim: Object, volume: str) -> None:
    admin, meta = control_plane.admin, claim["metadata"]
    change = {
        "spec": {"volumeName": volume},
        "metadata": {"annotations": {COMPLETED: "yes"}},
    }
    kind, name, namespace = "PersistentVolumeClaim", meta["name"], meta["namespace"]
    bound = {"status": {"phase": "Bound"}}
    admin.patch("PersistentVolume", volume, bound, subresource="status")
    admin.patch(kind, name, change, namespace)
    admin.patch(kind, name, bound, namespace, subresource="status")


def changed(control_plane: Plane, before: Object, *path: str) -> Object:
    """The object of now, if it has something at this path; empty before that."""
    meta = before["metadata"]
    now = control_plane.admin.get(before["kind"], meta["name"], meta.get("namespace", ""))
    found = now
    for key in path:
        found = found.get(key, {})
    return now if found else {}


def what_was_given(value: Object) -> Object:
    """All but what the server keeps for itself."""
    meta = {key: value["metadata"].get(key) for key in ("labels", "annotations")}
    return {"metadata": meta, "spec": value["spec"]}


def without_claim(volume: Object) -> Object:
    given = what_was_given(volume)
    return {**given, "spec": {k: v for k, v in given["spec"].items() if k != "claimRef"}}
