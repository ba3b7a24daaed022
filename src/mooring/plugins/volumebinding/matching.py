"""The existing volume that a claim would get on a node: the smallest that satisfies it.

A volume that is prebound to the claim goes before all others. The free ones are kept by
`free_volumes`; what is left is whether the node can reach one that is large enough.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.selectors import Selector
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import required_nodes
from mooring.plugins._volume_claims import class_of_claim, class_of_volume, requested_storage
from mooring.plugins.volumebinding.assume_cache import AssumeCache
from mooring.plugins.volumebinding.free_volumes import (
    FILESYSTEM,
    Entry,
    FreeVolumes,
    VolumesOfKind,
    capacity_of,
)
from mooring.plugins.volumebinding.reach import ReachableNodes, is_reachable, reachable


class Candidates(msgspec.Struct, frozen=True, eq=False):
    """The volumes that a claim could be bound to, on any node; true until the next attempt."""

    prebound: PersistentVolume | None = None  # to this claim; excludes all others
    class_name: str = ""
    kinds: tuple[VolumesOfKind, ...] = ()
    least: int = 0  # capacity, in billionths of a byte
    selector: Selector = Selector.EVERYTHING

    def pick(self, labels: Mapping[str, str], taken: set[str]) -> PersistentVolume | None:
        """The volume for a node with these labels; other claims of the pod have `taken` some."""
        prebound = self.prebound
        if prebound is not None:
            return prebound if is_reachable(required_nodes(prebound), labels) else None
        best: Entry | None = None
        for kind in self.kinds:
            for site in kind.near(labels):
                found = next(
                    (
                        entry
                        for entry in site.from_capacity(self.least)
                        if entry[1] not in taken and self.selector.matches(entry[2].metadata.labels)
                    ),
                    None,
                )
                if found is not None and (best is None or found[:2] < best[:2]):
                    best = found
        return None if best is None else best[2]

    def available(self, nodes: fw.Nodes) -> fw.BoolArray | None:
        """The nodes where there is one; None if volumes have to be looked at one by one."""
        if self.prebound is not None:
            return reachable(required_nodes(self.prebound), nodes)
        if self.selector.requirements:
            return None
        found = np.zeros(len(nodes), dtype=np.bool_)
        for kind in self.kinds:
            found |= kind.available(self.least, nodes)
        return found

    def free(self) -> list[PersistentVolume]:
        """The smallest first."""
        found = sorted(entry for kind in self.kinds for entry in kind.all(self.least))
        matches = self.selector.matches
        return [volume for _, _, volume in found if matches(volume.metadata.labels)]


def candidates_for(
    claim: PersistentVolumeClaim,
    free: FreeVolumes,
    volumes: AssumeCache[PersistentVolume],
    objects: Objects,
) -> Candidates:
    """The candidates for a claim; SelectorError if its selector is invalid."""
    class_name = class_of_claim(claim)
    selector = Selector.EVERYTHING
    if claim.spec.selector is not None:
        selector = Selector.from_label_selector(claim.spec.selector)
    claimed = objects.select(PersistentVolume, claim_ref_of, (claim.namespace, claim.name))
    prebound = [
        volume
        for volume in (*map(volumes.latest, claimed), *_assumed_for(claim, volumes))
        if class_of_volume(volume) == class_name
        and _is_bound_to(volume, claim)
        and _satisfies_claim(volume, claim)
    ]
    return Candidates(
        min(prebound, key=lambda it: it.name, default=None),
        class_name,
        () if selector.matches_nothing else free.suiting(claim, class_name),
        requested_storage(claim).nanos,
        selector,
    )


def _assumed_for(
    claim: PersistentVolumeClaim, volumes: AssumeCache[PersistentVolume]
) -> list[PersistentVolume]:
    """The volumes that are assumed to be bound to a claim."""
    assumed = [it for it in volumes.assumed() if _is_bound_to(it, claim)]
    return [latest for it in assumed if (latest := volumes.get(it.name)) is not None]


def claim_ref_of(volume: PersistentVolume) -> tuple[str, str] | None:
    claim = volume.spec.claim_ref
    return (claim.namespace, claim.name) if claim is not None else None


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
        and (offered.volume_mode or FILESYSTEM) == (wanted.volume_mode or FILESYSTEM)
        and (offered.volume_attributes_class_name or "")
        == (wanted.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


# --- all nodes ------------------------------------------------------------------------------------


def matched(per_claim: Sequence[Candidates], nodes: fw.Nodes) -> list[fw.BoolArray]:
    """For each claim the nodes where it gets a volume that no earlier claim has taken there."""
    reachable_nodes = ReachableNodes(nodes)
    taken: dict[str, list[fw.IntArray]] = {}  # volume -> the nodes where a claim took it
    classes = [each.class_name for each in per_claim if each.prebound is None]
    found = []
    for candidates in per_claim:
        # Claims of different classes can't take each other's volumes.
        is_alone = candidates.prebound is not None or classes.count(candidates.class_name) == 1
        available = candidates.available(nodes) if is_alone else None
        if available is None:
            available = _one_by_one(candidates, reachable_nodes, len(nodes), taken)
        found.append(available)
    return found


def _one_by_one(
    candidates: Candidates,
    reachable_nodes: ReachableNodes,
    left: int,
    taken: dict[str, list[fw.IntArray]],
) -> fw.BoolArray:
    """Volume by volume, the nodes where a claim gets it; they are noted in `taken`."""
    undecided = np.ones(left, dtype=np.bool_)
    for volume in candidates.free():
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
    return ~undecided
