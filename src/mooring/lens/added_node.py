"""Nodes that could be added: like those that are there, or larger if none of them would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import structs

from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import NO_RESOURCES, ObjectMeta, ResourceList
from mooring.api.requests import amount, quantity_of
from mooring.api.wellknown import HOSTNAME
from mooring.cache.pods import Pod
from mooring.framework.explaining import LAST_RESORT, Edit, ObjectChange

NAME: Final = "added-node"
FAMILY: Final = "add a node"
_OF_CONDITIONS: Final = "node.kubernetes.io/"


def imagined_nodes(nodes: Iterable[core.Node], pod: Pod) -> Iterator[Edit]:
    """One edit per shape among these nodes, those with room for the pod first."""
    shapes: dict[object, core.Node] = {}
    for node in nodes:
        shape = _fresh(node)
        shapes.setdefault((shape.spec, shape.status.allocatable, shape.metadata.labels), node)
    shortages = {id(node): _shortage(node, pod) for node in shapes.values()}
    ordered = sorted(shapes.values(), key=lambda node: len(shortages[id(node)]))
    for node in ordered:
        missing = shortages[id(node)]
        if not missing:
            yield _addition(f"add a node like {node.name}", _fresh(node))
    for node in ordered:
        missing = shortages[id(node)]
        if missing:
            more = ResourceList({**node.status.allocatable, **missing})
            status = structs.replace(node.status, allocatable=more)
            amounts = " and ".join(f"{quantity} {name}" for name, quantity in missing.items())
            text = f"add a node like {node.name}, with {amounts}"
            yield _addition(text, _fresh(structs.replace(node, status=status)))


def _addition(text: str, node: core.Node) -> Edit:
    change = ObjectChange(core.Node, "", NAME, lambda before: node)
    return Edit(target="cluster", text=text, changes=(change,), family=FAMILY, cost=LAST_RESORT)


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
