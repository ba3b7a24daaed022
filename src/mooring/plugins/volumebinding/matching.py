"""The existing volume that a claim would get on a node: the smallest that satisfies it.

A volume that is prebound to the claim goes before all others. What does not depend on the node is
computed once per claim (`candidates_for`); what is left is whether the node can reach the volume.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.placement import NodeSelector
from mooring.api.quantity import Quantity
from mooring.api.selectors import LabelRequirement, Selector, compile_node_selector
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import required_nodes
from mooring.plugins._node_requirements import meeting_all
from mooring.plugins._volume_claims import class_of_claim, class_of_volume, requested_storage
from mooring.plugins.volumebinding.assume_cache import AssumeCache

AVAILABLE: Final = "Available"
_FILESYSTEM: Final = "Filesystem"
_REMEMBERED: Final = 100_000  # affinities; a cluster of local disks has one per node


class Candidates(msgspec.Struct, frozen=True):
    """The volumes that a claim could be bound to, on any node."""

    prebound: PersistentVolume | None = None  # to this claim; excludes all others
    free: tuple[PersistentVolume, ...] = ()  # smallest first

    def pick(self, labels: Mapping[str, str], taken: set[str]) -> PersistentVolume | None:
        """The volume for a node with these labels; other claims of the pod have `taken` some."""
        prebound = self.prebound
        if prebound is not None:
            return prebound if is_reachable(required_nodes(prebound), labels) else None
        for volume in self.free:
            if volume.name not in taken and is_reachable(required_nodes(volume), labels):
                return volume
        return None


def candidates_for(
    claim: PersistentVolumeClaim, volumes: AssumeCache[PersistentVolume], objects: Objects
) -> Candidates:
    """The candidates for a claim; SelectorError if its selector is invalid."""
    class_name = class_of_claim(claim)
    selector = Selector.EVERYTHING
    if claim.spec.selector is not None:
        selector = Selector.from_label_selector(claim.spec.selector)
    claimed = objects.select(PersistentVolume, claim_ref_of, (claim.namespace, claim.name))
    prebound = [
        volume
        for volume in map(volumes.latest, claimed)
        if class_of_volume(volume) == class_name and _is_bound_to(volume, claim)
    ]
    free = []
    for volume in map(volumes.latest, objects.select(PersistentVolume, free_in_class, class_name)):
        if _is_bound_to(volume, claim):  # assumed to be
            prebound.append(volume)
        elif volume.spec.claim_ref is None and _is_available(volume, claim, selector):
            free.append(volume)
    prebound = [volume for volume in prebound if _satisfies_claim(volume, claim)]
    free.sort(key=lambda volume: (capacity_of(volume).nanos, volume.name))
    return Candidates(min(prebound, key=lambda it: it.name, default=None), tuple(free))


def claim_ref_of(volume: PersistentVolume) -> tuple[str, str] | None:
    claim = volume.spec.claim_ref
    return (claim.namespace, claim.name) if claim is not None else None


def free_in_class(volume: PersistentVolume) -> str | None:
    """The class of a volume without a claim."""
    return class_of_volume(volume) if volume.spec.claim_ref is None else None


def capacity_of(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get("storage", Quantity.ZERO)


def _is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume refers to this claim; a reference without uid counts."""
    named = volume.spec.claim_ref
    return (
        named is not None
        and (named.namespace, named.name) == (claim.namespace, claim.name)
        and named.uid in ("", claim.uid)
    )


def _satisfies_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What even a prebound volume has to satisfy."""
    offered, wanted = volume.spec, claim.spec
    return (
        capacity_of(volume).nanos >= requested_storage(claim).nanos
        and (offered.volume_mode or _FILESYSTEM) == (wanted.volume_mode or _FILESYSTEM)
        and (offered.volume_attributes_class_name or "")
        == (wanted.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_available(
    volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector
) -> bool:
    return (
        _satisfies_claim(volume, claim)
        and volume.status.phase == AVAILABLE
        and selector.matches(volume.metadata.labels)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


# --- volumes and nodes ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=_REMEMBERED)
def _alternatives(required: NodeSelector) -> tuple[tuple[LabelRequirement, ...], ...]:
    """The terms of a volume's node affinity, as far as they are about labels.

    As volume.CheckNodeAffinity, which matches against a node without a name: tests of the name are
    ignored, even in a term that tests nothing else.
    """
    terms = compile_node_selector(required).terms
    return tuple(term.requirements for term in terms if not (term.errors or term.is_empty))


def is_reachable(required: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels meets a volume's node affinity."""
    return required is None or any(
        all(test.matches(labels) for test in tests) for tests in _alternatives(required)
    )


def reachable(required: NodeSelector | None, nodes: fw.Nodes) -> fw.BoolArray:
    if required is None:
        return np.ones(len(nodes), dtype=np.bool_)
    found = np.zeros(len(nodes), dtype=np.bool_)
    for tests in _alternatives(required):
        found |= meeting_all(nodes, tests)
    return found


def matched(per_claim: Sequence[Candidates], nodes: fw.Nodes) -> list[fw.BoolArray]:
    """For each claim the nodes where it gets a volume that no earlier claim has taken there."""
    reachable_nodes = ReachableNodes(nodes)
    taken: dict[str, list[fw.IntArray]] = {}  # volume -> the nodes where a claim took it
    found = []
    for candidates in per_claim:
        if candidates.prebound is not None:
            found.append(reachable(required_nodes(candidates.prebound), nodes))
            continue
        undecided = np.ones(len(nodes), dtype=np.bool_)
        left = len(nodes)
        for volume in candidates.free:
            if not left:
                break
            rows = reachable_nodes.of(required_nodes(volume))
            rows = rows[undecided[rows]]
            for others in taken.get(volume.name, ()):
                rows = np.setdiff1d(rows, others, assume_unique=True)
            if len(rows):
                undecided[rows] = False
                left -= len(rows)
                taken.setdefault(volume.name, []).append(rows)
        found.append(~undecided)
    return found


class ReachableNodes:
    """The rows of the nodes from which a volume is reachable; for as many volumes as nodes.

    Local disks require one value of one label: nodes are sorted by that label once, and then each
    answer is a lookup.
    """

    def __init__(self, nodes: fw.Nodes) -> None:
        self._nodes = nodes
        self._everywhere = np.arange(len(nodes), dtype=np.int64)
        self._known: dict[NodeSelector, fw.IntArray] = {}
        self._by_value: dict[str, dict[str | None, fw.IntArray]] = {}

    def of(self, required: NodeSelector | None) -> fw.IntArray:
        if required is None:
            return self._everywhere
        alternatives = _alternatives(required)
        if len(alternatives) == 1 and len(alternatives[0]) == 1:
            test = alternatives[0][0]
            if test.operator == "In":
                return self._having(test.key, test.values)
        found = self._known.get(required)
        if found is None:
            found = self._known[required] = np.flatnonzero(reachable(required, self._nodes))
        return found

    def _having(self, key: str, values: frozenset[str]) -> fw.IntArray:
        by_value = self._by_value.get(key)
        if by_value is None:
            by_value = self._by_value[key] = self._sorted(key)
        parts = [by_value[value] for value in values if value in by_value]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else self._everywhere[:0]

    def _sorted(self, key: str) -> dict[str | None, fw.IntArray]:
        codes, values = self._nodes.label_codes(key), self._nodes.label_values(key)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(values)), side="right").tolist()
        starts = [0, *ends]
        return {
            value: order[start:end]
            for value, start, end in zip(values, starts, ends, strict=False)
            if end > start
        }
