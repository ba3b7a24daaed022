"""The objects of a cluster at one moment: what every offline answer starts from."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mooring.api import core
from mooring.api.apps import ReplicaSet, StatefulSet
from mooring.api.meta import Object
from mooring.api.policy import PodDisruptionBudget
from mooring.api.resource import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.api.scheduling import PriorityClass
from mooring.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.queue.hints import DeclinedHint


class ClusterState(msgspec.Struct, frozen=True):
    """The objects of the cluster, in listing order: ties between nodes depend on it.

    A kind is one line here: reading, collecting, writing and redaction follow the fields.
    """

    nodes: tuple[core.Node, ...] = ()
    pods: tuple[core.Pod, ...] = ()
    namespaces: tuple[core.Namespace, ...] = ()
    services: tuple[core.Service, ...] = ()
    replicationcontrollers: tuple[core.ReplicationController, ...] = ()
    replicasets: tuple[ReplicaSet, ...] = ()
    statefulsets: tuple[StatefulSet, ...] = ()
    persistentvolumes: tuple[PersistentVolume, ...] = ()
    persistentvolumeclaims: tuple[PersistentVolumeClaim, ...] = ()
    storageclasses: tuple[StorageClass, ...] = ()
    csinodes: tuple[CSINode, ...] = ()
    csidrivers: tuple[CSIDriver, ...] = ()
    csistoragecapacities: tuple[CSIStorageCapacity, ...] = ()
    volumeattachments: tuple[VolumeAttachment, ...] = ()
    poddisruptionbudgets: tuple[PodDisruptionBudget, ...] = ()
    priorityclasses: tuple[PriorityClass, ...] = ()
    deviceclasses: tuple[DeviceClass, ...] = ()
    resourceslices: tuple[ResourceSlice, ...] = ()
    resourceclaims: tuple[ResourceClaim, ...] = ()
    resourceclaimtemplates: tuple[ResourceClaimTemplate, ...] = ()

    def objects(self) -> Iterator[Object]:
        """All of them, kind by kind."""
        for field in self.__struct_fields__:
            yield from getattr(self, field)

    def other_objects(self) -> Iterator[Object]:
        for field in self.__struct_fields__:
            if field not in ("nodes", "pods"):
                yield from getattr(self, field)


KINDS: Final[Mapping[str, type[Object]]] = {
    field: typing.get_args(hint)[0] for field, hint in typing.get_type_hints(ClusterState).items()
}
"""The fields of `ClusterState`, which are the plurals of the kinds, and the kinds."""


class MissingKind(msgspec.Struct, frozen=True):
    """A kind that could not be read; answers that depend on it say so."""

    resource: str  # "poddisruptionbudgets.policy"
    problem: str


class WakingEvent(msgspec.Struct, frozen=True):
    """An event after which a refused pod is tried again, if the plugin's hint agrees."""

    plugin: str
    event: str


class QueuedState(msgspec.Struct, frozen=True):
    """What the queue of a running scheduler knew about one pod; times in seconds since 1970."""

    uid: str
    queue: str  # active, backoff, unschedulable, gated, in flight, waiting at Permit, binding
    attempts: int = 0
    added_at: float = 0.0  # first time in the queue
    retry_at: float | None = None  # end of backoff; unschedulable: even if no event wakes it
    plugins: tuple[str, ...] = ()  # that refused it last, or keep it waiting
    message: str = ""
    # Of a running scheduler only, and only for the pod that was asked for.
    since: float | None = None  # in this queue
    ahead: int | None = None  # active: pods that are tried before; None: very many
    node: str = ""  # waiting at Permit, binding: where it is to go
    wakes_on: tuple[WakingEvent, ...] = ()  # unschedulable and gated
    declined: tuple[DeclinedHint, ...] = ()  # since the last attempt, the latest first


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, the configuration in force, and what the queue of a scheduler knew of its pods."""

    cluster: ClusterState = ClusterState()
    config: dict[str, Any] | None = None  # a KubeSchedulerConfiguration; None: not known
    queue: tuple[QueuedState, ...] | None = None  # None: no scheduler was asked
    missing: tuple[MissingKind, ...] = ()
    at: float = 0.0  # seconds since 1970
    seq: int = 0  # decisions made before
    redacted: bool = False
    scheduler: str = ""  # the program and version that wrote it
    notes: tuple[str, ...] = ()  # what was left out when it was read, one sentence each
    is_past: bool = False  # as one attempt found it: rebuilt from a journal
