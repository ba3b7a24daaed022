"""Garbage collection: dependents of deleted owners are deleted.

background   the owner is deleted at once, its dependents after it
foreground   blocking dependents are deleted first, then the finalizer, then the owner
orphan       dependents lose their ownerReference, then the finalizer, then the owner

A dependent with another living owner only loses its reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from mooring.api.codec import decode
from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.resources import RESOURCES, Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController, ControllerContext
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import Meta, ObjectIdentity, PartialObject, meta_of

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class GarbageCollector(BuiltInController):
    """Deletes objects without owners. Its keys are a resource and `namespace/name`."""

    watches: ClassVar[tuple[Resource, ...]] = tuple(
        found for found in RESOURCES if not found.storage
    )
    watches_custom: ClassVar[bool] = True
    name: ClassVar[str] = "garbage-collector-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._ending: dict[str, ObjectIdentity] = {}  # by uid: those that wait for their dependents

    def on_change(self, change: StoreChange) -> None:
        item = change.new
        identity = (change.resource, *item.key)
        if change.type == "DELETED":
            self._ending.pop(item.uid, None)
            for dependent in self.owner_graph.dependents(item.uid):
                self._enqueue(dependent)
            if self._ending:
                self._enqueue_terminating(change)
            return
        meta = self.owner_graph.meta(identity)
        if meta is None:
            return
        if _waits(meta):
            self._ending[item.uid] = identity
            self._enqueue(identity)
        elif not all(self.owner_graph.is_alive(owner.uid) for owner in meta.owner_references):
            self._enqueue(identity)
        elif self._ending:
            self._enqueue_terminating(change)

    def _enqueue_terminating(self, change: StoreChange) -> None:
        owners = list(meta_of(change).owner_references)
        if change.old is not None:  # a reference may just have been removed
            owners += decode(change.old.raw, PartialObject).metadata.owner_references
        for owner in owners:
            if owner.uid in self._ending:
                self._enqueue(self._ending[owner.uid])

    def _enqueue(self, identity: ObjectIdentity) -> None:
        resource, namespace, name = identity
        self.enqueue((resource, f"{namespace}/{name}"))

    def reconcile(self, key: Key) -> float | None:
        resource, path = key
        namespace, _, name = path.partition("/")
        identity = (resource, namespace, name)
        meta = self.owner_graph.meta(identity)
        if meta is None:
            return None
        if _waits(meta):
            if ORPHAN in meta.finalizers:
                self._orphan(identity, meta)
            elif self._dependents_are_gone(meta):
                self._drop_finalizer(identity, FOREGROUND)
        elif meta.deletion_timestamp is None:
            self._check_owners(identity, meta)
        return None

    def _check_owners(self, identity: ObjectIdentity, meta: Meta) -> None:
        """Delete an object whose owners are gone or wait for it; as attemptToDeleteItem."""
        leaving = {
            owner.uid
            for owner in meta.owner_references
            if not self.owner_graph.is_alive(owner.uid) or self._waits_for_dependents(owner.uid)
        }
        if not leaving:
            return
        if len(leaving) < len({owner.uid for owner in meta.owner_references}):
            self._disown(identity, leaving)
            return
        dependents = self.owner_graph.dependents(meta.uid)
        is_awaited = any(self.owner_graph.is_alive(uid) for uid in leaving)
        if not is_awaited or not dependents:
            self._delete(identity, meta.uid, "Background")
            return
        if any(self._is_waiting(dependent) for dependent in dependents):
            self._unblock(identity)  # a circle of owners would wait for itself
        self._delete(identity, meta.uid, "Foreground")

    def _waits_for_dependents(self, uid: str) -> bool:
        identity = self._ending.get(uid)
        return identity is not None and self._is_waiting(identity)

    def _is_waiting(self, identity: ObjectIdentity) -> bool:
        meta = self.owner_graph.meta(identity)
        return meta is not None and _waits(meta) and FOREGROUND in meta.finalizers

    def _dependents_are_gone(self, meta: Meta) -> bool:
        """Delete the dependents of an owner; True if no blocking one is left."""
        for identity in self.owner_graph.dependents(meta.uid):
            dependent = self.owner_graph.meta(identity)
            if dependent is not None and dependent.deletion_timestamp is None:
                self._check_owners(identity, dependent)
        for identity in self.owner_graph.dependents(meta.uid):
            dependent = self.owner_graph.meta(identity)
            if dependent is not None and any(
                owner.uid == meta.uid and owner.block_owner_deletion
                for owner in dependent.owner_references
            ):
                return False
        return True

    def _orphan(self, identity: ObjectIdentity, meta: Meta) -> None:
        for dependent in self.owner_graph.dependents(meta.uid):
            self._disown(dependent, {meta.uid})
        self._drop_finalizer(identity, ORPHAN)

    # --- writing -------------------------------------------------------------------------------

    def _delete(self, identity: ObjectIdentity, uid: str, propagation: str) -> None:
        key, namespace, name = identity
        resource = self.verbs.custom.by_key(key)
        if resource is None:
            return  # its definition is gone
        try:
            self.verbs.delete(resource, namespace, name, uid=uid, propagation=propagation)
        except (NotFound, ConflictError):
            return  # already deleted, or replaced by another object of this name

    def _disown(self, identity: ObjectIdentity, uids: set[str]) -> None:
        self._filter(identity, "ownerReferences", lambda owner: owner["uid"] not in uids)

    def _unblock(self, identity: ObjectIdentity) -> None:
        def change(current: Object) -> None:
            for owner in current["metadata"].get("ownerReferences") or ():
                owner["blockOwnerDeletion"] = False

        self._modify(identity, change)

    def _drop_finalizer(self, identity: ObjectIdentity, finalizer: str) -> None:
        self._filter(identity, "finalizers", lambda name: name != finalizer)

    def _filter(self, identity: ObjectIdentity, field: str, keeps: Callable[[Any], bool]) -> None:
        def change(current: Object) -> None:
            meta = current["metadata"]
            meta[field] = [one for one in meta.get(field) or () if keeps(one)]

        self._modify(identity, change)

    def _modify(self, identity: ObjectIdentity, change: Callable[[Object], None]) -> None:
        key, namespace, name = identity
        resource = self.verbs.custom.by_key(key)
        if resource is not None:
            self.verbs.modify(resource, namespace, name, change)


def _waits(meta: Meta) -> bool:
    """Whether an object under deletion waits for the garbage collector."""
    return meta.deletion_timestamp is not None and (
        FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers
    )
