"""The writes of a scheduler to an API server.

A bind overtakes status patches that wait for their turn. Those of the same pod are about an attempt
that failed before, and must not follow it: see `_StatusPatch`.

If the answer to a bind is lost, the pod is read until it is known whether the bind happened
(`client.pod_binder`); the pod stays assumed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mooring.api import core
from mooring.api.meta import Condition, ObjectMeta
from mooring.cache.pods import Pod
from mooring.client.client import ApiClient
from mooring.client.errors import Fenced
from mooring.client.flowcontrol import WritesInProgress
from mooring.client.pod_binder import AlreadyBound, PodBinder
from mooring.client.transport import Fence
from mooring.runtime.writer import Writer
from mooring.scheduler import conflicts

_MANY_BINDS: Final = 256  # under way; then no further pod is decided until half of them are done

CONGESTED: Final = "binds are waiting for the API server"


class _StatusPatch:
    """A status patch without an answer yet; obsolete once a bind of its pod is to be sent."""

    def __init__(self, fence: Fence | None) -> None:
        self.is_sent = False
        self.is_obsolete = False
        self.ended = asyncio.Event()
        self._fence = fence

    def fence(self) -> None:
        """Called just before it is sent."""
        if self.is_obsolete:
            raise Fenced("the pod is being bound")
        if self._fence is not None:
            self._fence()
        self.is_sent = True


class SchedulerWriter(Writer):
    """Writes for one scheduler; `writes` counts those that Events wait for.

    `on_congestion` is called with True when too many binds are under way and with False when most
    have ended: deciding further pods would only fill memory.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        writes: WritesInProgress,
        on_conflict: conflicts.OnConflict,
        on_congestion: Callable[[bool], None],
    ) -> None:
        super().__init__(client)
        self._binder = PodBinder(client)
        self._on_conflict = on_conflict
        self._on_congestion = on_congestion
        self._writes = writes
        self._under_way = 0
        self._is_congested = False
        self._status_patches: dict[str, list[_StatusPatch]] = {}  # by uid

    async def bind(self, binding: core.Binding) -> None:
        self._count(+1)
        self._writes.begin()
        try:
            for patch in tuple(self._status_patches.get(binding.metadata.uid, ())):
                patch.is_obsolete = True
                if patch.is_sent:
                    await patch.ended.wait()
            await self._binder.bind(binding)
        except AlreadyBound:
            self._on_conflict(conflicts.Conflict.ALREADY_BOUND)
            raise
        finally:
            self._writes.end()
            self._count(-1)

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        patch = _StatusPatch(self._client.new_fence())
        unanswered = self._status_patches.setdefault(pod.uid, [])
        unanswered.append(patch)
        self._writes.begin()
        try:
            await self._patch_status(pod, condition, nominated_node, patch.fence)
        except Fenced:
            if not patch.is_obsolete:
                raise
        finally:
            patch.ended.set()
            unanswered.remove(patch)
            if not unanswered:
                del self._status_patches[pod.uid]
            self._writes.end()

    async def delete_pod(self, pod: Pod) -> None:
        self._writes.begin()
        try:
            await super().delete_pod(pod)
        finally:
            self._writes.end()

    async def node_of(self, pod: Pod) -> str:
        """The node that a pod has at the API server, or "". Raises `NotFound`."""
        meta = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
        return await self._binder.node_of(core.Binding(metadata=meta))

    def _count(self, change: int) -> None:
        self._under_way += change
        if not self._is_congested and self._under_way >= _MANY_BINDS:
            self._is_congested = True
            self._on_congestion(True)
        elif self._is_congested and self._under_way <= _MANY_BINDS // 2:
            self._is_congested = False
            self._on_congestion(False)
