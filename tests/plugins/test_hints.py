"""Every default plugin that looks closer at events, against what kube-scheduler 1.36 answers.

One table: what happened, to which object, and whether a pod that the plugin refused is queued again
or left alone. For pod events the other pod is assigned to a node, only nominated for one, or
neither.
"""

from typing import Any, Final, NamedTuple

import pytest
from msgspec import structs
from tests.plugins.dynamicresources.objects import (
    allocated,
    device_class,
    pod_with,
    resource_slice,
)
from tests.plugins.dynamicresources.objects import claim as resource_claim
from tests.plugins.interpodaffinity.affinity import affinity, anti_affinity, term
from tests.plugins.volumes.storage import (
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    user,
    volume,
)

from mooring.api import core
from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.framework import Action, ClusterEvent, Event, Pod
from mooring.framework.events import ASSIGNED_POD, UNSCHEDULABLE_POD
from mooring.framework.plugin import Base
from mooring.runtime.registry import Registry
from mooring.simulator import Simulation
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import ZONE, node, pod

REGISTRY: Final = Registry.discover()

NODE_ADDED: Final = Event.NODE_ADDED
NODE_DELETED: Final = Event.NODE_DELETED
NODE_LABELS: Final = Event.NODE_LABELS_CHANGED
NODE_TAINTS: Final = Event.NODE_TAINTS_CHANGED
NODE_RESOURCES: Final = Event.NODE_ALLOCATABLE_CHANGED
NODE_FEATURES: Final = Event.NODE_FEATURES_CHANGED
POD_ADDED: Final = ClusterEvent(ASSIGNED_POD, Action.ADD)
POD_DELETED: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)
POD_RELABELLED: Final = ClusterEvent(ASSIGNED_POD, Action.UPDATE_POD_LABEL)
POD_SCALED_DOWN: Final = ClusterEvent(ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
OWN_LABELS: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL)
OWN_REQUESTS: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_SCALE_DOWN)
OWN_TOLERATIONS: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
OWN_GATES: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
PVC_ADDED: Final = ClusterEvent("PersistentVolumeClaim", Action.ADD)
PVC_CHANGED: Final = ClusterEvent("PersistentVolumeClaim", Action.UPDATE)
PV_ADDED: Final = ClusterEvent("PersistentVolume", Action.ADD)
PV_CHANGED: Final = ClusterEvent("PersistentVolume", Action.UPDATE)
CLASS_ADDED: Final = ClusterEvent("storage.k8s.io/StorageClass", Action.ADD)
CLASS_CHANGED: Final = ClusterEvent("storage.k8s.io/StorageClass", Action.UPDATE)
CSI_NODE_ADDED: Final = ClusterEvent("storage.k8s.io/CSINode", Action.ADD)
CSI_NODE_CHANGED: Final = ClusterEvent("storage.k8s.io/CSINode", Action.UPDATE)
DRIVER_CHANGED: Final = ClusterEvent("storage.k8s.io/CSIDriver", Action.UPDATE)
CAPACITY_ADDED: Final = ClusterEvent("storage.k8s.io/CSIStorageCapacity", Action.ADD)
CAPACITY_CHANGED: Final = ClusterEvent("storage.k8s.io/CSIStorageCapacity", Action.UPDATE)
DETACHED: Final = ClusterEvent("storage.k8s.io/VolumeAttachment", Action.DELETE)

RESOURCE_CLAIM_ADDED: Final = ClusterEvent("resource.k8s.io/ResourceClaim", Action.ADD)
RESOURCE_CLAIM_CHANGED: Final = ClusterEvent("resource.k8s.io/ResourceClaim", Action.UPDATE)
RESOURCE_CLAIM_DELETED: Final = ClusterEvent("resource.k8s.io/ResourceClaim", Action.DELETE)
DEVICE_CLASS_ADDED: Final = ClusterEvent("resource.k8s.io/DeviceClass", Action.ADD)
DEVICE_CLASS_CHANGED: Final = ClusterEvent("resource.k8s.io/DeviceClass", Action.UPDATE)
SLICE_ADDED: Final = ClusterEvent("resource.k8s.io/ResourceSlice", Action.ADD)
SLICE_CHANGED: Final = ClusterEvent("resource.k8s.io/ResourceSlice", Action.UPDATE)
OWN_CLAIMS: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)

