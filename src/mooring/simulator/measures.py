"""How full, how even and how fragmented a cluster is, in figures that can be compared."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from mooring.api.quantity import Format, Quantity
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.cache.arrays import BoolArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes

_SCALED: Final = (CPU, MEMORY)  # resources by which fragmentation is measured
_DIGITS: Final = 4
_BINARY: Final = (MEMORY, EPHEMERAL_STORAGE)


class ResourceUse(msgspec.Struct, frozen=True, rename="camel"):
    """One resource over all nodes; shares are between 0 and 1, or more if overcommitted."""

    resource: str
    allocatable: str
    requested: str
    utilisation: float  # requested / allocatable
    imbalance: float  # standard deviation of the requested share over the nodes
    fragmentation: float  # part of what is free on nodes without room for a pod of middle size


def format_amount(resource: str, amount: int) -> str:
    """An amount as it stands in a manifest: 1500m, 2Gi."""
    if resource == CPU:
        return str(Quantity(amount * 10**6))
    is_binary = resource in _BINARY or resource.startswith("hugepages-")
    kind = Format.BINARY_SI if is_binary else Format.DECIMAL_SI
    return str(Quantity(amount * 10**9, kind))


def measured(nodes: Nodes, pods: Iterable[Pod]) -> tuple[ResourceUse, ...]:
    """Every resource that nodes offer, the usual ones first; cordoned nodes do not count."""
    nodes = nodes.take(~nodes.unschedulable)
    middle = _middle_requests(pods)
    is_full = np.zeros(len(nodes), dtype=np.bool_)  # no room for a pod of middle size
    for resource in (*_SCALED, PODS):
        is_full |= nodes.spare(resource) < middle[resource]
    return tuple(_use(nodes, resource, is_full) for resource in _offered(nodes))


def _use(nodes: Nodes, resource: str, is_full: BoolArray) -> ResourceUse:
    offered, taken = nodes.allocatable(resource), nodes.requested(resource)
    total, used = int(offered.sum()), int(taken.sum())
    has = offered > 0
    shares = taken[has] / offered[has]
    free = np.maximum(offered - taken, 0)
    unused = int(free.sum())
    lost = int(free[is_full].sum()) if resource in _SCALED else 0
    return ResourceUse(
        resource=resource,
        allocatable=format_amount(resource, total),
        requested=format_amount(resource, used),
        utilisation=_share(used, total),
        imbalance=round(float(shares.std()), _DIGITS) if len(shares) else 0.0,
        fragmentation=_share(lost, unused),
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0


def _offered(nodes: Nodes) -> list[str]:
    names = {name for node in nodes for name in node.api.status.allocatable}
    usual = [CPU, MEMORY, PODS]
    found = [name for name in usual if name in names]
    rest = sorted(name for name in names - set(usual) if int(nodes.allocatable(name).sum()))
    return [*found, *rest]


def _middle_requests(pods: Iterable[Pod]) -> dict[str, int]:
    amounts: dict[str, list[int]] = {resource: [] for resource in _SCALED}
    for pod in pods:
        for resource, found in amounts.items():
            if asked := pod.requests(resource):
                found.append(asked)
    middle = {
        name: int(statistics.median(found)) if found else 0 for name, found in amounts.items()
    }
    return {**middle, PODS: 1}
