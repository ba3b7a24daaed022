"""Volumes that can't be shared: disks with one writer, ReadWriteOncePod claims."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.volumes import PersistentVolumeClaim, Volume
from mooring.cache.hypothetical import HypotheticalNodes
from mooring.cache.internals import count_features
from mooring.framework._internal import WhatIfBasis
from mooring.framework.explaining import listed
from mooring.plugins._claim_edits import bind_claims, claim_facts, end_users
from mooring.plugins._volume_claims import (
    PVC_ADDED,
    VolumePlugin,
    named_claims,
    names_claim,
    not_found,
)

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_MOST_PODS: Final = 5_000  # that are looked at to name those with a disk


class ReadWriteOncePodClaims(msgspec.Struct):
    """The ReadWriteOncePod claims of a pod, and how often others use them; follows what-ifs."""

    namespace: str
    claims: frozenset[str]
    uses: int

    def used_by(self, other: fw.Pod) -> int:
        """How often another pod uses them."""
        if other.namespace != self.namespace:
            return 0
        return sum(1 for name in named_claims(other) if name in self.claims)

    def clone(self) -> "ReadWriteOncePodClaims":
        return ReadWriteOncePodClaims(self.namespace, self.claims, self.uses)


CLAIMS: fw.StateKey[ReadWriteOncePodClaims] = fw.StateKey("PreFilterVolumeRestrictions")
NO_STATE: Final = f'cannot read "{CLAIMS.name}" from cycleState'


class VolumeRestrictions(VolumePlugin, fw.PreFilter, fw.Filter):
    """Refuse nodes where the pod's disk is in use, and all if its ReadWriteOncePod claim is.

    The count of uses is that of the whole cluster, so its refusal does not depend on the node.
    """

    name = "VolumeRestrictions"
    answers_what_ifs = True
    reads = (PersistentVolumeClaim,)
    wakes_on = (fw.Event.POD_DELETED, fw.Event.NODE_ADDED, PVC_ADDED)

    DISK_TAKEN = fw.Status.unschedulable("node(s) had no available disk")
    CLAIM_TAKEN = fw.Status.unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    )

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if not pod.spec.volumes:
            return fw.SKIP
        claims = set()
        for name in named_claims(pod):
            claim = self.handle.objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return fw.Status.unresolvable(not_found("persistentvolumeclaim", name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claims.add(name)
        uses = 0
        if claims:
            used = count_features(nodes, "claims in use", claims_in_use)
            uses = sum(int(used.per_node((pod.namespace, name)).sum()) for name in claims)
        if not uses and not has_disks(pod):
            return fw.SKIP
        state[CLAIMS] = ReadWriteOncePodClaims(pod.namespace, frozenset(claims), uses)
        return fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        return self._count(state, added, +1)

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        return self._count(state, removed, -1)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if has_disks(pod) and any(conflict(pod, other) for other in node.pods):
            return self.DISK_TAKEN
        return self._claims_status(state)

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        if has_disks(pod):
            holders = nodes.count_pods("pods with disks of their own", has_disks)
            for place in np.flatnonzero(holders).tolist():
                if any(conflict(pod, other) for other in nodes[place].pods):
                    verdicts.set(place, self.DISK_TAKEN)
        claims = state.get(CLAIMS)
        if claims is not None and isinstance(nodes, HypotheticalNodes):
            key = ("VolumeRestrictions", claims.namespace, claims.claims)
            uses = nodes.change(key, claims.used_by) + claims.uses
            return verdicts.reject(uses > 0, self.CLAIM_TAKEN)
        status = self._claims_status(state)
        return verdicts if status.ok else verdicts.reject_all(status)

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        yield from claim_facts(pod, self.handle.objects)
        for users, what in self._users(pod, nodes):
            names = listed((other.key for other in users), 3)
            yield fw.Fact(text=f"{what}: {names}", pods=tuple(other.key for other in users))

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        if node is None:
            yield from bind_claims(pod, self.handle.objects)
            return
        for users, what in self._users(pod, (node,)):
            yield from end_users(what, users)

    def what_if_basis(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> WhatIfBasis | None:
        claims = state.get(CLAIMS)
        if claims is None:
            return None
        return WhatIfBasis((claims.namespace, claims.claims, claims.uses, pod.spec.volumes))

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(old, fw.Pod):
            return old.namespace == pod.namespace and (
                conflict(pod, old) or not set(named_claims(pod)).isdisjoint(named_claims(old))
            )
        if isinstance(new, PersistentVolumeClaim):
            return names_claim(pod, new)
        return True

    def _users(self, pod: fw.Pod, nodes: Iterable[fw.Node]) -> Iterator[tuple[list[fw.Pod], str]]:
        """The pods in the way: those with its disks here, and those with its claims anywhere."""
        if has_disks(pod):
            here = islice((other for node in nodes for other in node.pods), _MOST_PODS)
            users = [other for other in here if conflict(pod, other)]
            if users:
                yield users, "its disk is in use"
        objects, everywhere = self.handle.objects, self.handle.nodes
        used = count_features(everywhere, "claims in use", claims_in_use)
        for name in named_claims(pod):
            claim = objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None or READ_WRITE_ONCE_POD not in claim.spec.access_modes:
                continue
            key = (pod.namespace, name)
            rows = np.flatnonzero(used.per_node(key)).tolist()
            users = [o for row in rows for o in everywhere[row].pods if key in claims_in_use(o)]
            if users:
                yield users, f"claim {name} is ReadWriteOncePod and in use"

    def _count(self, state: fw.CycleState, other: fw.Pod, sign: int) -> fw.Status:
        claims = state.get(CLAIMS)
        if claims is None:
            return fw.Status.error(NO_STATE)
        claims.uses += sign * claims.used_by(other)
        return fw.OK

    def _claims_status(self, state: fw.CycleState) -> fw.Status:
        claims = state.get(CLAIMS)
        if claims is None:
            return fw.Status.error(NO_STATE)
        return self.CLAIM_TAKEN if claims.uses > 0 else fw.OK


def claims_in_use(pod: fw.Pod) -> Iterable[tuple[str, str]]:
    return [(pod.namespace, name) for name in named_claims(pod)]


def is_disk(volume: Volume) -> bool:
    """Whether a volume is of a kind that can conflict with that of another pod."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def has_disks(pod: fw.Pod) -> bool:
    return any(is_disk(volume) for volume in pod.spec.volumes)


