"""Claims, volumes and classes in one line, for the tests of the volume plugins."""

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.api import codec
from mooring.api.core import PersistentVolume, PersistentVolumeClaim
from mooring.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from mooring.framework import Pod
from mooring.testing.builders import ZONE, pod

DRIVER = "csi.example.com"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED = "volume.kubernetes.io/selected-node"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def claim(
    name: str = "data",
    *,
    namespace: str = "default",
    size: str | None = "1Gi",
    storage_class: str | None = "wait",
    bound_to: str = "",
    volume_name: str = "",
    selected: str | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    owner: Pod | None = None,
    phase: str = "Pending",
    deleting: bool = False,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> PersistentVolumeClaim:
    """A claim; `bound_to` a volume, or only asking for one by `volume_name`."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "resourceVersion": "1",
        "annotations": {
            **(BOUND if bound_to else {}),
            **({} if selected is None else {SELECTED: selected}),
            **(annotations or {}),
        },
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner is not None:
        metadata["ownerReferences"] = [
            {"kind": "Pod", "name": owner.name, "uid": owner.uid, "controller": True}
        ]
    full: dict[str, Any] = {
        "accessModes": list(modes),
        "resources": {"requests": {} if size is None else {"storage": size}},
        "volumeName": bound_to or volume_name,
        **({} if storage_class is None else {"storageClassName": storage_class}),
        **(spec or {}),
    }
    raw = {"metadata": metadata, "spec": full, "status": {"phase": phase}}
    return codec.convert(raw, PersistentVolumeClaim)


def volume(
    name: str = "pv",
    *,
    size: str = "1Gi",
    storage_class: str = "wait",
    on: str | None = None,
    zone: str | None = None,
    affinity: list[dict[str, Any]] | None = None,
    labels: Mapping[str, str] | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    prebound_to: str = "",
    uid: str = "",
    phase: str = "Available",
    driver: str = DRIVER,
    source: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> PersistentVolume:
    """A volume, reachable `on` one host, in one `zone`, by `affinity` terms, or from everywhere."""
    terms = affinity
    if on is not None:
        terms = [term("kubernetes.io/hostname", on)]
    if zone is not None:
        terms = [term(ZONE, zone)]
    full: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
        **(source or {"csi": {"driver": driver, "volumeHandle": f"handle-{name}"}}),
        **(spec or {}),
    }
    if terms is not None:
        full["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if prebound_to:
        namespace, _, short = prebound_to.rpartition("/")
        full["claimRef"] = {"namespace": namespace or "default", "name": short, "uid": uid}
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "labels": dict(labels or {}),
    }
    raw = {"metadata": metadata, "spec": full, "status": {"phase": phase}}
    return codec.convert(raw, PersistentVolume)


def term(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def storage_class(
    name: str = "wait",
    *,
    provisioner: str = DRIVER,
    mode: str | None = "WaitForFirstConsumer",
    zones: Iterable[str] = (),
    topologies: list[Any] | None = None,
) -> StorageClass:
    """A class; `zones` are where its volumes may be made."""
    allowed = topologies or []
    if zones:
        allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    raw: dict[str, Any] = {
        "metadata": {"name": name, "resourceVersion": "1"},
        "provisioner": provisioner,
        "allowedTopologies": allowed,
    }
    if mode is not None:
        raw["volumeBindingMode"] = mode
    return codec.convert(raw, StorageClass)


def csi_driver(name: str = DRIVER, *, tracks_capacity: bool | None = True) -> CSIDriver:
    raw = {"metadata": {"name": name}, "spec": {"storageCapacity": tracks_capacity}}
    return codec.convert(raw, CSIDriver)


def capacity(
    name: str = "cap",
    *,
    storage_class: str = "wait",
    size: str | None = "10Gi",
    largest: str | None = None,
    topology: Mapping[str, Any] | None = None,
) -> CSIStorageCapacity:
    """How much is left where the nodes match `topology`; None is nowhere, {} everywhere."""
    raw: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "storage"},
        "storageClassName": storage_class,
        "capacity": size,
        "maximumVolumeSize": largest,
        "nodeTopology": topology,
    }
    return codec.convert(raw, CSIStorageCapacity)


def csi_node(
    name: str,
    *,
    limits: Mapping[str, int | None] | None = None,
    migrated: Iterable[str] = (),
) -> CSINode:
    """A CSINode; a limit of None means that the driver gives none."""
    drivers = [
        {"name": driver, "allocatable": {} if limit is None else {"count": limit}}
        for driver, limit in (limits or {}).items()
    ]
    annotations = {MIGRATED: ",".join(migrated)} if migrated else {}
    raw = {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}
    return codec.convert(raw, CSINode)


def attachment(name: str, node_name: str, volume_name: str | None) -> VolumeAttachment:
    source = {"persistentVolumeName": volume_name}
    spec = {"attacher": DRIVER, "nodeName": node_name, "source": source}
    return codec.convert({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)


def user(
    name: str = "pod",
    *claims: str,
    ephemeral: Iterable[str] = (),
    inline: Iterable[Mapping[str, Any]] = (),
    **more: Any,
) -> Pod:
    """A pod that uses these claims, claims made for it, and volumes it describes itself."""
    volumes: list[dict[str, Any]] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": text}}
        for number, text in enumerate(claims)
    ]
    volumes += [{"name": text, "ephemeral": {}} for text in ephemeral]
    volumes += [{"name": f"i{number}", **source} for number, source in enumerate(inline)]
    return pod(name, spec={"volumes": volumes}, **more)
