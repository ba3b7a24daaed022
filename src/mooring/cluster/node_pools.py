"""Pools of equal nodes: `gpu:4,cpu=64,nvidia.com/gpu=8`, or a file with several.

The pools of a cluster are in the ConfigMap `mooring-pools` in kube-system; a changed number there
scales the pool (`controllers/node_pools.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from mooring.api import yaml
from mooring.api.quantity import parse_quantity
from mooring.api.taints import parse_taint
from mooring.api.unreadable import NOT_YAML, why_unreadable
from mooring.cluster.apiserver.names import label_faults
from mooring.cluster.apiserver.resources import CONFIG_MAPS
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.node_templates import MAX_NODES, NodeTemplate
from mooring.cluster.simulated_devices import DEVICES, read_devices

POOL: Final = "mooring.dev/pool"
"""The label of the nodes of a pool."""
POOLS: Final = ("kube-system", "mooring-pools")
"""Namespace and name of the ConfigMap with the pools of a cluster."""

_SINGLE: Final = {"cpu": "cpu", "memory": "memory", "storage": "storage", "type": "instance_type"}
_KEYS: Final = (
    "cpu, memory, pods, storage, type, zone, label.KEY, annotation.KEY, taint, devices, or a "
    "resource such as nvidia.com/gpu"
)


class NodePool(msgspec.Struct, frozen=True):
    """A name and the nodes that it stands for."""

    name: str
    template: NodeTemplate


def make_pool(name: str, count: int, **fields: Any) -> NodePool:
    """A pool; its nodes are NAME-0, NAME-1, … and have the label `mooring.dev/pool`."""
    if label_faults(name):
        raise ValueError(
            f"pool {name!r}: expected a name of lower-case letters, digits and '-', such as gpu"
        )
    if not 0 <= count <= MAX_NODES:
        raise ValueError(f"pool {name}: expected 0 to {MAX_NODES} nodes, got {count}")
    labels = {**fields.pop("labels", {}), POOL: name}
    template = NodeTemplate(name=f"{name}-{{i}}", count=count, labels=labels, **fields)
    for resource, amount in {
        "cpu": template.cpu,
        "memory": template.memory,
        "storage": template.storage,
        **template.resources,
    }.items():
        try:
            parse_quantity(amount)
        except ValueError as error:
            raise ValueError(f"pool {name}: {resource}: {error}") from error
    try:
        for taint in template.taints:
            parse_taint(taint)
        read_devices(template.annotations.get(DEVICES, ""))
    except ValueError as error:
        raise ValueError(f"pool {name}: {error}") from error
    return NodePool(name, template)


def parse_pool(text: str) -> NodePool:
    """Read `NAME:COUNT,key=value,…`; ValueError says what was expected."""
    head, *entries = text.split(",")
    name, colon, count = head.partition(":")
    if not colon or not count.isdecimal():
        raise ValueError(f"pool {text!r}: expected NAME:COUNT first, such as gpu:4")
    fields: dict[str, Any] = {"labels": {}, "annotations": {}, "resources": {}}
    taints, zones, devices = [], [], []
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not value:
            raise ValueError(f"pool {name}: {entry!r}: expected KEY=VALUE with {_KEYS}")
        if key in _SINGLE:
            fields[_SINGLE[key]] = value
        elif key == "pods":
            if not value.isdecimal():
                raise ValueError(f"pool {name}: pods: expected a number, got {value!r}")
            fields["pods"] = int(value)
        elif key == "zone":
            zones.append(value)
        elif key == "taint":
            taints.append(value)
        elif key == "devices":
            devices.append(value)
        elif key.startswith(("label.", "annotation.")):
            part, _, inner = key.partition(".")
            fields[f"{part}s"][inner] = value
        elif "/" in key:
            fields["resources"][key] = value
        else:
            raise ValueError(f"pool {name}: {key!r}: expected {_KEYS}")
    if devices:
        fields["annotations"][DEVICES] = ";".join(devices)
    return make_pool(name, int(count), taints=tuple(taints), zones=tuple(zones), **fields)


class _PoolEntry(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A pool as a file has it."""

    name: str
    count: int = 1
    cpu: str | int = "8"
    memory: str = "32Gi"
    pods: int = 110
    storage: str = "100Gi"
    resources: dict[str, str | int] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    instance_type: str = "simulated"


class _PoolFile(msgspec.Struct, forbid_unknown_fields=True):
    pools: list[_PoolEntry]


def read_pools(path: Path) -> list[NodePool]:
    """The pools of a YAML file `pools: [{name, count, cpu, …}]`; OSError or ValueError."""
    try:
        loaded = yaml.load(path.read_bytes())
    except NOT_YAML as error:
        raise ValueError(f"{path}: {why_unreadable(error)}") from error
    try:
        entries = msgspec.convert(loaded, _PoolFile).pools
        fields = [msgspec.structs.asdict(entry) for entry in entries]
        return [make_pool(entry.pop("name"), entry.pop("count"), **entry) for entry in fields]
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def check_names(pools: Iterable[NodePool]) -> None:
    """ValueError if two pools have the same name."""
    names = set()
    for pool in pools:
        if pool.name in names:
            raise ValueError(f"pool {pool.name}: expected once, found twice")
        names.add(pool.name)


# --- in the cluster ------------------------------------------------------------------------------


def encode_pool(template: NodeTemplate) -> str:
    return msgspec.json.encode(template).decode()


def decode_pool(name: str, text: str) -> NodePool:
    """ValueError if it is not what `encode_pool` returns."""
    try:
        return NodePool(name, msgspec.json.decode(text, type=NodeTemplate))
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"pool {name}: {error}") from error


def scaled(data: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, str]:
    """The changed entries of the ConfigMap for pools of these sizes."""
    unknown = [name for name in sizes if name not in data]
    if unknown:
        known = ", ".join(sorted(data)) or "none"
        raise ValueError(f"pool {unknown[0]}: expected one of the cluster's pools: {known}")
    found = {}
    for name, count in sizes.items():
        template = decode_pool(name, data[name]).template
        found[name] = encode_pool(msgspec.structs.replace(template, count=count))
    return found


def publish_pools(verbs: Verbs, pools: Iterable[NodePool]) -> None:
    """Write the pools of a cluster into its ConfigMap, beside those that are there."""
    namespace, name = POOLS
    data = {pool.name: encode_pool(pool.template) for pool in pools}

    def change(current: Object) -> None:
        current["data"] = {**(current.get("data") or {}), **data}

    if verbs.store.get(CONFIG_MAPS, namespace, name) is None:
        verbs.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, namespace=namespace)
    else:
        verbs.modify(CONFIG_MAPS, namespace, name, change)
