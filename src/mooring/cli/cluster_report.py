"""Prints where pods were placed and why others wait, for users without kubectl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from mooring.api.meta import Condition
from mooring.api.wellknown import ZONE
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Store, StoreChange

_PODS: Final = known("pods")
_NODES: Final = known("nodes")
_MOST: Final = 20  # lines at a time; more pods than that are counted


class _Status(msgspec.Struct):
    conditions: tuple[Condition, ...] | None = ()


class _PodConditions(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


_decode: Final = msgspec.json.Decoder(_PodConditions).decode


class PlacementReport:
    """Follows a store; prints which pods were placed, and why others were not."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._placed: dict[str, str] = {}  # pod -> node, since the last call
        self._waiting: dict[str, str] = {}  # pod -> why, since the last call
        self._reasons: dict[str, str] = {}  # as last printed, so that nothing is printed twice
        store.listen(self._on_change)

    def print_changes(self) -> None:
        """Print what has changed since the last call."""
        placed, self._placed = self._placed, {}
        waiting, self._waiting = self._waiting, {}
        if len(placed) > _MOST:
            nodes = len(set(placed.values()))
            self._say(f"placed {len(placed)} pods on {nodes} node{'s' if nodes > 1 else ''}")
        else:
            for pod, node in placed.items():
                self._say(f"placed {pod} on {node}{self._zone(node)}")
        still = {pod: why for pod, why in waiting.items() if pod not in placed}
        for pod, why in list(still.items())[:_MOST]:
            self._say(f"waits  {pod}: {why}")
        if len(still) > _MOST:
            self._say(f"waits  {len(still) - _MOST} more pods")

    def _zone(self, node: str) -> str:
        item = self._store.get(_NODES, "", node)
        zone = item.labels.get(ZONE) if item is not None else ""
        return f" ({zone})" if zone else ""

    def _on_change(self, change: StoreChange) -> None:
        if change.resource != _PODS.key:
            return
        item, old = change.new, change.old
        key = f"{item.namespace}/{item.name}"
        if change.type == "DELETED":
            self._reasons.pop(key, None)
            self._waiting.pop(key, None)
            return
        node = item.fields.get("spec.nodeName", "")
        if node:
            if old is None or not old.fields.get("spec.nodeName"):
                self._reasons.pop(key, None)
                self._placed[key] = node
        elif change.type == "MODIFIED":
            self._on_waiting(key, item.raw)

    def _on_waiting(self, key: str, raw: bytes) -> None:
        for condition in _decode(raw).status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                if self._reasons.get(key) != condition.message:
                    self._reasons[key] = self._waiting[key] = condition.message
                return
