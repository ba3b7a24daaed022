"""The storage.k8s.io group: classes, drivers, capacities and attachments.

Claims and persistent volumes belong to the core group; they are defined in `volumes`.
"""

from typing import ClassVar

from msgspec import field

from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import LabelSelector, Object, Value
from mooring.api.quantity import Quantity
from mooring.api.volumes import PersistentVolumeSpec


class TopologySelectorLabelRequirement(Value, frozen=True, kw_only=True):
    """A node label and the values allowed for it."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Value, frozen=True, kw_only=True):
    """Label requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Object, frozen=True, kw_only=True):
    """How, when and where volumes of one kind are made."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    provisioner: str = ""
    parameters: FrozenDict[str, str] = EMPTY
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Value, frozen=True, kw_only=True):
    """How many volumes of a driver a node can hold; no count means no limit."""

    count: int | None = None


class CSINodeDriver(Value, frozen=True, kw_only=True):
    """One driver present on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] | None = None  # the API server writes null for none
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Value, frozen=True, kw_only=True):
    """The drivers present on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True, kw_only=True):
    """What a node, under the same name, says about its storage drivers."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Value, frozen=True, kw_only=True):
    """What a driver needs and reports."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object, frozen=True, kw_only=True):
    """A storage driver installed in the cluster."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True, kw_only=True):
    """How much of a storage class is left for the nodes of one topology."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Value, frozen=True, kw_only=True):
    """The volume to attach: a persistent one by name, or one described in place."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Value, frozen=True, kw_only=True):
    """Which driver attaches which volume to which node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Value, frozen=True, kw_only=True):
    """Whether it worked."""

    attached: bool = False


class VolumeAttachment(Object, frozen=True, kw_only=True):
    """The wish, or the fact, that a volume is attached to a node."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
