"""The columns of volumes, storage classes, drivers and devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import NONE, UNSET, Cells, layout, name_of, part

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
    spec = part(value, "spec")
    claim = spec.get("claimRef")
    return {
        "Capacity": part(spec, "capacity").get("storage", "0"),
        "Access Modes": _modes(spec.get("accessModes")),
        "Status": _phase(value),
        "Claim": f"{claim.get('namespace', '')}/{claim.get('name', '')}"
        if claim is not None
        else "",
        "StorageClass": _class(value),
    }


def _claim(value: Object, now: float) -> Cells:
    status = part(value, "status")
    is_bound = bool(part(value, "spec").get("volumeName"))
    return {
        "Status": _phase(value),
        "Capacity": part(status, "capacity").get("storage", "0") if is_bound else "",
        "Access Modes": _modes(status.get("accessModes")) if is_bound else "",
        "StorageClass": _class(value),
    }


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
    return {
        "Name": f"{name_of(value)} (default)" if is_default else name_of(value),
        "AllowVolumeExpansion": value.get("allowVolumeExpansion", False),
    }


def _csi_node(value: Object, now: float) -> Cells:
    return {"Drivers": len(part(value, "spec").get("drivers") or ())}


def _csi_driver(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    tokens = spec.get("tokenRequests")
    return {
        "AttachRequired": spec.get("attachRequired", True),
        "TokenRequests": (
            UNSET if tokens is None else ",".join(token.get("audience", "") for token in tokens)
        ),
        "Modes": ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
    }


def _device_claim(value: Object, now: float) -> Cells:
    status = part(value, "status")
    states = ["deleted"] if "deletionTimestamp" in value["metadata"] else []
    if "allocation" not in status:
        states = states or ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return {"State": ",".join(states)}


COLUMNS: Final = {
    "persistentvolumeclaims": layout(
        "Name, Status, Volume=spec.volumeName, Capacity, Access Modes, StorageClass, "
        "VolumeAttributesClass=spec.volumeAttributesClassName|<unset>, Age, "
        "+VolumeMode=spec.volumeMode|<unset>",
        _claim,
    ),
    "persistentvolumes": layout(
        "Name, Capacity, Access Modes, Reclaim Policy=spec.persistentVolumeReclaimPolicy, Status, "
        "Claim, StorageClass, VolumeAttributesClass=spec.volumeAttributesClassName|<unset>, "
        "Reason=status.reason, Age, +VolumeMode=spec.volumeMode|<unset>",
        _volume,
    ),
    "resourceclaims.resource.k8s.io": layout("Name, State, Age", _device_claim),
    "resourceslices.resource.k8s.io": layout(
        "Name, Node=spec.nodeName, Driver=spec.driver, Pool=spec.pool.name, Age"
    ),
    "csidrivers.storage.k8s.io": layout(
        "Name, AttachRequired:boolean, PodInfoOnMount:boolean=spec.podInfoOnMount, "
        "StorageCapacity:boolean=spec.storageCapacity, TokenRequests, "
        "RequiresRepublish:boolean=spec.requiresRepublish, Modes, Age",
        _csi_driver,
    ),
    "csinodes.storage.k8s.io": layout("Name, Drivers:integer, Age", _csi_node),
    "storageclasses.storage.k8s.io": layout(
        "Name, Provisioner=provisioner, ReclaimPolicy=reclaimPolicy|Delete, "
        "VolumeBindingMode=volumeBindingMode|Immediate, AllowVolumeExpansion, Age",
        _storage_class,
    ),
    "volumeattachments.storage.k8s.io": layout(
        "Name, Attacher=spec.attacher, PV=spec.source.persistentVolumeName, Node=spec.nodeName, "
        "Attached:boolean=status.attached, Age"
    ),
    "volumeattributesclasses.storage.k8s.io": layout("Name, DriverName=driverName, Age"),
}
"""The columns of these kinds, by the key of their resource."""
