"""Volumes as pods name them, and the claims and persistent volumes behind the names."""

from typing import ClassVar

from msgspec import field

from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import (
    NO_RESOURCES,
    Condition,
    LabelSelector,
    Object,
    ObjectMeta,
    ObjectReference,
    ResourceList,
    Value,
)
from mooring.api.placement import NodeSelector


class VolumeResourceRequirements(Value, frozen=True, kw_only=True):
    """How much storage a claim asks for."""

    requests: ResourceList = NO_RESOURCES
    limits: ResourceList = NO_RESOURCES


class PersistentVolumeClaimSpec(Value, frozen=True, kw_only=True):
    """The storage a claim wants."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Value, frozen=True, kw_only=True):
    """The storage a claim got."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = NO_RESOURCES
    conditions: tuple[Condition, ...] = ()


class PersistentVolumeClaim(Object, frozen=True, kw_only=True):
    """A request for storage, bound to one persistent volume."""

    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(Value, frozen=True, kw_only=True):
    """The claim an ephemeral volume is given."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class PersistentVolumeClaimVolumeSource(Value, frozen=True, kw_only=True):
    """A claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Value, frozen=True, kw_only=True):
    """A claim that lives and dies with the pod, named `<pod>-<volume>`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class CSIVolumeSource(Value, frozen=True, kw_only=True):
    """An inline volume made by a CSI driver."""

    driver: str = ""
    read_only: bool = False
    fs_type: str = ""


class GCEPersistentDiskVolumeSource(Value, frozen=True, kw_only=True):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Value, frozen=True, kw_only=True):
    """An AWS disk."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AzureDiskVolumeSource(Value, frozen=True, kw_only=True):
    """An Azure data disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool = False


class CinderVolumeSource(Value, frozen=True, kw_only=True):
    """An OpenStack volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class PortworxVolumeSource(Value, frozen=True, kw_only=True):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class RBDVolumeSource(Value, frozen=True, kw_only=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    fs_type: str = ""
    read_only: bool = False


class ISCSIVolumeSource(Value, frozen=True, kw_only=True):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    fs_type: str = ""
    read_only: bool = False


class ImageVolumeSource(Value, frozen=True, kw_only=True):
    """A container image mounted as files."""

    reference: str = ""
    pull_policy: str = ""


class InTreeVolumeSources(Value, frozen=True, kw_only=True):
    """The sources that pods and persistent volumes have in common, of which one is set at most."""

    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None


class Volume(InTreeVolumeSources, frozen=True, kw_only=True):
    """One volume of a pod; sources that never influence placement are not read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None

    @property
    def has_source(self) -> bool:
        """Whether it comes from anywhere that can influence placement."""
        return self != Volume(name=self.name)


class CSIPersistentVolumeSource(Value, frozen=True, kw_only=True):
    """A volume held by a CSI driver under a handle."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: FrozenDict[str, str] = EMPTY


class LocalVolumeSource(Value, frozen=True, kw_only=True):
    """A disk of one node."""

    path: str = ""


class HostPathVolumeSource(Value, frozen=True, kw_only=True):
    """A directory of the node."""

    path: str = ""
    type: str = ""


class VolumeNodeAffinity(Value, frozen=True, kw_only=True):
    """The nodes a persistent volume can be reached from."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(InTreeVolumeSources, frozen=True, kw_only=True):
    """What a piece of storage is, its size, and the claim it is bound to."""

    capacity: ResourceList = NO_RESOURCES
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None


class PersistentVolumeStatus(Value, frozen=True, kw_only=True):
    """The phase of a piece of storage, and why."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(Object, frozen=True, kw_only=True):
    """A piece of storage in the cluster."""

    API_VERSION: ClassVar[str] = "v1"
    NAMESPACED: ClassVar[bool] = False

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