QUEUE: Final = True
SKIP: Final = False


class Row(NamedTuple):
    """An event with its objects, and the answer for the refused pod."""

    what: str
    event: ClusterEvent
    refused: Pod
    old: object | None
    new: object | None
    answer: bool


def deleted(refused: Pod, *answers: bool, **of: Any) -> list[Row]:
    """A pod like this is deleted: one on a node, one nominated for it, one that just waited."""
    gone = {
        "an assigned pod is deleted": other(on="n", **of),
        "a nominated pod is deleted": other(nominated="n", **of),
        "a waiting pod is deleted": other(**of),
    }
    return [
        Row(what, POD_DELETED, refused, pod, None, answer)
        for (what, pod), answer in zip(gone.items(), answers, strict=True)
    ]


def other(*claims: str, **of: Any) -> Pod:
    return user("other", *claims, uid="other", **of)


def at(**of: Any) -> core.Node:
    return node("n", **of).api


def declaring(*features: str) -> core.Node:
    api = at()
    status = structs.replace(api.status, declared_features=features)
    return structs.replace(api, status=status)


WEB: Final = {"app": "web"}
GCE: Final = {"gcePersistentDisk": {"pdName": "disk"}}

SMALL: Final = pod("p", uid="p", cpu="2")
SERVER: Final = pod("p", uid="p", ports=[8080])
LONELY: Final = pod("p", uid="p", affinity=affinity(term("zone", app="web")))
SHY: Final = pod("p", uid="p", affinity=anti_affinity(term("zone", app="web")))
SHUNNED: Final = pod("p", uid="p", labels=WEB)
SPREAD: Final = pod("p", uid="p", labels=WEB, spread={"zone": 1})
HONORING: Final = pod(
    "p",
    uid="p",
    spec={
        "topologySpreadConstraints": [
            {
                "topologyKey": ZONE,
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "nodeTaintsPolicy": "Honor",
            }
        ]
    },
)
GATED: Final = pod("p", uid="p", gates=["wait"])
TOLERANT: Final = pod("p", uid="p", tolerates=["gpu"])
WEB_TOLERANT: Final = pod("p", uid="p", labels=WEB, tolerates=["gpu"])
CORDON_PROOF: Final = pod("p", uid="p", tolerates=["node.kubernetes.io/unschedulable"])
PICKY: Final = pod("p", uid="p", node_selector={"disk": "ssd"})
DEMANDING: Final = pod("p", uid="p", spec={"hostNetwork": True, "hostUsers": False})
PLAIN: Final = pod("p", uid="p")
OTHER: Final = other()
STORING: Final = user("p", "data", uid="p", inline=[GCE])
CLAIMING: Final = pod_with("gpu")
UNMET: Final = pod_with("gpu", "missing")
GPU_CLAIM: Final = resource_claim("gpu")
GPU_CLAIM_USED: Final = allocated("gpu", "n", "gpu-0", reserved_for=("p",))
OTHER_CLAIM: Final = resource_claim("other")
OTHER_CLAIM_USED: Final = allocated("other", "n", "gpu-0")
FINALIZED: Final = resource_claim("gpu", metadata={"finalizers": ["x"]})
EXTENDED: Final = pod("p", uid="p", requests={"example.com/gpu": "1"})
IMPLICIT: Final = pod("p", uid="p", requests={"deviceclass.resource.kubernetes.io/gpu": "1"})
PLAIN_CLASS: Final = device_class()
SERVING_CLASS: Final = device_class(extendedResourceName="example.com/gpu")
BARE: Final = at()
CORDONED: Final = at(unschedulable=True)
TAINTED: Final = at(taints=["x:NoSchedule"])
WITH_GPU: Final = at(taints=["gpu:NoSchedule"])
SSD: Final = at(labels={"disk": "ssd"})
SSD_TOO: Final = at(labels={"disk": "ssd", "x": "y"})
HDD: Final = at(labels={"disk": "hdd"})
IN_A: Final = at(zone="a")
IN_A_TOO: Final = at(zone="a", labels={"x": "y"})
IN_B: Final = at(zone="b")
OTHER_ON: Final = other(on="n")
NOMINATED: Final = other(nominated="n")
WEB_ON: Final = other(on="n", labels=WEB)
WEB_NOMINATED: Final = other(nominated="n", labels=WEB)
WEB_WAITING: Final = other(labels=WEB)
ATTACHED: Final = attachment("a", "n", "pv")
TAINTED_TWICE: Final = at(taints=["x:NoSchedule", "y:NoSchedule"])
TAINTED_STILL: Final = at(taints=["y:NoSchedule"])
ONE_CPU: Final = at(cpu="1")
MORE_CPU: Final = at(cpu="1500m")
TWO_CPUS: Final = at(cpu="2")
ONE_GI: Final = at(memory="1Gi")
TWO_GI: Final = at(memory="2Gi")
TAINTED_IN_A: Final = at(zone="a", taints=["x:NoSchedule"])
ON_8081: Final = other(on="n", ports=[8081])
CPUS_ON: Final = other(on="n", cpu="2")
CPU_ON: Final = other(on="n", cpu="1")
MORE_GI_ON: Final = other(on="n", memory="2Gi")
GI_ON: Final = other(on="n", memory="1Gi")
CPUS_NOMINATED: Final = other(nominated="n", cpu="2")
CPU_NOMINATED: Final = other(nominated="n", cpu="1")
DATA_ON: Final = other("data", on="n")
SHOP_DATA: Final = other("data", on="n", namespace="shop")
MORE_ON: Final = other("more", on="n")
SHOP_WEB_ON: Final = other(on="n", labels=WEB, namespace="shop")
WEB_ON_TOO: Final = other(on="n", labels={**WEB, "x": "y"})
LIMIT_1: Final = csi_node("n", limits={"d": 1})
LIMIT_2: Final = csi_node("n", limits={"d": 2})
MIGRATED: Final = csi_node("n", migrated=["kubernetes.io/gce-pd"])
UNLIMITED: Final = csi_node("n")
CLASS_IN_A: Final = storage_class(zones=["a"])
CLASS_OF_X: Final = storage_class(provisioner="x")
CLASS_AT_ONCE: Final = storage_class(mode="Immediate")
CLASS: Final = storage_class()
UNTRACKED: Final = csi_driver(tracks_capacity=False)
TRACKED: Final = csi_driver()
CAPACITY_1: Final = capacity(size="1Gi")
CAPACITY_2: Final = capacity(size="2Gi")
VOLUME_IN_A: Final = volume(labels={ZONE: "a"})
VOLUME_IN_B: Final = volume(labels={ZONE: "b"})
VOLUME_TOO: Final = volume(labels={"x": "y"})
VOLUME: Final = volume()
DECLARES_X: Final = declaring("x")

