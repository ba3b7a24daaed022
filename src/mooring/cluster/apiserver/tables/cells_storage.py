"""The columns of volumes, storage classes, drivers and devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    UNSET,
    Cells,
    age,
    layout,
    layout_of_paths,
    name_of,
    part,
)

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _volume(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    claim = spec.get("claimRef")
    return [
        name_of(value),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(value),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(value),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        age(value, now),
        spec.get("volumeMode", UNSET),
    ]


def _claim(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(value),
        _phase(value),
        spec.get("volumeName", ""),
        part(status, "capacity").get("storage", "0") if is_bound else "",
        _modes(status.get("accessModes")) if is_bound else "",
        _class(value),
        spec.get("volumeAttributesClassName", UNSET),
        age(value, now),
        spec.get("volumeMode", UNSET),
    ]


def _phase(value: Object) -> str:
    if "deletionTimestamp" in value["metadata"]:
        return "Terminating"
    return str(part(value, "status").get("phase", ""))


def _modes(modes: Iterable[str] | None) -> str:
    given = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class(value: Object) -> str:
    annotations = value["metadata"].get("annotations") or {}
    return str(annotations.get(_OLD_CLASS, part(value, "spec").get("storageClassName", "")))


def _storage_class(value: Object, now: float) -> Cells:
    annotations = value["metadata"].get("annotations") or {}
    is_default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{name_of(value)} (default)" if is_default else name_of(value),
        value.get("provisioner", ""),
        value.get("reclaimPolicy", "Delete"),
        value.get("volumeBindingMode", "Immediate"),
        value.get("allowVolumeExpansion", False),
        age(value, now),
    ]


def _csi_node(value: Object, now: float) -> Cells:
    return [name_of(value), len(part(value, "spec").get("drivers") or ()), age(value, now)]


def _csi_driver(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    tokens = spec.get("tokenRequests")
    return [
        name_of(value),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else ",".join(token.get("audience", "") for token in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        age(value, now),
    ]


def _device_claim(value: Object, now: float) -> Cells:
    status = part(value, "status")
    states = ["deleted"] if "deletionTimestamp" in value["metadata"] else []
    if "allocation" not in status:
        states = states or ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return [name_of(value), ",".join(states), age(value, now)]


PERSISTENT_VOLUME: Final = layout(
    _volume,
    "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
    "VolumeAttributesClass, Reason, Age, +VolumeMode",
)
PERSISTENT_VOLUME_CLAIM: Final = layout(
    _claim,
    "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, "
    "+VolumeMode",
)
STORAGE_CLASS: Final = layout(
    _storage_class,
    "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
)
VOLUME_ATTRIBUTES_CLASS: Final = layout_of_paths("Name, DriverName=driverName, Age")
VOLUME_ATTACHMENT: Final = layout_of_paths(
    "Name, Attacher=spec.attacher, PV=spec.source.persistentVolumeName, Node=spec.nodeName, "
    "Attached:boolean=status.attached, Age"
)
CSI_NODE: Final = layout(_csi_node, "Name, Drivers:integer, Age")
CSI_DRIVER: Final = layout(
    _csi_driver,
    "Name, AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, "
    "TokenRequests, RequiresRepublish:boolean, Modes, Age",
)
RESOURCE_CLAIM: Final = layout(_device_claim, "Name, State, Age")
RESOURCE_SLICE: Final = layout_of_paths(
    "Name, Node=spec.nodeName, Driver=spec.driver, Pool=spec.pool.name, Age"
)
