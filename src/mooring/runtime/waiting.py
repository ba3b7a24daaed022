"""Pods that wait at Permit until all plugins allow them, one rejects them, or a timeout ends.

The first decision is final. Timers run on the event loop, so tests can use a virtual loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from mooring.cache.pods import Pod
from mooring.config import format_duration
from mooring.framework.status import OK, Status


class WaitingPod:
    """One waiting pod."""

    def __init__(
        self, pod: Pod, node_name: str, holds: Mapping[str, float], attempts: int = 0
    ) -> None:
        loop = asyncio.get_running_loop()
        self._pod = pod
        self._node_name = node_name
        self.timeouts: Mapping[str, float] = holds  # seconds, by plugin
        self.attempts = attempts
        self.since: float = loop.time()
        self._signal: asyncio.Future[Status] = loop.create_future()
        self._timers = {
            plugin: loop.call_later(timeout, self._expire, plugin, timeout)
            for plugin, timeout in holds.items()
        }

    @property
    def pod(self) -> Pod:
        return self._pod

    @property
    def node_name(self) -> str:
        return self._node_name

    @property
    def pending_plugins(self) -> Sequence[str]:
        return tuple(self._timers)

    @property
    def is_decided(self) -> bool:
        return self._signal.done()

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._settle(OK)

    def reject(self, plugin: str, reason: str) -> bool:
        return self._settle(Status.unschedulable(reason).by(plugin))

    def preempt(self, plugin: str, reason: str) -> bool:
        """Reject the pod for a preemptor, with an error: it then has no plugin that refused it."""
        return self._settle(Status.error(reason).by(plugin))

    async def wait(self) -> Status:
        return await self._signal

    def _expire(self, plugin: str, timeout: float) -> None:
        waited = format_duration(timeout)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _settle(self, status: Status) -> bool:
        if self._signal.done():
            return False
        for timer in self._timers.values():
            timer.cancel()
        self._signal.set_result(status)
        return True


class WaitingPods:
    """All waiting pods of a scheduler, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def hold(
        self, pod: Pod, node_name: str, holds: Mapping[str, float], attempts: int = 0
    ) -> WaitingPod:
        waiting = self._pods[pod.uid] = WaitingPod(pod, node_name, holds, attempts)
        return waiting

    def release(self, uid: str) -> None:
        self._pods.pop(uid, None)
