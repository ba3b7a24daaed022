"""Unschedulable pods, which were refused and wait for an event, and gated pods.

They are indexed by the plugins that refused them, so that an event checks only pods it may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.framework.results import QueuedPod


class UnschedulablePods:
    """Refused pods by "namespace/name", in the order they were added.

    The rejectors and the gate of a pod must not change while it is in here.
    """

    __slots__ = ("_arrivals", "_by_plugin", "_gated", "_next", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._arrivals: dict[str, int] = {}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}
        self._gated: set[str] = set()
        self._next = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def gated_count(self) -> int:
        return len(self._gated)

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def add(self, queued: QueuedPod) -> None:
        key = queued.pod.key
        self.remove(key)
        self._pods[key] = queued
        self._arrivals[key] = self._next
        self._next += 1
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            self._by_plugin.setdefault(plugin, {})[key] = queued
        if queued.gated_by:
            self._gated.add(key)

    def remove(self, key: str) -> QueuedPod | None:
        queued = self._pods.pop(key, None)
        if queued is None:
            return None
        del self._arrivals[key]
        self._gated.discard(key)
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            refused = self._by_plugin[plugin]
            del refused[key]
            if not refused:
                del self._by_plugin[plugin]
        return queued

    def refused_by(self, plugins: Iterable[str]) -> list[QueuedPod]:
        """The pods that at least one of these plugins refused, in the order they were added."""
        if not self._by_plugin:
            return []
        found: dict[str, QueuedPod] = {}
        for plugin in plugins:
            found.update(self._by_plugin.get(plugin, {}))
        return [found[key] for key in sorted(found, key=self._arrivals.__getitem__)]
