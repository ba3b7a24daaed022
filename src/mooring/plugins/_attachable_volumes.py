"""The volumes of a pod that a CSI driver has to attach to its node, by driver and handle.

NodeVolumeLimits counts them. Volumes of migrated in-tree plugins count for the driver, on nodes
that have a CSINode.
"""

from collections.abc import Iterator
from typing import NamedTuple

import mooring.framework as fw
from mooring.api.storage import StorageClass, VolumeAttachment
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim, Volume
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import (
    BY_PLUGIN,
    Untranslatable,
    handle,
    migration_of,
    source_handle,
)
from mooring.plugins._volume_claims import (
    Unusable,
    claim_name,
    class_of_claim,
    not_found,
    ownership_problem,
)


class Attachable(NamedTuple):
    """A volume by its handle; one that is not provisioned yet by the key of its claim."""

    driver: str
    handle: str
    is_planned: bool = False


def is_attachable(volume: Volume) -> bool:
    """Whether a volume of a pod may have to be attached to its node by a driver."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or migration_of(volume) is not None
    )


def volumes_of(
    pod: fw.Pod, objects: Objects, has_csi_node: bool, *, is_new: bool = False
) -> Iterator[Attachable]:
    """The volumes of a pod that a driver attaches; `Unusable` if one of a new pod is unknown."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        try:
            if name is None:
                found = _inline(volume) if has_csi_node else None
            else:
                found = _volume_of_claim(_claim(pod, volume, name, objects), objects, has_csi_node)
        except Unusable:
            if is_new:
                raise
            continue  # an existing pod: unknown volumes do not count
        if found is not None:
            yield found


def attached_to(node_name: str, objects: Objects) -> frozenset[Attachable]:
    """What VolumeAttachments say is attached to a node, whether or not a pod uses it."""
    found = set()
    for attachment in objects.select(VolumeAttachment, attached_node, node_name):
        volume_name = attachment.spec.source.persistent_volume_name
        volume = objects.get(PersistentVolume, volume_name) if volume_name else None
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            found.add(Attachable(attachment.spec.attacher, volume.spec.csi.volume_handle))
    return frozenset(found)


def attached_node(attachment: VolumeAttachment) -> str:
    return attachment.spec.node_name


def inline_driver(volume: Volume) -> str | None:
    """The driver of an inline volume of a migrated in-tree plugin."""
    migration = migration_of(volume)
    return migration.driver if migration is not None else None


def _inline(volume: Volume) -> Attachable | None:
    driver = inline_driver(volume)
    if driver is None:
        return None
    try:
        return Attachable(driver, source_handle(volume))
    except Untranslatable as problem:
        text = f"converting volume({volume.name}) from inline to csi: {problem}"
        raise Unusable(fw.Status.error(text)) from problem


def _claim(pod: fw.Pod, volume: Volume, name: str, objects: Objects) -> PersistentVolumeClaim:
    if not name:
        raise Unusable(fw.Status.error("PersistentVolumeClaim had no name"))
    claim = objects.get(PersistentVolumeClaim, name, pod.namespace)
    if claim is None:
        missing = not_found("persistentvolumeclaim", name)
        text = f"looking up PVC {pod.namespace}/{name}: {missing}"
        raise Unusable(fw.Status.unresolvable(text))
    if volume.persistent_volume_claim is None:
        problem = ownership_problem(pod, claim)
        if problem is not None:
            raise Unusable(fw.Status.error(problem))
    return claim


def _volume_of_claim(
    claim: PersistentVolumeClaim, objects: Objects, has_csi_node: bool
) -> Attachable | None:
    """The volume a claim is bound to, or the one that will be provisioned for it."""
    volume = objects.get(PersistentVolume, claim.spec.volume_name)
    if volume is None:
        storage_class = objects.get(StorageClass, class_of_claim(claim))
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        if driver in BY_PLUGIN:
            driver = BY_PLUGIN[driver].driver if has_csi_node else ""
        return Attachable(driver, claim.key, is_planned=True) if driver else None
    csi = volume.spec.csi
    if csi is not None:
        known = csi.driver and csi.volume_handle
        return Attachable(csi.driver, csi.volume_handle) if known else None
    migration = migration_of(volume.spec) if has_csi_node else None
    if migration is None:
        return None
    try:
        found = handle(volume)
    except Untranslatable:
        return None
    return Attachable(migration.driver, found) if found else None
