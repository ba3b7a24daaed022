"""What a scheduler does with its rights: how each use begins, and whether it is done.

A use can begin again under another title, with objects of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tests.controlplane.admin import AdminApi, ApiFailure, Object
from tests.controlplane.objects import node, pod, priority_class
from tests.controlplane.waiting import wait_until
from tests.deploy.release import Release
from tests.integration.cluster_reads import condition, events_about, node_of

SELECTED = "volume.kubernetes.io/selected-node"


class Use(NamedTuple):
    """How it begins, and whether it is done."""

    begin: Callable[[Release, str], None]
    is_done: Callable[[Release, str], bool]


# --- pods ---------------------------------------------------------------------------------------


def create_pod(release: Release, title: str) -> None:
    release.control_plane.admin.create(
        pod(
            f"plain-{title}",
            namespace=release.namespace,
            scheduler=release.name,
            cpu="1m",
            memory="",
        )
    )


def is_bound(release: Release, title: str) -> bool:
    return node_of(release.control_plane, release.namespace, f"plain-{title}") != ""


def has_event(release: Release, title: str) -> bool:
    found = events_about(release.control_plane, release.namespace, f"plain-{title}", "Scheduled")
    return bool(found)


def create_impossible_pod(release: Release, title: str) -> None:
    impossible = pod(
        f"impossible-{title}",
        namespace=release.namespace,
        scheduler=release.name,
        node_selector={"kubernetes.io/hostname": "nowhere"},
    )
    release.control_plane.admin.create(impossible)


def says_why(release: Release, title: str) -> bool:
    found = release.control_plane.admin.get("Pod", f"impossible-{title}", release.namespace)
    return condition(found, "PodScheduled").get("reason") == "Unschedulable"


def create_victim(release: Release, title: str) -> None:
    """A node of its own with room for one, and two who want it."""
    admin, where = release.control_plane.admin, f"{release.name}-{title}"
    admin.create(node(where, cpu="1", taints=[f"of={where}:NoSchedule"]))
    for value in (priority_class("low", 10), priority_class("high", 1000)):
        try:
            admin.create(value)
        except ApiFailure as error:
            if error.reason != "AlreadyExists":
                raise
    spec: Object = {"tolerations": [{"key": "of", "operator": "Exists"}]}
    for name, importance in (("victim", "low"), ("important", "high")):
        claimant = pod(
            f"{name}-{title}",
            namespace=release.namespace,
            scheduler=release.name,
            cpu="800m",
            memory="",
            node=where if name == "victim" else "",
            node_selector={"kubernetes.io/hostname": where},
            priority_class=importance,
            spec=spec,
        )
        wait_until(partial(_is_admitted, admin, claimant), what=f"{name} is admitted")


def _is_admitted(admin: AdminApi, made: Object) -> bool:
    """The server hears of a new priority class a moment after it has stored it."""
    try:
        admin.create(made)
    except ApiFailure as error:
        if "no PriorityClass with name" in error.message:
            return False
        raise
    return True


def is_evicted(release: Release, title: str) -> bool:
    try:
        found = release.control_plane.admin.get("Pod", f"victim-{title}", release.namespace)
    except ApiFailure as error:
        return error.code == 404
    return "deletionTimestamp" in found["metadata"]


# --- volumes ------------------------------------------------------------------------------------


def create_claim(release: Release, title: str, provisioner: str) -> None:
    admin, unique = release.control_plane.admin, f"{release.name}-{title}"
    admin.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": unique},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": unique,
    }
    meta = {"name": title, "namespace": release.namespace}
    kind = "PersistentVolumeClaim"
    admin.create({"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": title}}
    admin.create(
        pod(
            f"user-{title}",
            namespace=release.namespace,
            scheduler=release.name,
            cpu="1m",
            memory="",
            spec={"volumes": [volume]},
        )
    )


def create_claim_and_volume(release: Release, title: str) -> None:
    admin, unique = release.control_plane.admin, f"{release.name}-{title}"
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["roomy"]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
        "storageClassName": unique,
    }
    kind = "PersistentVolume"
    admin.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": unique}, "spec": spec})
    admin.patch(kind, unique, {"status": {"phase": "Available"}}, subresource="status")
    create_claim(release, title, "kubernetes.io/no-provisioner")


def volume_is_chosen(release: Release, title: str) -> bool:
    found = release.control_plane.admin.get("PersistentVolume", f"{release.name}-{title}")
    return "claimRef" in found["spec"]


def node_is_chosen(release: Release, title: str) -> bool:
    found = release.control_plane.admin.get("PersistentVolumeClaim", title, release.namespace)
    return SELECTED in found["metadata"].get("annotations", {})


# --- endpoints ----------------------------------------------------------------------------------


def nothing(release: Release, title: str) -> None:
    """The request that is_done makes is the beginning."""


def token_is_known(release: Release, title: str) -> bool:
    return release.scrape().code == 200


def certificate_is_known(release: Release, title: str) -> bool:
    assert release.mooring is not None
    return release.mooring.get("/metrics", user=release.control_plane.admin_user).code == 200


USES: dict[str, Use] = {
    "pods are bound": Use(create_pod, is_bound),
    "what was decided is an Event": Use(create_pod, has_event),
    "pods that are refused say why": Use(create_impossible_pod, says_why),
    "victims make room": Use(create_victim, is_evicted),
    "claims get volumes": Use(create_claim_and_volume, volume_is_chosen),
    "provisioners are told the node": Use(
        lambda release, title: create_claim(release, title, "example.com/disks"), node_is_chosen
    ),
    "metrics are shown to those who may": Use(nothing, token_is_known),
    "client certificates are known": Use(nothing, certificate_is_known),
}
