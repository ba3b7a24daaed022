"""Nodes that could be added: like those that are there, or larger if none of them would do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import structs

from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import NO_RESOURCES, Object, ObjectMeta, ResourceList
from mooring.api.requests import amount, quantity_of
from mooring.api.resource import ResourceSlice
from mooring.api.wellknown import HOSTNAME
from mooring.cache.pods import Pod
from mooring.framework.explaining import LAST_RESORT, Edit, ObjectChange

NAME: Final = "added-node"
FAMILY: Final = "add a node"
_OF_CONDITIONS: Final = "node.kubernetes.io/"


def imagined_nodes(
    nodes: Iterable[core.Node], pod: Pod, slices: Iterable[ResourceSlice] = ()
) -> Iterator[Edit]:
    """One edit per shape among these nodes, those with room for the pod first.

    They have the devices of the nodes they are like: `slices` are those of the cluster.
    """
    of_node: dict[str, list[ResourceSlice]] = {}
    for one in slices:
        of_node.setdefault(one.spec.node_name or "", []).append(one)
    shapes: dict[object, core.Node] = {}
    for node in nodes:
        shape = _fresh(node)
        devices = tuple(one.spec.devices for one in of_node.get(node.name, ()))
        key = (shape.spec, shape.status.allocatable, shape.metadata.labels, devices)
        shapes.setdefault(key, node)
    shortages = {id(node): _shortage(node, pod) for node in shapes.values()}
    ordered = sorted(shapes.values(), key=lambda node: len(shortages[id(node)]))
    for node in ordered:
        missing = shortages[id(node)]
        if not missing:
            text = f"add a node like {node.name}"
            yield _addition(text, _fresh(node), of_node.get(node.name, ()))
    for node in ordered:
        missing = shortages[id(node)]
        if missing:
            more = ResourceList({**node.status.allocatable, **missing})
            status = structs.replace(node.status, allocatable=more)
            amounts = " and ".join(f"{quantity} {name}" for name, quantity in missing.items())
            text = f"add a node like {node.name}, with {amounts}"
            fresh = _fresh(structs.replace(node, status=status))
            yield _addition(text, fresh, of_node.get(node.name, ()))


def _addition(text: str, node: core.Node, slices: Iterable[ResourceSlice]) -> Edit:
    added: list[core.Node | ResourceSlice] = [node, *slices_like(slices, NAME)]
    changes = tuple(ObjectChange(type(one), "", one.name, _becomes(one)) for one in added)
    return Edit(target="cluster", text=text, changes=changes, family=FAMILY, cost=LAST_RESORT)


def _becomes(value: Object) -> Callable[[object], Object]:
    return lambda before: value


def slices_like(slices: Iterable[ResourceSlice], node_name: str) -> Iterator[ResourceSlice]:
    """The devices of a node, again for another one: in pools of its own."""
    for one in slices:
        pool = structs.replace(one.spec.pool, name=f"{one.spec.pool.name}-on-{node_name}")
        meta = ObjectMeta(name=f"{one.name}-on-{node_name}", uid=f"{one.uid}/{node_name}")
        spec = structs.replace(one.spec, pool=pool, node_name=node_name)
        yield structs.replace(one, metadata=meta, spec=spec)


def _fresh(node: core.Node) -> core.Node:
    """Another node like this one, empty and ready."""
    labels = {**node.metadata.labels}
    if HOSTNAME in labels:
        labels[HOSTNAME] = NAME
    taints = tuple(
        structs.replace(taint, time_added=None)
        for taint in node.spec.taints
        if not taint.key.startswith(_OF_CONDITIONS)
    )
    return core.Node(
        metadata=ObjectMeta(name=NAME, uid=NAME, labels=FrozenDict(labels)),
        spec=core.NodeSpec(taints=taints),
        status=core.NodeStatus(
            allocatable=node.status.allocatable, declared_features=node.status.declared_features
        ),
    )


def _shortage(node: core.Node, pod: Pod) -> ResourceList:
    """What an empty node of this shape lacks for the pod."""
    offered = node.status.allocatable
    wanted = {"pods": 1, **pod.all_requests}
    return (
        ResourceList(
            {
                name: quantity_of(name, units)
                for name, units in wanted.items()
                if units > 0 and (name not in offered or amount(name, offered[name]) < units)
            }
        )
        or NO_RESOURCES
    )
