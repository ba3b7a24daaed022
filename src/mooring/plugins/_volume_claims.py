"""What the volume plugins have in common: the claims of a pod.

A pod names a claim, or describes one that is created for it (an ephemeral volume).
"""

from collections.abc import Iterator
from typing import Final

import mooring.framework as fw
from mooring.api.quantity import Quantity
from mooring.api.storage import StorageClass
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim, Volume
from mooring.framework._internal import InternalPlugin
from mooring.framework.depends_on import DependsOn

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"

PVC_ADDED: Final = fw.ClusterEvent("PersistentVolumeClaim", fw.Action.ADD)
PVC_ADDED_OR_CHANGED: Final = fw.ClusterEvent(
    "PersistentVolumeClaim", fw.Action.ADD | fw.Action.UPDATE
)
PV_ADDED_OR_CHANGED: Final = fw.ClusterEvent("PersistentVolume", fw.Action.ADD | fw.Action.UPDATE)


class Unusable(Exception):
    """No node can serve the claims or volumes of a pod."""

    def __init__(self, status: fw.Status) -> None:
        super().__init__(status)
        self.status = status


def claim_name(pod: fw.Pod, volume: Volume) -> str | None:
    """The claim behind a volume of a pod; None if it needs none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def named_claims(pod: fw.Pod) -> Iterator[str]:
    """The claims that a pod names, without those of ephemeral volumes."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def uses_claim(pod: fw.Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether one of the pod's volumes is this claim, by name."""
    return claim.namespace == pod.namespace and any(
        claim_name(pod, volume) == claim.name for volume in pod.spec.volumes
    )


def names_claim(pod: fw.Pod, claim: PersistentVolumeClaim) -> bool:
    """As `uses_claim`, without ephemeral volumes."""
    return claim.namespace == pod.namespace and claim.name in named_claims(pod)


def ownership_problem(pod: fw.Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why a claim of an ephemeral volume is not the pod's own."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod.api.metadata.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the binding of a claim is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    return claim.spec.resources.requests.get("storage", Quantity.ZERO)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class of a claim; "" if none. The beta annotation goes before the field."""
    return claim.metadata.annotations.get(_BETA_CLASS, claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    """The storage class of a volume; "" if none."""
    return volume.metadata.annotations.get(_BETA_CLASS, volume.spec.storage_class_name)


def waits_for_consumer(storage_class: StorageClass) -> bool:
    """Whether claims of this class are bound only once a pod uses them."""
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def not_found(kind: str, name: str) -> str:
    return f'{kind} "{name}" not found'


def has_volumes(pod: fw.Pod) -> bool:
    """Whether a pod has volumes that matter to any plugin."""
    return any(volume.has_source for volume in pod.spec.volumes)


class VolumePlugin(InternalPlugin):
    """A plugin whose results for pods without volumes are all the same.

    Not by `applies_to`: without PreFilter, Filter fails for pods without volumes, too.
    """

    key_from_spec = True

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        return None if has_volumes(pod) else fw.NODE

    def cache_key(self, pod: fw.Pod) -> None:
        return None
