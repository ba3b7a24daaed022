"""Unschedulable pods, which were refused and wait for an event, and gated pods.

They are indexed by the plugins that refused or gate them, so that an event checks only pods it may
help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

from mooring.framework.results import QueuedPod


class UnschedulablePods:
    """Refused pods by "namespace/name", in the order they were added.

    The rejectors and the gate of a pod must not change while it is in here.
    """

    __slots__ = ("_arrivals", "_by_gate", "_by_plugin", "_gated_count", "_next", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._arrivals: dict[str, int] = {}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}  # those that are not gated, by uid
        self._by_gate: dict[str, dict[str, QueuedPod]] = {}  # the gated, by the plugin that does it
        self._gated_count = 0
        self._next = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def gated_count(self) -> int:
        return self._gated_count

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def add(self, queued: QueuedPod) -> None:
        key = queued.pod.key
        self.remove(key)
        self._pods[key] = queued
        self._arrivals[key] = self._next
        self._next += 1
        index, plugins = self._indexed(queued)
        for plugin in plugins:
            index.setdefault(plugin, {})[queued.pod.uid] = queued
        self._gated_count += bool(queued.gated_by)

    def remove(self, key: str) -> QueuedPod | None:
        queued = self._pods.pop(key, None)
        if queued is None:
            return None
        del self._arrivals[key]
        self._gated_count -= bool(queued.gated_by)
        index, plugins = self._indexed(queued)
        for plugin in plugins:
            refused = index[plugin]
            del refused[queued.pod.uid]
            if not refused:
                del index[plugin]
        return queued

    def concerned(
        self, plugins: Iterable[str], shut: Callable[[], AbstractSet[str]] = frozenset
    ) -> list[QueuedPod]:
        """The pods that one of these plugins refused or gates, in the order they were added.

        Without the gated ones whose uid is in `shut()`.
        """
        if not self._pods:
            return []
        found: dict[str, QueuedPod] = {}
        for plugin in plugins:
            found.update(self._by_plugin.get(plugin, {}))
            gated = self._by_gate.get(plugin)
            if gated is not None:
                found.update({uid: gated[uid] for uid in gated.keys() - shut()})
        return sorted(found.values(), key=lambda queued: self._arrivals[queued.pod.key])

    def _indexed(self, queued: QueuedPod) -> tuple[dict[str, dict[str, QueuedPod]], Iterable[str]]:
        """A gated pod waits for its gate only, whatever else has refused it."""
        if queued.gated_by:
            return self._by_gate, (queued.gated_by,)
        return self._by_plugin, queued.unschedulable_plugins | queued.pending_plugins
