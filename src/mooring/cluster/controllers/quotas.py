"""ResourceQuotas: how much of each is used, counted anew when objects go or end.

Objects that are created are counted by the API server when it accepts them.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from mooring.api.codec import decode
from mooring.api.quantity import Quantity
from mooring.client.errors import NotFound
from mooring.cluster.apiserver.pod_resources import Amounts, add_amounts
from mooring.cluster.apiserver.quotas import counted_names, in_scope, usage
from mooring.cluster.apiserver.resources import (
    CLAIMS,
    PODS,
    QUOTAS,
    RESOURCES,
    SERVICES,
    Resource,
)
from mooring.cluster.apiserver.store import Item, Object, StoreChange
from mooring.cluster.controllers.base import STATUS_DELAY, BuiltInController, ControllerContext
from mooring.cluster.controllers.reconcile_queue import Key

_COUNTED: Final = tuple(found for found in RESOURCES if found.namespaced and not found.storage)
_RESYNC: Final = 300.0  # seconds


class _Pod(msgspec.Struct):
    spec: msgspec.Raw = msgspec.Raw(b"")


def _spec_of(item: Item) -> bytes:
    return bytes(decode(item.raw, _Pod).spec)


class ResourceQuotaController(BuiltInController):
    """Writes `status.hard` and `status.used`. Its keys are quotas."""

    watches: ClassVar[tuple[Resource, ...]] = _COUNTED
    name: ClassVar[str] = "resourcequota-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._quotas: dict[str, set[str]] = {}  # names by namespace
        self._pods: dict[str, tuple[int, Object]] = {}  # by uid: decoded at a version

    def on_change(self, change: StoreChange) -> None:
        namespace, name = change.new.key
        if change.resource == QUOTAS.key:
            names = self._quotas.setdefault(namespace, set())
            if change.type == "DELETED":
                names.discard(name)
                if not names:
                    del self._quotas[namespace]
            else:
                names.add(name)
                self.enqueue((namespace, name))
        if namespace in self._quotas and self._may_free(change):
            for quota in self._quotas[namespace]:
                self.enqueue((namespace, quota), STATUS_DELAY)

    def _may_free(self, change: StoreChange) -> bool:
        """Whether less may be used now; what is used more was counted when it was accepted."""
        if change.type == "DELETED":
            if change.resource == PODS.key:
                self._pods.pop(change.new.uid, None)
            return True
        if change.type == "ADDED":
            return False
        if change.resource != PODS.key:
            return change.resource in (SERVICES.key, CLAIMS.key)
        before, latest = self.pods.before, self.pods.latest
        if before is None or latest is None or change.old is None:
            return True
        has_ended = before.is_finished != latest.is_finished
        return has_ended or _spec_of(change.old) != _spec_of(change.new)

    def reconcile(self, key: Key) -> float | None:
        quota = self.read(QUOTAS, key)
        if quota is None:
            return None
        hard = quota.get("spec", {}).get("hard") or {}
        used: Amounts = {}
        for of in _COUNTED:
            names = counted_names(of, hard)
            if names:
                for name in names:
                    used[name] = Quantity.ZERO
                self._count(quota, of, names, used)
        try:
            self.write_status(
                QUOTAS,
                quota,
                {"hard": hard, "used": {name: str(amount) for name, amount in used.items()}},
            )
        except NotFound:
            return None
        return _RESYNC

    def _count(self, quota: Object, of: Resource, names: list[str], used: Amounts) -> None:
        now = self.clock.now()
        for item in self.items(of, quota["metadata"]["namespace"]):
            value = self._decoded(item) if of.key == PODS.key else item.decoded()
            if in_scope(quota, of, value):
                found = usage(of, value, now)
                add_amounts(used, {name: found[name] for name in names if name in found})

    def _decoded(self, item: Item) -> Object:
        """A pod, decoded once per version: there may be thousands."""
        version, value = self._pods.get(item.uid, (0, {}))
        if version != item.version:
            value = item.decoded()
            self._pods[item.uid] = (item.version, value)
        return value
