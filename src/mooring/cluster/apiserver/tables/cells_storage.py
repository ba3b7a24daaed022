"""The columns of volumes, storage classes, drivers and devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    UNSET,
    Cells,
    Layout,
    age,
    layout,
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


def _attributes_class(value: Object, now: float) -> Cells:
    return [name_of(value), value.get("driverName", ""), age(value, now)]


def _attachment(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    return [
        name_of(value),
        spec.get("attacher", ""),
        part(spec, "source").get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        part(value, "status").get("attached", False),
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


def _slice(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    return [
        name_of(value),
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        part(spec, "pool").get("name", ""),
        age(value, now),
    ]


STORAGE: Final[dict[str, Layout]] = {
    "persistentvolumes": layout(
        _volume,
        "Name",
        "Capacity",
        "Access Modes",
        "Reclaim Policy",
        "Status",
        "Claim",
        "StorageClass",
        "VolumeAttributesClass",
        "Reason",
        "Age",
        "+VolumeMode",
    ),
    "persistentvolumeclaims": layout(
        _claim,
        "Name",
        "Status",
        "Volume",
        "Capacity",
        "Access Modes",
        "StorageClass",
        "VolumeAttributesClass",
        "Age",
        "+VolumeMode",
    ),
    "storageclasses.storage.k8s.io": layout(
        _storage_class,
        "Name",
        "Provisioner",
        "ReclaimPolicy",
        "VolumeBindingMode",
        "AllowVolumeExpansion",
        "Age",
    ),
    "volumeattributesclasses.storage.k8s.io": layout(
        _attributes_class, "Name", "DriverName", "Age"
    ),
    "volumeattachments.storage.k8s.io": layout(
        _attachment, "Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"
    ),
    "csinodes.storage.k8s.io": layout(_csi_node, "Name", "Drivers:integer", "Age"),
    "csidrivers.storage.k8s.io": layout(
        _csi_driver,
        "Name",
        "AttachRequired:boolean",
        "PodInfoOnMount:boolean",
        "StorageCapacity:boolean",
        "TokenRequests",
        "RequiresRepublish:boolean",
        "Modes",
        "Age",
    ),
    "resourceclaims.resource.k8s.io": layout(_device_claim, "Name", "State", "Age"),
    "resourceslices.resource.k8s.io": layout(_slice, "Name", "Node", "Driver", "Pool", "Age"),
}
