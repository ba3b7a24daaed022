"""Garbage collection: dependents of deleted owners are deleted.

background   the owner is deleted at once, its dependents after it
foreground   blocking dependents are deleted first, then the finalizer, then the owner
orphan       dependents lose their ownerReference, then the finalizer, then the owner
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.resources import RESOURCES, Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController, ControllerContext
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import Meta, ObjectIdentity, meta_of

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_BY_KEY: Final = {found.key: found for found in RESOURCES if not found.storage}


class GarbageCollector(BuiltInController):
    """Deletes objects without owners. Its keys are a resource and `namespace/name`."""

    watches: ClassVar[tuple[Resource, ...]] = tuple(_BY_KEY.values())
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
        for owner in meta_of(change).owner_references:
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
        dead = {
            owner.uid for owner in meta.owner_references if not self.owner_graph.is_alive(owner.uid)
        }
        if not dead:
            return
        if len(dead) < len(meta.owner_references):
            self._disown(identity, dead)
        else:
            self._delete(identity, meta.uid, "Background")

    def _dependents_are_gone(self, meta: Meta) -> bool:
        """Delete the dependents of an owner; True if no blocking one is left."""
        for identity in self.owner_graph.dependents(meta.uid):
            dependent = self.owner_graph.meta(identity)
            if dependent is not None and dependent.deletion_timestamp is None:
                has_own = bool(self.owner_graph.dependents(dependent.uid))
                self._delete(identity, dependent.uid, "Foreground" if has_own else "Background")
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
        resource, namespace, name = identity
        try:
            self.verbs.delete(_BY_KEY[resource], namespace, name, uid=uid, propagation=propagation)
        except (NotFound, ConflictError):
            return  # already deleted, or replaced by another object of this name

    def _disown(self, identity: ObjectIdentity, uids: set[str]) -> None:
        self._filter(identity, "ownerReferences", lambda owner: owner["uid"] not in uids)

    def _drop_finalizer(self, identity: ObjectIdentity, finalizer: str) -> None:
        self._filter(identity, "finalizers", lambda name: name != finalizer)

    def _filter(self, identity: ObjectIdentity, field: str, keeps: Callable[[Any], bool]) -> None:
        def change(current: Object) -> None:
            meta = current["metadata"]
            meta[field] = [one for one in meta.get(field) or () if keeps(one)]

        resource, namespace, name = identity
        self.verbs.modify(_BY_KEY[resource], namespace, name, change)


def _waits(meta: Meta) -> bool:
    """Whether an object under deletion waits for the garbage collector."""
    return meta.deletion_timestamp is not None and (
        FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers
    )