def conflict(pod: fw.Pod, other: fw.Pod) -> bool:
    """Whether two pods use the same disk in a way that excludes one node for both."""
    return any(
        disks_conflict(a, b)
        for a in pod.spec.volumes
        if is_disk(a)
        for b in other.spec.volumes
        if is_disk(b)
    )


def disks_conflict(a: Volume, b: Volume) -> bool:
    """Most disks can be shared by readers; those of AWS can't be shared."""
    gce_a, gce_b = a.gce_persistent_disk, b.gce_persistent_disk
    if gce_a is not None and gce_b is not None:
        same = gce_a.pd_name == gce_b.pd_name
        if same and not (gce_a.read_only and gce_b.read_only):
            return True
    ebs_a, ebs_b = a.aws_elastic_block_store, b.aws_elastic_block_store
    if ebs_a is not None and ebs_b is not None and ebs_a.volume_id == ebs_b.volume_id:
        return True
    iscsi_a, iscsi_b = a.iscsi, b.iscsi
    if iscsi_a is not None and iscsi_b is not None:
        same = iscsi_a.iqn == iscsi_b.iqn
        if same and not (iscsi_a.read_only and iscsi_b.read_only):
            return True
    rbd_a, rbd_b = a.rbd, b.rbd
    if rbd_a is None or rbd_b is None or (rbd_a.read_only and rbd_b.read_only):
        return False
    same = rbd_a.pool == rbd_b.pool and rbd_a.image == rbd_b.image
    return same and not set(rbd_a.monitors).isdisjoint(rbd_b.monitors)
