"""Snapshots for other tools: exports of kube-scheduler-simulator, YAML for kubectl and kwokctl.

What a server sets is left out, because servers refuse objects that have it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import yaml

from mooring import config as cfg
from mooring.api import codec
from mooring.api.meta import Object
from mooring.lens.snapshot import Snapshot
from mooring.lens.writing import stripped

_SIMULATOR: Final = {
    "pods": "pods",
    "nodes": "nodes",
    "pvs": "persistentvolumes",
    "pvcs": "persistentvolumeclaims",
    "storageClasses": "storageclasses",
    "priorityClasses": "priorityclasses",
    "namespaces": "namespaces",
}
_SERVER_FIELDS: Final = ("uid", "resourceVersion", "creationTimestamp", "generation")
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def manifest(value: Object) -> dict[str, Any]:
    """An object as it can be applied to another cluster; its status is kept."""
    found: dict[str, Any] = codec.to_builtins(stripped(value))
    meta = found.get("metadata", {})
    for field in _SERVER_FIELDS:
        meta.pop(field, None)
    # Owners would have other uids there, and without an owner garbage collection takes the object.
    meta.pop("ownerReferences", None)
    status = found.get("status", {})
    if value.KIND == "Node" and "allocatable" in status:
        status["capacity"] = dict(status["allocatable"])
    return found


def to_simulator(snapshot: Snapshot) -> bytes:
    """What kube-scheduler-simulator imports; it knows seven kinds."""
    export: dict[str, Any] = {
        name: [manifest(one) for one in getattr(snapshot.cluster, field)]
        for name, field in _SIMULATOR.items()
    }
    # Without one its importer stops.
    config = snapshot.config or {"apiVersion": cfg.API_VERSION, "kind": cfg.KIND}
    return json.dumps({**export, "schedulerConfig": config}, indent=1).encode() + b"\n"


def to_yaml(snapshot: Snapshot) -> Iterator[bytes]:
    """One document for each object, in an order in which they can be created."""
    last = ("nodes", "pods")
    cluster = snapshot.cluster
    for field in (*(one for one in cluster.__struct_fields__ if one not in last), *last):
        for value in getattr(cluster, field):
            yield b"---\n"
            yield yaml.dump(manifest(value), Dumper=_DUMPER, sort_keys=False).encode()
