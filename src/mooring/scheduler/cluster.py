"""What a scheduler writes, carried to a real API server.

`Writer` fulfils `framework.Client`. A write whose answer was lost is not guessed about: a bind is
looked up until it is known whether it happened (`client.binding`), and the pod's place stays taken
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from mooring.api import core
from mooring.api.codec import to_builtins
from mooring.api.meta import Condition, Object
from mooring.cache.pods import Pod
from mooring.client import paths
from mooring.client.client import ApiClient
from mooring.client.errors import (
    ConflictError,
    Garbled,
    NotFound,
    ServerError,
    StatusError,
    Unreachable,
)
from mooring.client.flowcontrol import BindsInProgress
from mooring.client.pod_binder import AlreadyBound, PodBinder, pod_not_found
from mooring.client.transport import STRATEGIC_MERGE_PATCH
from mooring.errors import ApiError
from mooring.scheduler import conflicts

T = TypeVar("T")

_SHORTEST_PAUSE: Final = 0.1  # seconds
_TRIES: Final = 4  # of a status patch
_MANY_BINDS: Final = 256  # under way; then no further pod is decided until half of them are done

CONGESTED: Final = "binds are waiting for the API server"


class Writer:
    """Writes for one scheduler; `binds` counts the binds under way.

    `on_congestion` is told True when binds pile up and False when they have drained: deciding
    further pods would only fill memory.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        binds: BindsInProgress,
        on_conflict: conflicts.OnConflict,
        on_congestion: Callable[[bool], None],
    ) -> None:
        self._client = client
        self._binder = PodBinder(client)
        self._on_conflict = on_conflict
        self._on_congestion = on_congestion
        self._binds = binds
        self._under_way = 0
        self._is_congested = False

    # --- binding -------------------------------------------------------------------------------

    async def bind(self, binding: core.Binding) -> None:
        self._count(+1)
        self._binds.begin()
        try:
            await self._binder.bind(binding)
        except AlreadyBound:
            self._on_conflict(conflicts.Conflict.ALREADY_BOUND)
            raise
        finally:
            self._binds.end()
            self._count(-1)

    def _count(self, change: int) -> None:
        self._under_way += change
        if not self._is_congested and self._under_way >= _MANY_BINDS:
            self._is_congested = True
            self._on_congestion(True)
        elif self._is_congested and self._under_way <= _MANY_BINDS // 2:
            self._is_congested = False
            self._on_congestion(False)

    # --- other writes --------------------------------------------------------------------------

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        status: dict[str, Any] = {}
        if condition is not None:
            status["conditions"] = [to_builtins(condition)]
        if nominated_node is not None:
            status["nominatedNodeName"] = nominated_node or None
        # The uid keeps a namesake from being patched.
        change = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._insist(
                lambda: self._client.patch(
                    core.Pod,
                    pod.name,
                    pod.namespace,
                    change,
                    content_type=STRATEGIC_MERGE_PATCH,
                    subresource="status",
                )
            )
        except StatusError as error:
            if error.code == 422 and "metadata.uid" in str(error):
                raise pod_not_found(pod.name) from error
            raise

    async def delete_pod(self, pod: Pod) -> None:
        try:
            await self._insist(
                lambda: self._client.delete(core.Pod, pod.name, pod.namespace, uid=pod.uid)
            )
        except (NotFound, ConflictError):
            return  # gone, or replaced by a namesake

    async def update(self, value: Object) -> None:
        """A merge patch of what differs, because our structs hold only some of the fields."""
        kind, meta = type(value), value.metadata
        current = await self._client.get(kind, meta.name, meta.namespace)
        if current.metadata.resource_version != meta.resource_version:
            raise _modified(value)
        change = merge_patch(to_builtins(current), to_builtins(value))
        if not change:
            return
        # With the version, so that the server refuses if the object has changed since.
        change.setdefault("metadata", {})["resourceVersion"] = meta.resource_version
        await self._client.patch(kind, meta.name, meta.namespace, change)

    async def _insist(self, write: Callable[[], Awaitable[T]]) -> T:
        """Repeat a write that may be repeated until it is answered, a few times."""
        pause = _SHORTEST_PAUSE
        for _ in range(_TRIES - 1):
            try:
                return await write()
            except (Unreachable, ServerError, Garbled):
                await asyncio.sleep(pause)
                pause *= 2
        return await write()


def merge_patch(old: Any, new: Any) -> dict[str, Any]:
    """The JSON merge patch that turns `old` into `new`; lists are replaced whole."""
    change: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            change[key] = value
        elif isinstance(value, dict) and isinstance(old[key], dict):
            inner = merge_patch(old[key], value)
            if inner:
                change[key] = inner
        elif value != old[key]:
            change[key] = value
    return change


def _modified(value: Object) -> ApiError:
    text = (
        f'Operation cannot be fulfilled on {paths.resource_of(type(value))} "{value.name}": the'
        " object has been modified; please apply your changes to the latest version and try again"
    )
    return ConflictError(text, code=409, reason="Conflict")
