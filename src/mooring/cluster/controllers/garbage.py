"""Garbage collection: what belongs to something that is gone goes too.

deleted in the background   the owner goes at once, its dependents after it
in the foreground           dependents that block go first, then the finalizer, then the owner
orphaned                    dependents forget their owner, then the finalizer, then the owner
"""

from __future__ import annotations

from typing import ClassVar, Final

from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.resources import RESOURCES, Resource
from mooring.cluster.apiserver.store import Change, Object
from mooring.cluster.controllers.base import Controller, Shared
from mooring.cluster.controllers.loop import Key
from mooring.cluster.controllers.views import Dependent, Meta, owners_of

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_BY_KEY: Final = {found.key: found for found in RESOURCES if not found.storage}


class Garbage(Controller):
    """Deletes what nobody owns any more. Its keys are a resource and `namespace/name`."""

    watches: ClassVar[tuple[Resource, ...]] = tuple(_BY_KEY.values())
    name: ClassVar[str] = "garbage-collector-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._ending: dict[str, Dependent] = {}  # by uid: those that wait for their dependents

    def hear(self, change: Change) -> None:
        item = change.new
        who = (change.resource, *item.key)
        if change.type == "DELETED":
            self._ending.pop(item.uid, None)
            for dependent in self.family.dependents(item.uid):
                self._wake(dependent)
            if self._ending:
                self._wake_ending(change)
            return
        meta = self.family.meta(who)
        if meta is None:
            return
        if _waits(meta):
            self._ending[item.uid] = who
            self._wake(who)
        elif not all(self.family.is_alive(owner.uid) for owner in meta.owner_references):
            self._wake(who)
        elif self._ending:
            self._wake_ending(change)

    def _wake_ending(self, change: Change) -> None:
        for owner in owners_of(change):
            if owner.uid in self._ending:
                self._wake(self._ending[owner.uid])

    def _wake(self, who: Dependent) -> None:
        resource, namespace, name = who
        self.wake((resource, f"{namespace}/{name}"))

    def reconcile(self, key: Key) -> float | None:
        resource, path = key
        namespace, _, name = path.partition("/")
        who = (resource, namespace, name)
        meta = self.family.meta(who)
        if meta is None:
            return None
        if _waits(meta):
            if ORPHAN in meta.finalizers:
                self._orphan(who, meta)
            elif self._has_gone_before(meta):
                self._drop_finalizer(who, FOREGROUND)
        elif meta.deletion_timestamp is None:
            self._check_owners(who, meta)
        return None

    def _check_owners(self, who: Dependent, meta: Meta) -> None:
        dead = {owner.uid for owner in meta.owner_references if not self.family.is_alive(owner.uid)}
        if not dead:
            return
        if len(dead) < len(meta.owner_references):
            self._disown(who, dead)
        else:
            self._delete(who, meta.uid, "Background")

    def _has_gone_before(self, meta: Meta) -> bool:
        """Delete the dependents of an owner; True if none is left that it has to wait for."""
        is_done = True
        for who in self.family.dependents(meta.uid):
            dependent = self.family.meta(who)
            if dependent is None:
                continue
            if dependent.deletion_timestamp is None:
                has_own = bool(self.family.dependents(dependent.uid))
                self._delete(who, dependent.uid, "Foreground" if has_own else "Background")
        for who in self.family.dependents(meta.uid):
            dependent = self.family.meta(who)
            if dependent is not None and any(
                owner.uid == meta.uid and owner.block_owner_deletion
                for owner in dependent.owner_references
            ):
                is_done = False
        return is_done

    def _orphan(self, who: Dependent, meta: Meta) -> None:
        for dependent in self.family.dependents(meta.uid):
            self._disown(dependent, {meta.uid})
        self._drop_finalizer(who, ORPHAN)

    # --- writing -------------------------------------------------------------------------------

    def _delete(self, who: Dependent, uid: str, propagation: str) -> None:
        resource, namespace, name = who
        try:
            self.verbs.delete(_BY_KEY[resource], namespace, name, uid=uid, propagation=propagation)
        except (NotFound, ConflictError):
            return  # gone already, or another one by now

    def _disown(self, who: Dependent, uids: set[str]) -> None:
        def change(current: Object) -> None:
            meta = current["metadata"]
            owners = meta.get("ownerReferences") or []
            meta["ownerReferences"] = [one for one in owners if one["uid"] not in uids]

        resource, namespace, name = who
        self.verbs.modify(_BY_KEY[resource], namespace, name, change)

    def _drop_finalizer(self, who: Dependent, finalizer: str) -> None:
        def change(current: Object) -> None:
            meta = current["metadata"]
            meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != finalizer]

        resource, namespace, name = who
        self.verbs.modify(_BY_KEY[resource], namespace, name, change)


def _waits(meta: Meta) -> bool:
    """Whether an object that is to be deleted leaves the rest to us."""
    return meta.deletion_timestamp is not None and (
        FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers
    )
