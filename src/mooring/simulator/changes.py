"""What is imagined to be done to a cluster: nodes drained, added or gone, pods scaled or applied.

`imagine` applies it to the objects of a snapshot before a scheduler sees them. What schedulers do
not do is done here as the rest of Kubernetes does it: evicted pods come back without a node, the
pods of DaemonSets follow their nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec import structs

from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.wellknown import HOSTNAME
from mooring.cache.pods import Pod
from mooring.errors import ConfigError, Problem
from mooring.lens.added_node import slices_like
from mooring.lens.snapshot import ClusterState
from mooring.preemption.budgets import DisruptionBudgets
from mooring.simulator.workloads import Scaling, scaled, unscheduled

_MIRROR = "kubernetes.io/config.mirror"


class ClusterChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What is done, in the order of the fields."""

    applied: ClusterState = ClusterState()
    scale: tuple[Scaling, ...] = ()
    add_nodes: int = 0
    like: core.Node | None = None  # what the added nodes look like
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    remove_nodes: tuple[str, ...] = ()


class BudgetBreach(msgspec.Struct, frozen=True, rename="camel"):
    """A disruption budget that allows fewer evictions than were imagined."""

    budget: str  # "namespace/name"
    allowed: int
    evicted: int
    pods: tuple[str, ...]  # whose eviction it forbids


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster after the changes."""

    cluster: ClusterState
    evicted: tuple[str, ...] = ()  # pods that lost their node, "namespace/name"
    unmanaged: tuple[str, ...] = ()  # of these, without a controller that would make them again
    budgets: tuple[BudgetBreach, ...] = ()
    added: tuple[str, ...] = ()  # nodes


def changed(cluster: ClusterState, changes: ClusterChanges) -> Changed:
    """The cluster after the changes; ConfigError if they name what is not there."""
    _check_names(cluster, changes)
    cluster = _with_applied(cluster, changes.applied)
    for scaling in changes.scale:
        cluster = scaled(cluster, scaling)
    before = {node.metadata.name for node in cluster.nodes}
    cluster = _with_nodes(cluster, changes)
    added = tuple(node.metadata.name for node in cluster.nodes if node.metadata.name not in before)
    cordoned = {*changes.cordon, *changes.drain}
    nodes = tuple(
        structs.replace(node, spec=structs.replace(node.spec, unschedulable=True))
        if node.metadata.name in cordoned
        else node
        for node in cluster.nodes
        if node.metadata.name not in changes.remove_nodes
    )
    gone = {*changes.drain, *changes.remove_nodes}
    evicted = [pod for pod in cluster.pods if pod.spec.node_name in gone and is_evictable(pod)]
    drained = [pod for pod in evicted if pod.spec.node_name in changes.drain]
    cluster = structs.replace(
        cluster, nodes=nodes, pods=_without_nodes(cluster.pods, gone, changes.remove_nodes)
    )
    return Changed(
        cluster=cluster,
        evicted=tuple(pod.key for pod in evicted),
        unmanaged=tuple(pod.key for pod in evicted if pod.metadata.controller is None),
        budgets=_breaches(cluster, drained),
        added=added,
    )


def is_evictable(pod: core.Pod) -> bool:
    """Whether a drain evicts it: not if it has ended, or comes and goes with its node."""
    return pod.status.phase not in ("Succeeded", "Failed") and not follows_node(pod)


def follows_node(pod: core.Pod) -> bool:
    """Whether a pod belongs to its node: of a DaemonSet, or of the kubelet itself."""
    owner = pod.metadata.controller
    is_of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
    return is_of_node or _MIRROR in pod.metadata.annotations


def _check_names(cluster: ClusterState, changes: ClusterChanges) -> None:
    known = {node.metadata.name for node in cluster.nodes}
    known |= {node.metadata.name for node in changes.applied.nodes}
    problems = []
    for flag, names in (
        ("--cordon", changes.cordon),
        ("--drain", changes.drain),
        ("--remove-nodes", changes.remove_nodes),
    ):
        missing = [name for name in names if name not in known]
        problems += [Problem(flag, f"there is no node {name}") for name in missing]
    if changes.add_nodes and changes.like is None:
        problems.append(Problem("--add-nodes", "expected --like NODE or --like FILE beside it"))
    if problems:
        raise ConfigError(problems)


def _with_applied(cluster: ClusterState, applied: ClusterState) -> ClusterState:
    """Objects of the same name are replaced; new ones come last, as in a listing by time."""
    replaced = {}
    for field in cluster.__struct_fields__:
        new = {one.key: one for one in getattr(applied, field)}
        if new:
            old = getattr(cluster, field)
            kept = tuple(new.pop(one.key, one) for one in old)
            replaced[field] = (*kept, *new.values())
    return structs.replace(cluster, **replaced) if replaced else cluster


def _with_nodes(cluster: ClusterState, changes: ClusterChanges) -> ClusterState:
    model = changes.like
    if not changes.add_nodes or model is None:
        return cluster
    known = {node.metadata.name for node in cluster.nodes}
    names: list[str] = []
    number = 1
    while len(names) < changes.add_nodes:
        name = f"{model.metadata.name}-new-{number}"
        number += 1
        if name not in known:
            names.append(name)
    nodes = tuple(_node_like(model, name) for name in names)
    residents = [
        pod
        for pod in cluster.pods
        if pod.spec.node_name == model.metadata.name and follows_node(pod)
    ]
    pods = tuple(_pod_like(pod, name) for name in names for pod in residents)
    csi = [one for one in cluster.csinodes if one.metadata.name == model.metadata.name]
    csinodes = tuple(
        structs.replace(one, metadata=structs.replace(one.metadata, name=name, uid=f"uid-{name}"))
        for name in names
        for one in csi
    )
    local = [one for one in cluster.resourceslices if one.spec.node_name == model.metadata.name]
    slices = tuple(one for name in names for one in slices_like(local, name))
    return structs.replace(
        cluster,
        nodes=(*cluster.nodes, *nodes),
        pods=(*cluster.pods, *pods),
        csinodes=(*cluster.csinodes, *csinodes),
        resourceslices=(*cluster.resourceslices, *slices),
    )


def _node_like(model: core.Node, name: str) -> core.Node:
    """A new node of the same shape: nothing is attached to it, and it is not cordoned."""
    labels = {**model.metadata.labels}
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    meta = structs.replace(model.metadata, name=name, uid=f"uid-{name}", labels=FrozenDict(labels))
    spec = structs.replace(
        model.spec,
        unschedulable=False,
        provider_id="",
        taints=tuple(
            taint
            for taint in model.spec.taints
            if not taint.key.startswith("node.kubernetes.io/")  # of its state, not of its shape
        ),
    )
    status = structs.replace(model.status, volumes_in_use=(), volumes_attached=())
    return structs.replace(model, metadata=meta, spec=spec, status=status)


def _pod_like(pod: core.Pod, node_name: str) -> core.Pod:
    name = f"{pod.metadata.name}-on-{node_name}"
    meta = structs.replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}/{node_name}")
    return structs.replace(pod, metadata=meta, spec=structs.replace(pod.spec, node_name=node_name))


def _without_nodes(
    pods: Iterable[core.Pod], gone: Collection[str], removed: Collection[str]
) -> tuple[core.Pod, ...]:
    """Evicted pods come last: their controllers make them again."""
    stay: list[core.Pod] = []
    again: list[core.Pod] = []
    for pod in pods:
        if pod.spec.node_name not in gone:
            stay.append(pod)
        elif is_evictable(pod):
            again.append(recreated(pod))
        elif pod.spec.node_name not in removed:
            stay.append(pod)
    return (*stay, *again)


def recreated(pod: core.Pod) -> core.Pod:
    """The pod that a controller makes in place of one that is gone; under its name, to tell."""
    meta = structs.replace(
        pod.metadata,
        uid=f"{pod.metadata.uid}/again",
        deletion_timestamp=None,
        creation_timestamp=None,
        resource_version="",
    )
    return unscheduled(structs.replace(pod, metadata=meta))


def _breaches(cluster: ClusterState, evicted: list[core.Pod]) -> tuple[BudgetBreach, ...]:
    found = []
    pods = [Pod(pod) for pod in evicted]
    for budget in cluster.poddisruptionbudgets:
        violating, _ = DisruptionBudgets([budget]).split(pods)
        if violating:
            allowed = max(budget.status.disruptions_allowed, 0)
            found.append(
                BudgetBreach(
                    budget=budget.key,
                    allowed=allowed,
                    evicted=allowed + len(violating),
                    pods=tuple(pod.key for pod in violating),
                )
            )
    return tuple(found)