TABLE: Final[dict[str, list[Row]]] = {
    "SchedulingGates": [
        Row("its gates are gone", OWN_GATES, GATED, GATED, PLAIN, QUEUE),
        Row("the gates of another pod are gone", OWN_GATES, GATED, OTHER, OTHER, SKIP),
    ],
    "NodeUnschedulable": [
        Row("an open node", NODE_ADDED, PLAIN, None, BARE, QUEUE),
        Row("a cordoned node", NODE_ADDED, PLAIN, None, CORDONED, SKIP),
        Row("a node is uncordoned", NODE_TAINTS, PLAIN, CORDONED, BARE, QUEUE),
        Row("an open node gets another taint", NODE_TAINTS, PLAIN, BARE, TAINTED, SKIP),
        Row("it tolerates the cordon now", OWN_TOLERATIONS, PLAIN, PLAIN, CORDON_PROOF, QUEUE),
        Row("it tolerates something else", OWN_TOLERATIONS, PLAIN, PLAIN, TOLERANT, SKIP),
        Row("another pod tolerates more", OWN_TOLERATIONS, PLAIN, OTHER, OTHER, SKIP),
    ],
    "TaintToleration": [
        Row("a node without taints", NODE_ADDED, PLAIN, None, BARE, QUEUE),
        Row("a node with a taint that it tolerates", NODE_ADDED, TOLERANT, None, WITH_GPU, QUEUE),
        Row("a node with another taint", NODE_ADDED, TOLERANT, None, TAINTED, SKIP),
        Row("a taint is gone", NODE_TAINTS, PLAIN, TAINTED, BARE, QUEUE),
        Row("one of two taints is gone", NODE_TAINTS, PLAIN, TAINTED_TWICE, TAINTED_STILL, SKIP),
        Row("a taint is gone that it tolerates", NODE_TAINTS, TOLERANT, WITH_GPU, BARE, SKIP),
        Row("it tolerates more", OWN_TOLERATIONS, PLAIN, PLAIN, TOLERANT, QUEUE),
        Row("another pod tolerates more", OWN_TOLERATIONS, PLAIN, OTHER, OTHER, SKIP),
    ],
    "NodeAffinity": [
        Row("a node that it selects", NODE_ADDED, PICKY, None, SSD, QUEUE),
        Row("another node", NODE_ADDED, PICKY, None, BARE, SKIP),
        Row("a node gets the label", NODE_LABELS, PICKY, BARE, SSD, QUEUE),
        Row("a node gets another label", NODE_LABELS, PICKY, BARE, HDD, SKIP),
        Row("another label where it was welcome before", NODE_LABELS, PICKY, SSD, SSD_TOO, SKIP),
    ],
    "NodePorts": [
        *deleted(SERVER, QUEUE, QUEUE, SKIP, ports=[8080]),
        Row("a pod with another port is deleted", POD_DELETED, SERVER, ON_8081, None, SKIP),
        Row("a node", NODE_ADDED, SERVER, None, BARE, QUEUE),
    ],
    "NodeResourcesFit": [
        *deleted(SMALL, QUEUE, QUEUE, SKIP, cpu="1"),
        Row("an assigned pod needs less of it", POD_SCALED_DOWN, SMALL, CPUS_ON, CPU_ON, QUEUE),
        Row("an assigned pod needs less memory", POD_SCALED_DOWN, SMALL, MORE_GI_ON, GI_ON, SKIP),
        Row("a nominated pod needs less", OWN_REQUESTS, SMALL, CPUS_NOMINATED, CPU_NOMINATED, SKIP),
        Row("a waiting pod needs less", OWN_REQUESTS, SMALL, other(cpu="2"), other(cpu="1"), SKIP),
        Row("it needs less", OWN_REQUESTS, SMALL, SMALL, pod("p", uid="p", cpu="1"), QUEUE),
        Row("a large node", NODE_ADDED, SMALL, None, TWO_CPUS, QUEUE),
        Row("a small node", NODE_ADDED, SMALL, None, ONE_CPU, SKIP),
        Row("a node has more of what it wants", NODE_RESOURCES, SMALL, ONE_CPU, TWO_CPUS, QUEUE),
        Row("a node has more, and not enough", NODE_RESOURCES, SMALL, ONE_CPU, MORE_CPU, SKIP),
        Row("a node has more of something else", NODE_RESOURCES, SMALL, ONE_GI, TWO_GI, SKIP),
        Row("a node takes more pods", NODE_RESOURCES, SMALL, at(max_pods=1), at(max_pods=2), QUEUE),
        Row("a class serves it", DEVICE_CLASS_ADDED, EXTENDED, None, SERVING_CLASS, QUEUE),
        Row("a class serves it by name", DEVICE_CLASS_ADDED, IMPLICIT, None, PLAIN_CLASS, QUEUE),
        Row("another class", DEVICE_CLASS_ADDED, EXTENDED, None, PLAIN_CLASS, SKIP),
        Row("a class begins to", DEVICE_CLASS_CHANGED, EXTENDED, PLAIN_CLASS, SERVING_CLASS, QUEUE),
        Row("a class goes on", DEVICE_CLASS_CHANGED, EXTENDED, SERVING_CLASS, SERVING_CLASS, SKIP),
    ],
    "VolumeRestrictions": [
        # As there, a pod that has no place yet is looked at, too.
        *deleted(STORING, QUEUE, QUEUE, QUEUE, inline=[GCE]),
        Row("a pod with the same claim is deleted", POD_DELETED, STORING, DATA_ON, None, QUEUE),
        Row("a pod of another namespace is deleted", POD_DELETED, STORING, SHOP_DATA, None, SKIP),
        Row("a pod with another claim is deleted", POD_DELETED, STORING, MORE_ON, None, SKIP),
        Row("a node", NODE_ADDED, STORING, None, BARE, QUEUE),
        Row("its claim", PVC_ADDED, STORING, None, claim("data"), QUEUE),
        Row("another claim", PVC_ADDED, STORING, None, claim("more"), SKIP),
    ],
    "NodeVolumeLimits": [
        *deleted(STORING, QUEUE, QUEUE, SKIP, ephemeral=["scratch"]),
        Row("a pod without volumes is deleted", POD_DELETED, STORING, OTHER_ON, None, SKIP),
        Row("a CSINode", CSI_NODE_ADDED, STORING, None, UNLIMITED, QUEUE),
        Row("a limit grows", CSI_NODE_CHANGED, STORING, LIMIT_1, LIMIT_2, QUEUE),
        Row("a limit shrinks", CSI_NODE_CHANGED, STORING, LIMIT_2, LIMIT_1, SKIP),
        Row("its claim", PVC_ADDED, STORING, None, claim("data"), QUEUE),
        Row("another claim", PVC_ADDED, STORING, None, claim("more"), SKIP),
        Row("a volume is detached", DETACHED, STORING, ATTACHED, None, QUEUE),
        Row("a volume is detached, and it has none", DETACHED, PLAIN, ATTACHED, None, SKIP),
    ],
    "VolumeBinding": [
        Row("its claim", PVC_ADDED, STORING, None, claim("data"), QUEUE),
        Row("its claim changes", PVC_CHANGED, STORING, claim("data"), claim("data"), QUEUE),
        Row("another claim", PVC_ADDED, STORING, None, claim("more"), SKIP),
        Row("another claim changes", PVC_CHANGED, STORING, claim("more"), claim("more"), SKIP),
        Row("a volume", PV_ADDED, STORING, None, VOLUME, QUEUE),
        Row("a volume changes", PV_CHANGED, STORING, VOLUME, VOLUME, QUEUE),
        Row("a node", NODE_ADDED, STORING, None, BARE, QUEUE),
        Row("a node gets a label", NODE_LABELS, STORING, BARE, IN_A, QUEUE),
        Row("a class", CLASS_ADDED, STORING, None, CLASS, QUEUE),
        Row("a class allows other topologies", CLASS_CHANGED, STORING, CLASS, CLASS_IN_A, QUEUE),
        Row("a class changes otherwise", CLASS_CHANGED, STORING, CLASS, CLASS_OF_X, SKIP),
        Row("a CSINode", CSI_NODE_ADDED, STORING, None, UNLIMITED, QUEUE),
        Row("a CSINode migrates a plugin", CSI_NODE_CHANGED, STORING, UNLIMITED, MIGRATED, QUEUE),
        Row("a CSINode changes otherwise", CSI_NODE_CHANGED, STORING, UNLIMITED, LIMIT_1, SKIP),
        # There only for a pod that names the driver in an inline volume: docs/parity.md.
        Row("a driver stops tracking capacity", DRIVER_CHANGED, STORING, TRACKED, UNTRACKED, QUEUE),
        Row("a driver begins to track capacity", DRIVER_CHANGED, STORING, UNTRACKED, TRACKED, SKIP),
        Row("a capacity", CAPACITY_ADDED, STORING, None, capacity(), QUEUE),
        Row("a capacity grows", CAPACITY_CHANGED, STORING, CAPACITY_1, CAPACITY_2, QUEUE),
        Row("a capacity shrinks", CAPACITY_CHANGED, STORING, CAPACITY_2, CAPACITY_1, SKIP),
    ],
    "VolumeZone": [
        Row("its claim", PVC_ADDED, STORING, None, claim("data"), QUEUE),
        Row("its claim changes", PVC_CHANGED, STORING, claim("data"), claim("data"), QUEUE),
        Row("another claim", PVC_ADDED, STORING, None, claim("more"), SKIP),
        Row("another claim changes", PVC_CHANGED, STORING, claim("more"), claim("more"), SKIP),
        Row("a volume", PV_ADDED, STORING, None, VOLUME, QUEUE),
        Row("a volume gets another zone", PV_CHANGED, STORING, VOLUME_IN_A, VOLUME_IN_B, QUEUE),
        Row("a volume gets another label", PV_CHANGED, STORING, VOLUME, VOLUME_TOO, SKIP),
        Row("a class that waits for a pod", CLASS_ADDED, STORING, None, CLASS, QUEUE),
        Row("a class that binds at once", CLASS_ADDED, STORING, None, CLASS_AT_ONCE, SKIP),
        Row("a node", NODE_ADDED, STORING, None, BARE, QUEUE),
        Row("a node gets a label", NODE_LABELS, STORING, BARE, IN_A, QUEUE),
    ],
    "PodTopologySpread": [
        *deleted(SPREAD, QUEUE, QUEUE, SKIP, labels=WEB),
        Row("a pod that does not count is deleted", POD_DELETED, SPREAD, OTHER_ON, None, SKIP),
        Row("a pod of another namespace is deleted", POD_DELETED, SPREAD, SHOP_WEB_ON, None, SKIP),
        Row("an assigned pod", POD_ADDED, SPREAD, None, WEB_ON, QUEUE),
        Row("a nominated pod", POD_ADDED, SPREAD, None, WEB_NOMINATED, QUEUE),
        Row("a waiting pod", POD_ADDED, SPREAD, None, WEB_WAITING, SKIP),
        Row("an assigned pod begins to count", POD_RELABELLED, SPREAD, OTHER_ON, WEB_ON, QUEUE),
        Row("a nominated pod ceases to count", OWN_LABELS, SPREAD, WEB_NOMINATED, NOMINATED, QUEUE),
        Row("a waiting pod ceases to count", OWN_LABELS, SPREAD, WEB_WAITING, OTHER, SKIP),
        Row("an assigned pod gets another label", POD_RELABELLED, SPREAD, WEB_ON, WEB_ON_TOO, SKIP),
        Row("it tolerates more", OWN_TOLERATIONS, HONORING, SHUNNED, WEB_TOLERANT, QUEUE),
        Row("it tolerates more, of no avail", OWN_TOLERATIONS, SPREAD, SHUNNED, WEB_TOLERANT, SKIP),
        Row("a node of a domain", NODE_ADDED, SPREAD, None, IN_A, QUEUE),
        Row("a node of none", NODE_ADDED, SPREAD, None, BARE, SKIP),
        Row("a node of a domain goes", NODE_DELETED, SPREAD, IN_A, None, QUEUE),
        Row("a node of none goes", NODE_DELETED, SPREAD, BARE, None, SKIP),
        Row("a node changes its domain", NODE_LABELS, SPREAD, IN_A, IN_B, QUEUE),
        Row("a node gets another label", NODE_LABELS, SPREAD, IN_A, IN_A_TOO, SKIP),
        Row("a node of a domain gets a taint", NODE_TAINTS, SPREAD, IN_A, TAINTED_IN_A, QUEUE),
        Row("a node of none gets a taint", NODE_TAINTS, SPREAD, BARE, TAINTED, SKIP),
    ],
    "InterPodAffinity": [
        *deleted(SHY, QUEUE, QUEUE, SKIP, labels=WEB),
        *deleted(SHUNNED, QUEUE, QUEUE, SKIP, affinity=anti_affinity(term("zone", app="web"))),
        *deleted(LONELY, SKIP, SKIP, SKIP, labels=WEB),
        Row("an assigned pod", POD_ADDED, LONELY, None, WEB_ON, QUEUE),
        Row("a nominated pod", POD_ADDED, LONELY, None, WEB_NOMINATED, QUEUE),
        Row("a waiting pod", POD_ADDED, LONELY, None, WEB_WAITING, SKIP),
        Row("a pod that it does not select", POD_ADDED, LONELY, None, OTHER_ON, SKIP),
        Row("an assigned pod begins to match", POD_RELABELLED, LONELY, OTHER_ON, WEB_ON, QUEUE),
        Row("a nominated pod ceases to match", OWN_LABELS, SHY, WEB_NOMINATED, NOMINATED, QUEUE),
        Row("a waiting pod ceases to match", OWN_LABELS, SHY, WEB_WAITING, OTHER, SKIP),
        Row("an assigned pod begins to be in the way", POD_RELABELLED, SHY, OTHER_ON, WEB_ON, SKIP),
        Row("it gets other labels", OWN_LABELS, LONELY, LONELY, LONELY, QUEUE),
        Row("a node of a domain", NODE_ADDED, LONELY, None, IN_A, QUEUE),
        Row("a node of none", NODE_ADDED, LONELY, None, BARE, SKIP),
        Row("any node, with anti-affinity", NODE_ADDED, SHY, None, BARE, QUEUE),
        Row("a node changes its domain", NODE_LABELS, LONELY, IN_A, IN_B, QUEUE),
        Row("a node gets another label", NODE_LABELS, LONELY, IN_A, IN_A_TOO, SKIP),
    ],
    "DynamicResources": [
        Row("a node", NODE_ADDED, CLAIMING, None, BARE, QUEUE),
        Row("a node gets labels", NODE_LABELS, CLAIMING, BARE, IN_A, QUEUE),
        Row("a node offers more", NODE_RESOURCES, CLAIMING, BARE, at(cpu="64"), QUEUE),
        Row("its claim", RESOURCE_CLAIM_ADDED, CLAIMING, None, GPU_CLAIM, QUEUE),
        Row("its claim, of several", RESOURCE_CLAIM_ADDED, UNMET, None, GPU_CLAIM, SKIP),
        Row("another claim", RESOURCE_CLAIM_ADDED, CLAIMING, None, OTHER_CLAIM, SKIP),
        Row(
            "its claim changes", RESOURCE_CLAIM_CHANGED, CLAIMING, GPU_CLAIM, GPU_CLAIM_USED, QUEUE
        ),
        Row("a finalizer", RESOURCE_CLAIM_CHANGED, CLAIMING, GPU_CLAIM, FINALIZED, SKIP),
        Row(
            "another claim is deallocated",
            RESOURCE_CLAIM_CHANGED,
            CLAIMING,
            OTHER_CLAIM_USED,
            OTHER_CLAIM,
            QUEUE,
        ),
        Row(
            "another is deallocated, one is missing",
            RESOURCE_CLAIM_CHANGED,
            UNMET,
            OTHER_CLAIM_USED,
            OTHER_CLAIM,
            SKIP,
        ),
        Row(
            "another claim is allocated",
            RESOURCE_CLAIM_CHANGED,
            CLAIMING,
            OTHER_CLAIM,
            OTHER_CLAIM_USED,
            SKIP,
        ),
        Row(
            "a claim with devices ends",
            RESOURCE_CLAIM_DELETED,
            CLAIMING,
            OTHER_CLAIM_USED,
            None,
            QUEUE,
        ),
        Row(
            "a claim without devices ends",
            RESOURCE_CLAIM_DELETED,
            CLAIMING,
            OTHER_CLAIM,
            None,
            SKIP,
        ),
        Row("its claims are made", OWN_CLAIMS, CLAIMING, CLAIMING, CLAIMING, QUEUE),
        Row("not all of them", OWN_CLAIMS, UNMET, UNMET, UNMET, SKIP),
        Row("those of another pod", OWN_CLAIMS, CLAIMING, OTHER, OTHER, SKIP),
        Row("a class", DEVICE_CLASS_ADDED, CLAIMING, None, PLAIN_CLASS, QUEUE),
        Row("a class changes", DEVICE_CLASS_CHANGED, CLAIMING, PLAIN_CLASS, SERVING_CLASS, QUEUE),
        Row("a slice", SLICE_ADDED, CLAIMING, None, resource_slice("n"), QUEUE),
        Row(
            "a slice changes",
            SLICE_CHANGED,
            CLAIMING,
            resource_slice("n"),
            resource_slice("n", 3),
            QUEUE,
        ),
    ],
    "DefaultPreemption": deleted(SMALL, SKIP, SKIP, SKIP, cpu="1"),
    "NodeDeclaredFeatures": [
        Row("a node", NODE_ADDED, DEMANDING, None, DECLARES_X, QUEUE),
        Row("a node declares more", NODE_FEATURES, DEMANDING, declaring(), DECLARES_X, QUEUE),
        Row("a node declares the same", NODE_FEATURES, DEMANDING, DECLARES_X, DECLARES_X, SKIP),
        Row("its needs change", OWN_LABELS, DEMANDING, DEMANDING, PLAIN, QUEUE),
        Row("its needs stay", OWN_LABELS, DEMANDING, DEMANDING, DEMANDING, SKIP),
        Row("another pod changes", OWN_LABELS, DEMANDING, OTHER, OTHER, SKIP),
    ],
}


