"""Does a node serve a pod's claims, and with what?

`plan_for` is the specification: one node, and what each claim would get there. `fit_all` says the
same of all nodes at once, except what they would get.
"""

from collections.abc import Mapping

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.core import PersistentVolume, PersistentVolumeClaim
from mooring.api.storage import CSINode
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import (
    Untranslatable,
    migrated_plugins,
    migration_of,
    required_nodes,
    translated_nodes,
)
from mooring.plugins.volumebinding.matching import is_reachable, matched, reachable
from mooring.plugins.volumebinding.podclaims import PodClaims
from mooring.plugins.volumebinding.reasons import NONE, Reason, status_of


class Plan(msgspec.Struct, frozen=True):
    """What is to be done on one node, unless the status forbids it."""

    status: fw.Status
    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


# --- one node -------------------------------------------------------------------------------------


def plan_for(claims: PodClaims, node: fw.Node, objects: Objects) -> Plan:
    """Every claim's lot on this node; the reasons of bound and of open claims add up."""
    try:
        reasons = _reach_bound(claims, node, objects)
    except Untranslatable as problem:
        return Plan(_untranslatable(problem))
    if any(wish.selected_node != node.name for wish in claims.ordered):
        return Plan(status_of(reasons | Reason.BIND_CONFLICT))
    bindings, taken = [], set[str]()
    to_make = list(claims.ordered)
    for wish in claims.open:
        volume = wish.candidates.pick(node.labels, taken)
        if volume is None:
            to_make.append(wish)
        else:
            taken.add(volume.name)
            bindings.append((volume, wish.claim))
    for wish in to_make:
        lack = wish.provision.lack(node.labels)
        if lack:
            return Plan(status_of(reasons | lack))
    return Plan(status_of(reasons), tuple(bindings), tuple(wish.claim for wish in to_make))


def _reach_bound(claims: PodClaims, node: fw.Node, objects: Objects) -> Reason:
    """What is wrong with the first bound volume that does not do."""
    for volume in claims.bound:
        if volume is None:
            return Reason.NO_SUCH_VOLUME
        if not is_within_reach(volume, node.name, node.labels, objects):
            return Reason.NODE_CONFLICT
    return NONE


def is_within_reach(
    volume: PersistentVolume, node_name: str, labels: Mapping[str, str], objects: Objects
) -> bool:
    """Whether a node can use a volume, asked in the words of the driver if that took over there."""
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


def fit_all(claims: PodClaims, nodes: fw.Nodes, objects: Objects) -> fw.Verdicts:
    """As the status of `plan_for`, for every node."""
    verdicts = fw.Verdicts.passing(nodes)
    reasons = _reach_bound_all(claims, nodes, objects, verdicts)
    if claims.wishes:
        reasons |= _serve_wishes(claims, nodes)
    for combination in np.flatnonzero(np.bincount(reasons)).tolist():
        if combination:
            verdicts.reject(reasons == combination, status_of(combination))
    return verdicts


def _reach_bound_all(
    claims: PodClaims, nodes: fw.Nodes, objects: Objects, verdicts: fw.Verdicts
) -> fw.IntArray:
    """The reasons per node; nodes where a volume can't be translated get their verdict at once."""
    reasons = np.zeros(len(nodes), dtype=np.int64)
    asked = np.ones(len(nodes), dtype=np.bool_)  # no volume was out of reach so far
    for volume in claims.bound:
        if volume is None:
            reasons[asked] = Reason.NO_SUCH_VOLUME
            break
        within = reachable(required_nodes(volume), nodes)
        migration = migration_of(volume.spec)
        if migration is not None:
            taken_over = _taken_over(migration.plugin, nodes, objects)
            try:
                translated = reachable(translated_nodes(volume, migration), nodes)
                within = np.where(taken_over, translated, within)
            except Untranslatable as problem:
                verdicts.reject(asked & taken_over, _untranslatable(problem))
                asked &= ~taken_over
        reasons[asked & ~within] = Reason.NODE_CONFLICT
        asked &= within
    return reasons


def _taken_over(plugin: str, nodes: fw.Nodes, objects: Objects) -> fw.BoolArray:
    answers = (plugin in migrated_plugins(objects.get(CSINode, name)) for name in nodes.names)
    return np.fromiter(answers, np.bool_, len(nodes))


def _serve_wishes(claims: PodClaims, nodes: fw.Nodes) -> fw.IntArray:
    selected = {wish.selected_node for wish in claims.ordered}
    if not selected:
        return _serve_here(claims, nodes)
    found = np.full(len(nodes), int(Reason.BIND_CONFLICT), dtype=np.int64)
    place = nodes.index_of(selected.pop() or "")
    if place is not None and not selected:  # two nodes at once would be too much to ask
        rows = np.array([place], dtype=np.int64)
        found[rows] = _serve_here(claims, nodes.take(rows))
    return found


def _serve_here(claims: PodClaims, nodes: fw.Nodes) -> fw.IntArray:
    """What is missing for the first claim that gets nothing, whatever nodes were selected."""
    found = np.zeros(len(nodes), dtype=np.int64)
    everywhere = np.ones(len(nodes), dtype=np.bool_)
    got = matched([wish.candidates for wish in claims.open], nodes)
    without = [*(everywhere for _ in claims.ordered), *(~rows for rows in got)]
    for wish, rows in zip(claims.wishes, without, strict=True):
        rows = rows & (found == 0)
        if rows.any():
            found[rows] = wish.provision.lacks(nodes)[rows]
    return found
