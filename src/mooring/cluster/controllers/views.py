"""Indexes that all controllers use: pods by owner, and the owner graph.

They are updated before any controller is notified of a change, and include a controller's own
writes at once. So no controller acts on stale data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.api.codec import decode
from mooring.api.meta import parse_time
from mooring.cluster.apiserver.store import StoreChange

ObjectIdentity = tuple[str, str, str]  # key of the resource, namespace, name


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An ownerReference."""

    uid: str
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The metadata of any object."""

    name: str
    uid: str
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def controller(self) -> Owner | None:
        return next((owner for owner in self.owner_references if owner.controller), None)


class PartialObject(msgspec.Struct, frozen=True, gc=False):
    """An object of any kind."""

    metadata: Meta


class _Volume(msgspec.Struct, frozen=True):
    name: str = ""
    ephemeral: dict[str, Any] | None = None


class _ClaimEntry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    resource_claim_template_name: str = ""


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False):
    name: str


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    volumes: tuple[_Volume, ...] = ()
    resource_claims: tuple[_ClaimEntry, ...] = ()


class _Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str
    status: str = ""
    last_transition_time: str | None = None


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    restart_count: int = 0


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_Container, ...] = ()
    resource_claim_statuses: tuple[_ClaimStatus, ...] = ()


class PodView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a pod that controllers read."""

    metadata: Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_active(self) -> bool:
        """Neither finished nor terminating."""
        return not self.is_finished and not self.is_terminating

    @property
    def is_ready(self) -> bool:
        for condition in self.status.conditions:
            if condition.type == "Ready":
                return condition.status == "True"
        return False

    @property
    def ready_since(self) -> float | None:
        """Seconds since the epoch; None while it is not ready."""
        for condition in self.status.conditions:
            if condition.type == "Ready" and condition.status == "True":
                since = condition.last_transition_time
                return parse_time(since) if since else 0.0
        return None

    @property
    def restarts(self) -> int:
        return sum(container.restart_count for container in self.status.container_statuses)


class OwnedPods:
    """The pods of one controller, with counts: there may be thousands."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], PodView] = {}
        self.active: int = 0
        self.ready: int = 0  # of the active ones
        self.failed: int = 0

    def count(self, pod: PodView, change: int) -> None:
        if pod.is_active:
            self.active += change
            self.ready += change * pod.is_ready
        elif pod.status.phase == "Failed":
            self.failed += change


class Pods:
    """All pods, and those of each controller."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], PodView] = {}
        self._owned: dict[str, OwnedPods] = {}  # by uid of the controller
        self._orphans: dict[str, dict[tuple[str, str], PodView]] = {}  # by namespace
        self.before: PodView | None = None  # the pod before the last change
        self.latest: PodView | None = None  # and after it

    def on_change(self, change: StoreChange) -> None:
        key = change.new.key
        self.before = self._all.pop(key, None)
        if self.before is not None:
            owner = self.before.metadata.controller
            if owner is not None:
                owned = self._owned[owner.uid]
                owned.count(owned.pods.pop(key), -1)
                if not owned.pods:
                    del self._owned[owner.uid]
            else:
                self._orphans[key[0]].pop(key, None)
        self.latest = None
        if change.type == "DELETED":
            return
        pod = self.latest = self._all[key] = decode(change.new.raw, PodView)
        owner = pod.metadata.controller
        if owner is not None:
            owned = self._owned.setdefault(owner.uid, OwnedPods())
            owned.pods[key] = pod
            owned.count(pod, +1)
        else:
            self._orphans.setdefault(key[0], {})[key] = pod

    def orphans(self, namespace: str) -> list[PodView]:
        """The pods of a namespace that have no controller."""
        return list(self._orphans.get(namespace, {}).values())

    def of(self, uid: str) -> list[PodView]:
        """The pods of a controller, in the order of their latest changes."""
        return list(self.owned(uid).pods.values())

    def owned(self, uid: str) -> OwnedPods:
        """The pods of a controller with their counts; not to be kept after the next change."""
        return self._owned.get(uid) or OwnedPods()

    def __iter__(self) -> Iterator[PodView]:
        return iter(self._all.values())


class OwnerGraph:
    """Existing objects of all kinds, and the dependents of each owner."""

    def __init__(self) -> None:
        self._dependents: dict[str, dict[ObjectIdentity, None]] = {}  # by uid of the owner
        self._metas: dict[ObjectIdentity, Meta] = {}  # of those that have owners or finalizers
        self._alive: set[str] = set()  # uids

    def on_change(self, change: StoreChange) -> None:
        identity = (change.resource, *change.new.key)
        self._unlink(identity)
        if change.type == "DELETED":
            self._alive.discard(change.new.uid)
            return
        self._alive.add(change.new.uid)
        meta = meta_of(change)
        if meta.owner_references or meta.finalizers:
            self._metas[identity] = meta
            for owner in meta.owner_references:
                self._dependents.setdefault(owner.uid, {})[identity] = None

    def _unlink(self, identity: ObjectIdentity) -> None:
        known = self._metas.pop(identity, None)
        if known is None:
            return
        for owner in known.owner_references:
            siblings = self._dependents.get(owner.uid)
            if siblings is not None:
                siblings.pop(identity, None)
                if not siblings:
                    del self._dependents[owner.uid]

    def is_alive(self, uid: str) -> bool:
        return uid in self._alive

    def dependents(self, uid: str) -> list[ObjectIdentity]:
        return list(self._dependents.get(uid, ()))

    def meta(self, identity: ObjectIdentity) -> Meta | None:
        """The metadata of an object that has owners or finalizers."""
        return self._metas.get(identity)


def meta_of(change: StoreChange) -> Meta:
    """The metadata of a changed or deleted object."""
    return decode(change.new.raw, PartialObject).metadata