ROWS: Final = [
    pytest.param(name, row, id=f"{name}-{number}: {row.what}")
    for name, known in TABLE.items()
    for number, row in enumerate(known, start=1)
]


def defaults_with_a_hint() -> dict[str, type[Base]]:
    found = {ref.name: REGISTRY.get(ref.name) for ref in DEFAULT_MULTIPOINT}
    return {name: plugin for name, plugin in found.items() if plugin.hint is not Base.hint}


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_answers_as_kube_scheduler_does(name: str, row: Row) -> None:
    plugin = build(REGISTRY.get(name), handle=StubHandle(objects=[GPU_CLAIM]))
    assert plugin.hint(row.event, row.refused, row.old, row.new) is row.answer


def test_lists_every_default_plugin_with_a_hint() -> None:
    assert TABLE.keys() == defaults_with_a_hint().keys()


@pytest.mark.parametrize("name", sorted(TABLE))
def test_lists_every_event_that_a_plugin_waits_for_and_no_other(name: str) -> None:
    awaited = REGISTRY.get(name).wakes_on or ()
    happened = {row.event for row in TABLE[name]}
    assert [each for each in awaited if not any(map(each.matches, happened))] == []
    assert [each for each in happened if not any(known.matches(each) for known in awaited)] == []


def test_wakes_a_pod_kept_off_by_a_nominated_one_when_that_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def takes_its_time(victim: Pod) -> None:
        """The victim is told to go and stays for now."""

    with Simulation() as sim:
        monkeypatch.setattr(sim.cluster, "delete_pod", takes_its_time)
        sim.apply(node("a", cpu="4", zone="z"), pod("victim", cpu="4", priority=1, on="a"))
        sim.schedule(pod("preemptor", cpu="3", priority=100, labels=WEB))
        assert sim.pod("preemptor").status.nominated_node_name == "a"
        sim.schedule(
            pod("shy", cpu=0, priority=50, affinity=anti_affinity(term("zone", app="web")))
        )
        assert "didn't match pod anti-affinity rules" in sim.why("shy")
        assert sim.where("shy") == "unschedulable"
        sim.delete(sim.pod("preemptor"))
        sim.advance(2)  # a second of backoff, and the next whole one
        assert sim.node_of("shy") == "a"
