"""What a scheduler does with its rights, as short stories: each begins, and is told or not.

A story can be begun again under another title, with objects of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.controlplane.admin import ApiFailure, Object
from tests.controlplane.objects import node, pod, priority_class
from tests.deploy.stage import Stage
from tests.integration.looking import condition, events_about, node_of

SELECTED = "volume.kubernetes.io/selected-node"


class Story(NamedTuple):
    """How it begins, and whether it has come to its end."""

    begin: Callable[[Stage, str], None]
    is_told: Callable[[Stage, str], bool]


# --- pods ---------------------------------------------------------------------------------------


def create_pod(stage: Stage, title: str) -> None:
    stage.control_plane.admin.create(
        pod(f"plain-{title}", namespace=stage.namespace, scheduler=stage.name, cpu="1m", memory="")
    )


def is_bound(stage: Stage, title: str) -> bool:
    return node_of(stage.control_plane, stage.namespace, f"plain-{title}") != ""


def has_event(stage: Stage, title: str) -> bool:
    found = events_about(stage.control_plane, stage.namespace, f"plain-{title}", "Scheduled")
    return bool(found)


def create_impossible_pod(stage: Stage, title: str) -> None:
    impossible = pod(
        f"impossible-{title}",
        namespace=stage.namespace,
        scheduler=stage.name,
        node_selector={"kubernetes.io/hostname": "nowhere"},
    )
    stage.control_plane.admin.create(impossible)


def says_why(stage: Stage, title: str) -> bool:
    found = stage.control_plane.admin.get("Pod", f"impossible-{title}", stage.namespace)
    return condition(found, "PodScheduled").get("reason") == "Unschedulable"


def create_victim(stage: Stage, title: str) -> None:
    """A node of its own with room for one, and two who want it."""
    admin, where = stage.control_plane.admin, f"{stage.name}-{title}"
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
            namespace=stage.namespace,
            scheduler=stage.name,
            cpu="800m",
            memory="",
            node=where if name == "victim" else "",
            node_selector={"kubernetes.io/hostname": where},
            priority_class=importance,
            spec=spec,
        )
        admin.create(claimant)


def is_evicted(stage: Stage, title: str) -> bool:
    try:
        found = stage.control_plane.admin.get("Pod", f"victim-{title}", stage.namespace)
    except ApiFailure as error:
        return error.code == 404
    return "deletionTimestamp" in found["metadata"]


# --- volumes ------------------------------------------------------------------------------------


def create_claim(stage: Stage, title: str, provisioner: str) -> None:
    admin, unique = stage.control_plane.admin, f"{stage.name}-{title}"
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
    meta = {"name": title, "namespace": stage.namespace}
    kind = "PersistentVolumeClaim"
    admin.create({"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": title}}
    admin.create(
        pod(
            f"user-{title}",
            namespace=stage.namespace,
            scheduler=stage.name,
            cpu="1m",
            memory="",
            spec={"volumes": [volume]},
        )
    )


def create_claim_and_volume(stage: Stage, title: str) -> None:
    admin, unique = stage.control_plane.admin, f"{stage.name}-{title}"
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
    create_claim(stage, title, "kubernetes.io/no-provisioner")


def volume_is_chosen(stage: Stage, title: str) -> bool:
    found = stage.control_plane.admin.get("PersistentVolume", f"{stage.name}-{title}")
    return "claimRef" in found["spec"]


def node_is_chosen(stage: Stage, title: str) -> bool:
    found = stage.control_plane.admin.get("PersistentVolumeClaim", title, stage.namespace)
    return SELECTED in found["metadata"].get("annotations", {})


# --- endpoints ----------------------------------------------------------------------------------


def nothing(stage: Stage, title: str) -> None:
    """Whoever asks begins the story."""


def token_is_known(stage: Stage, title: str) -> bool:
    return stage.scrape().code == 200


def certificate_is_known(stage: Stage, title: str) -> bool:
    assert stage.mooring is not None
    return stage.mooring.get("/metrics", user=stage.control_plane.admin_user).code == 200


STORIES: dict[str, Story] = {
    "pods are bound": Story(create_pod, is_bound),
    "what was decided is an Event": Story(create_pod, has_event),
    "pods that are refused say why": Story(create_impossible_pod, says_why),
    "victims make room": Story(create_victim, is_evicted),
    "claims get volumes": Story(create_claim_and_volume, volume_is_chosen),
    "provisioners are told the node": Story(
        lambda stage, title: create_claim(stage, title, "example.com/disks"), node_is_chosen
    ),
    "metrics are shown to those who may": Story(nothing, token_is_known),
    "client certificates are known": Story(nothing, certificate_is_known),
}
