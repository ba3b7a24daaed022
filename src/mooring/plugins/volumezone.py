"""A pod goes where its volumes are: the zone and region labels of bound persistent volumes."""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.core import PersistentVolume, PersistentVolumeClaim
from mooring.api.selectors import LabelRequirement
from mooring.api.storage import StorageClass
from mooring.api.wellknown import REGION, ZONE
from mooring.framework._internal import InternalPlugin
from mooring.plugins._csi_migration import BETA_REGION, BETA_ZONE, SEVERAL
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
_TODAY: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}  # old name of a label -> its name now


class Area(msgspec.Struct, frozen=True):
    """A label of a volume: the node has to have one of these values."""

    key: str
    values: frozenset[str]

    def includes(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if value is None:
            value = labels.get(_TODAY.get(self.key, self.key))
        return value in self.values

    def including(self, nodes: fw.Nodes) -> fw.BoolArray:
        inside = nodes.meeting(LabelRequirement(self.key, "In", self.values))
        today = _TODAY.get(self.key)
        if today is not None:
            lacking = nodes.meeting(LabelRequirement(self.key, "DoesNotExist"))
            inside |= lacking & nodes.meeting(LabelRequirement(today, "In", self.values))
        return inside


AREAS: fw.StateKey[tuple[Area, ...]] = fw.StateKey("VolumeZone/areas")


class VolumeZone(InternalPlugin, fw.PreFilter, fw.Filter):
    """Refuse nodes outside the zones and regions that the pod's volumes are labelled with."""

    name = "VolumeZone"
    key_from_spec = True
    reads = (PersistentVolumeClaim, PersistentVolume, StorageClass)
    wakes_on = (
        fw.ClusterEvent("storage.k8s.io/StorageClass", fw.Action.ADD),
        fw.Event.NODE_ADDED,
        fw.Event.NODE_LABELS_CHANGED,
        PVC_ADDED_OR_CHANGED,
        PV_ADDED_OR_CHANGED,
    )

    ELSEWHERE = fw.Status.unresolvable("node(s) had no available volume zone")

    def applies_to(self, pod: fw.Pod) -> bool:
        return has_volumes(pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        areas = self._areas_of(pod)
        if isinstance(areas, fw.Status):
            return areas
        if not areas:
            return fw.SKIP
        state[AREAS] = areas
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        areas = self._areas(state, pod)
        if isinstance(areas, fw.Status):
            return areas
        # A cluster in one zone may not have labelled its nodes at all.
        if not any(label in node.labels for label in TOPOLOGY_LABELS):
            return fw.OK
        return fw.OK if all(area.includes(node.labels) for area in areas) else self.ELSEWHERE

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        areas = self._areas(state, pod)
        if isinstance(areas, fw.Status):
            return verdicts.reject_all(areas)
        elsewhere = np.zeros(len(nodes), dtype=np.bool_)
        for area in areas:
            elsewhere |= ~area.including(nodes)
        if not elsewhere.any():
            return verdicts
        labelled = np.zeros(len(nodes), dtype=np.bool_)
        for label in TOPOLOGY_LABELS:
            labelled |= nodes.meeting(LabelRequirement(label, "Exists"))
        return verdicts.reject(elsewhere & labelled, self.ELSEWHERE)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, PersistentVolumeClaim):
            return names_claim(pod, new)
        if isinstance(new, PersistentVolume) and isinstance(old, PersistentVolume):
            return areas_of_volume(old) != areas_of_volume(new)
        if isinstance(new, StorageClass):
            return waits_for_consumer(new)
        return True

    def _areas(self, state: fw.CycleState, pod: fw.Pod) -> tuple[Area, ...] | fw.Status:
        areas = state.get(AREAS)
        return self._areas_of(pod) if areas is None else areas

    def _areas_of(self, pod: fw.Pod) -> tuple[Area, ...] | fw.Status:
        """Where the pod's bound volumes are; or why the pod can't be placed yet."""
        objects = self.handle.objects
        areas: list[Area] = []
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
            areas += areas_of_volume(volume)
        return tuple(areas)

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


def areas_of_volume(volume: PersistentVolume) -> tuple[Area, ...]:
    """What the labels of a volume say; a list with an empty place in it says nothing."""
    areas = []
    for key in TOPOLOGY_LABELS:
        listed = volume.metadata.labels.get(key)
        if listed is not None:
            values = frozenset(part.strip() for part in listed.split(SEVERAL))
            if "" not in values:
                areas.append(Area(key, values))
    return tuple(areas)
