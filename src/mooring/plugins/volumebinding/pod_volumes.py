"""The volumes that a pod's claims would get on a node, and the nodes where they get any.

`find_pod_volumes` is the specification, for one node. `filter_nodes` gives its statuses for all
nodes at once.
"""

from collections.abc import Mapping

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.storage import CSINode
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import (
    Untranslatable,
    migrated_plugins,
    migration_of,
    required_nodes,
    translated_nodes,
)
from mooring.plugins._csi_nodes import CSINodes
from mooring.plugins.volumebinding.matching import matched
from mooring.plugins.volumebinding.pod_claims import PodClaims
from mooring.plugins.volumebinding.reach import is_reachable, reachable
from mooring.plugins.volumebinding.reasons import NONE, Reason, status_of


class PodVolumes(msgspec.Struct, frozen=True):
    """What the claims would get on one node, if the status is OK."""

    status: fw.Status
    static_bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    dynamic_provisions: tuple[PersistentVolumeClaim, ...] = ()


# --- one node -------------------------------------------------------------------------------------


def find_pod_volumes(claims: PodClaims, node: fw.Node, objects: Objects) -> PodVolumes:
    """What every claim gets on this node; the reasons of bound and unbound claims add up."""
    try:
        reasons = _check_bound(claims, node, objects)
    except Untranslatable as problem:
        return PodVolumes(_untranslatable(problem))
    if any(unbound.selected_node != node.name for unbound in claims.to_provision):
        return PodVolumes(status_of(reasons | Reason.BIND_CONFLICT))
    static_bindings, taken = [], set[str]()
    to_provision = list(claims.to_provision)
    for unbound in claims.to_match:
        volume = unbound.candidates.pick(node.labels, taken)
        if volume is None:
            to_provision.append(unbound)
        else:
            taken.add(volume.name)
            static_bindings.append((volume, unbound.claim))
    for unbound in to_provision:
        refusal = unbound.provision.refusal(node.labels)
        if refusal:
            return PodVolumes(status_of(reasons | refusal))
    return PodVolumes(
        status_of(reasons), tuple(static_bindings), tuple(unbound.claim for unbound in to_provision)
    )


def _check_bound(claims: PodClaims, node: fw.Node, objects: Objects) -> Reason:
    """The reason of the first bound volume that can't be used."""
    for volume in claims.bound:
        if volume is None:
            return Reason.NO_SUCH_VOLUME
        if not is_volume_reachable(volume, node.name, node.labels, objects):
            return Reason.NODE_CONFLICT
    return NONE


def is_volume_reachable(
    volume: PersistentVolume, node_name: str, labels: Mapping[str, str], objects: Objects
) -> bool:
    """Whether a node can use a volume; by the driver's labels if the node has migrated to it."""
    required = required_nodes(volume)
    migration = migration_of(volume.spec)
    if migration is not None:
        csi_node = objects.get(CSINode, node_name)
        if migration.plugin in migrated_plugins(csi_node):
            required = translated_nodes(volume, migration)
    return is_reachable(required, labels)


def _untranslatable(problem: Untranslatable) -> fw.Status:
    return fw.Status.error(f"could not translate pv: {problem}")


# --- all nodes ------------------------------------------------------------------------------------


def filter_nodes(
    claims: PodClaims, nodes: fw.Nodes, objects: Objects, csi_nodes: CSINodes
) -> fw.Verdicts:
    """As the status of `find_pod_volumes`, for every node."""
    verdicts = fw.Verdicts.passing(nodes)
    reasons = _check_bound_all(claims, nodes, objects, csi_nodes, verdicts)
    if claims.unbound:
        reasons |= _check_unbound(claims, nodes)
    for combination in np.flatnonzero(np.bincount(reasons)).tolist():
        if combination:
            verdicts.reject(reasons == combination, status_of(combination))
    return verdicts


def _check_bound_all(
    claims: PodClaims,
    nodes: fw.Nodes,
    objects: Objects,
    csi_nodes: CSINodes,
    verdicts: fw.Verdicts,
) -> fw.IntArray:
    """The reasons per node; nodes where a volume can't be translated get their verdict at once."""
    reasons = np.zeros(len(nodes), dtype=np.int64)
    asked = np.ones(len(nodes), dtype=np.bool_)  # all volumes so far are reachable
    for volume in claims.bound:
        if volume is None:
            reasons[asked] = Reason.NO_SUCH_VOLUME
            break
        within = reachable(required_nodes(volume), nodes)
        migration = migration_of(volume.spec)
        if migration is not None:
            taken_over = csi_nodes.migrated(migration.plugin, nodes, objects)
            try:
                translated = reachable(translated_nodes(volume, migration), nodes)
                within = np.where(taken_over, translated, within)
            except Untranslatable as problem:
                verdicts.reject(asked & taken_over, _untranslatable(problem))
                asked &= ~taken_over
        reasons[asked & ~within] = Reason.NODE_CONFLICT
        asked &= within
    return reasons


def _check_unbound(claims: PodClaims, nodes: fw.Nodes) -> fw.IntArray:
    selected = {unbound.selected_node for unbound in claims.to_provision}
    if not selected:
        return _check_unbound_here(claims, nodes)
    found = np.full(len(nodes), int(Reason.BIND_CONFLICT), dtype=np.int64)
    place = nodes.index_of(selected.pop() or "")
    if place is not None and not selected:  # two different nodes can't both be right
        rows = np.array([place], dtype=np.int64)
        found[rows] = _check_unbound_here(claims, nodes.take(rows))
    return found


def _check_unbound_here(claims: PodClaims, nodes: fw.Nodes) -> fw.IntArray:
    """The reason of the first claim that gets nothing, whatever nodes were selected."""
    found = np.zeros(len(nodes), dtype=np.int64)
    everywhere = np.ones(len(nodes), dtype=np.bool_)
    got = matched([unbound.candidates for unbound in claims.to_match], nodes)
    without = [*(everywhere for _ in claims.to_provision), *(~rows for rows in got)]
    for unbound, rows in zip(claims.unbound, without, strict=True):
        rows = rows & (found == 0)
        if rows.any():
            found[rows] = unbound.provision.refusals(nodes)[rows]
    return found
