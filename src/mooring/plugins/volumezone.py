"""Zones and regions of a pod's bound persistent volumes, by their labels."""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.selectors import LabelRequirement
from mooring.api.storage import StorageClass
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.api.wellknown import REGION, ZONE
from mooring.framework._internal import InternalPlugin
from mooring.plugins._claim_edits import ExplainsClaims
from mooring.plugins._csi_migration import BETA_REGION, BETA_ZONE, MULTI_ZONE_DELIMITER
from mooring.plugins._volume_claims import (
    PV_ADDED_OR_CHANGED,
    PVC_ADDED_OR_CHANGED,
    class_of_claim,
    has_volumes,
    named_claims,
    names_claim,
    not_found,
    waits_for_consumer,
)

TOPOLOGY_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_GA_LABELS: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}  # by beta label


class VolumeTopology(msgspec.Struct, frozen=True):
    """A label of a volume: the node has to have one of these values."""

    key: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if value is None:
            value = labels.get(_GA_LABELS.get(self.key, self.key))
        return value in self.values

    def matching(self, nodes: fw.Nodes) -> fw.BoolArray:
        inside = nodes.meeting(LabelRequirement(self.key, "In", self.values))
        ga_label = _GA_LABELS.get(self.key)
        if ga_label is not None:
            lacking = nodes.meeting(LabelRequirement(self.key, "DoesNotExist"))
            inside |= lacking & nodes.meeting(LabelRequirement(ga_label, "In", self.values))
        return inside


TOPOLOGIES: fw.StateKey[tuple[VolumeTopology, ...]] = fw.StateKey("VolumeZone/topologies")


class VolumeZone(ExplainsClaims, InternalPlugin, fw.PreFilter, fw.Filter):
    """Refuse nodes outside the zones and regions that the pod's volumes are labelled with."""

    name = "VolumeZone"
    key_from_spec = True
    answers_what_ifs = True  # whichever pods there are
    reads = (PersistentVolumeClaim, PersistentVolume, StorageClass)
    wakes_on = (
        fw.ClusterEvent("storage.k8s.io/StorageClass", fw.Action.ADD),
        fw.Event.NODE_ADDED,
        fw.Event.NODE_LABELS_CHANGED,
        PVC_ADDED_OR_CHANGED,
        PV_ADDED_OR_CHANGED,
    )

    ZONE_CONFLICT = fw.Status.unresolvable("node(s) had no available volume zone")

    def applies_to(self, pod: fw.Pod) -> bool:
        return has_volumes(pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        topologies = self._topologies_of(pod)
        if isinstance(topologies, fw.Status):
            return topologies
        if not topologies:
            return fw.SKIP
        state[TOPOLOGIES] = topologies
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        topologies = state.get(TOPOLOGIES) or self._topologies_of(pod)
        if isinstance(topologies, fw.Status):
            return topologies
        # A cluster in one zone may not have labelled its nodes at all.
        if not any(label in node.labels for label in TOPOLOGY_LABELS):
            return fw.OK
        fits = all(topology.matches(node.labels) for topology in topologies)
        return fw.OK if fits else self.ZONE_CONFLICT

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        topologies = state.get(TOPOLOGIES) or self._topologies_of(pod)
        if isinstance(topologies, fw.Status):
            return verdicts.reject_all(topologies)
        conflicts = np.zeros(len(nodes), dtype=np.bool_)
        for topology in topologies:
            conflicts |= ~topology.matching(nodes)
        if not conflicts.any():
            return verdicts
        labelled = np.zeros(len(nodes), dtype=np.bool_)
        for label in TOPOLOGY_LABELS:
            labelled |= nodes.meeting(LabelRequirement(label, "Exists"))
        return verdicts.reject(conflicts & labelled, self.ZONE_CONFLICT)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, PersistentVolumeClaim):
            return names_claim(pod, new)
        if isinstance(new, PersistentVolume) and isinstance(old, PersistentVolume):
            return topologies_of_volume(old) != topologies_of_volume(new)
        if isinstance(new, StorageClass):
            return waits_for_consumer(new)
        return True

    def _topologies_of(self, pod: fw.Pod) -> tuple[VolumeTopology, ...] | fw.Status:
        """The topologies of the pod's bound volumes, or why the pod can't be placed yet."""
        objects = self.handle.objects
        topologies: list[VolumeTopology] = []
        for name in named_claims(pod):
            if not name:
                return fw.Status.unresolvable("PersistentVolumeClaim had no name")
            claim = objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return fw.Status.unresolvable(not_found("persistentvolumeclaim", name))
            volume_name = claim.spec.volume_name
            if not volume_name:
                reason = self._why_unbound(claim)
                if reason is None:
                    continue
                return fw.Status.unresolvable(reason)
            volume = objects.get(PersistentVolume, volume_name)
            if volume is None:
                return fw.Status.unresolvable(not_found("persistentvolume", volume_name))
            topologies += topologies_of_volume(volume)
        return tuple(topologies)

    def _why_unbound(self, claim: PersistentVolumeClaim) -> str | None:
        """What keeps a claim without a volume from being used; None if it only waits for a pod."""
        class_name = class_of_claim(claim)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self.handle.objects.get(StorageClass, class_name)
        if storage_class is None:
            return not_found("storageclass.storage.k8s.io", class_name)
        if storage_class.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{class_name}"'
        return None if waits_for_consumer(storage_class) else "PersistentVolume had no name"


def topologies_of_volume(volume: PersistentVolume) -> tuple[VolumeTopology, ...]:
    """The topologies in the labels of a volume; a list with an empty entry is ignored."""
    topologies = []
    for key in TOPOLOGY_LABELS:
        listed = volume.metadata.labels.get(key)
        if listed is not None:
            values = frozenset(part.strip() for part in listed.split(MULTI_ZONE_DELIMITER))
            if "" not in values:
                topologies.append(VolumeTopology(key, values))
    return tuple(topologies)
