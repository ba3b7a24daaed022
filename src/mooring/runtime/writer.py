"""Carries out the writes of plugins on an API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from mooring.api import core
from mooring.api.codec import to_builtins
from mooring.api.merging import merge_patch
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
from mooring.client.pod_binder import pod_not_found
from mooring.client.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Fence
from mooring.errors import ApiError
from mooring.framework._internal import MERGE, STRATEGIC

O = TypeVar("O", bound=Object)  # noqa: E741 - an object; T is any value
T = TypeVar("T")

_SHORTEST_PAUSE: Final = 0.1  # seconds
_TRIES: Final = 4  # of a status patch


class Writer:
    """Fulfils `framework.Client`.

    A bind is tried once, as an extender needs it: the calling scheduler gives up after some seconds
    and decides again, so a late bind could conflict with another decision.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()  # in the background

    async def bind(self, binding: core.Binding) -> None:
        await self._client.bind(binding)

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        await self._patch_status(pod, condition, nominated_node)

    async def _patch_status(
        self,
        pod: Pod,
        condition: Condition | None,
        nominated_node: str | None,
        fence: Fence | None = None,
    ) -> None:
        status: dict[str, Any] = {}
        if condition is not None:
            status["conditions"] = [to_builtins(condition)]
        if nominated_node is not None:
            status["nominatedNodeName"] = nominated_node or None
        # With the uid, so that another pod of the same name is not patched.
        change = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._insist(
                lambda: self._client.patch_without_answer(
                    core.Pod, pod.name, pod.namespace, change, subresource="status", fence=fence
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
            return  # deleted, or replaced by another pod of the same name

    async def update(self, value: Object) -> None:
        """Send a merge patch of the differences: the structs lack some fields of the object."""
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

    # --- framework._internal.ObjectWriter --------------------------------------------------------

    async def get(self, kind: type[O], name: str, namespace: str = "") -> O:
        return await self._client.get(kind, name, namespace)

    async def create(self, value: O) -> O:
        return await self._client.create(value)

    async def change(
        self, value: O, change: Mapping[str, Any], *, subresource: str = "", kind: str = MERGE
    ) -> O:
        meta = value.metadata
        content_type = STRATEGIC_MERGE_PATCH if kind == STRATEGIC else MERGE_PATCH
        return await self._client.patch(
            type(value),
            meta.name,
            meta.namespace,
            change,
            content_type=content_type,
            subresource=subresource,
        )

    async def remove(self, value: Object) -> None:
        meta = value.metadata
        with contextlib.suppress(NotFound):  # it is gone already
            await self._client.delete(type(value), meta.name, meta.namespace, uid=meta.uid)

    def soon(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.ensure_future(write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _insist(self, write: Callable[[], Awaitable[T]]) -> T:
        """Repeat an idempotent write a few times until it is answered."""
        pause = _SHORTEST_PAUSE
        for _ in range(_TRIES - 1):
            try:
                return await write()
            except (Unreachable, ServerError, Garbled):
                await asyncio.sleep(pause)
                pause *= 2
        return await write()


def _modified(value: Object) -> ApiError:
    text = (
        f'Operation cannot be fulfilled on {paths.resource_of(type(value))} "{value.name}": the'
        " object has been modified; please apply your changes to the latest version and try again"
    )
    return ConflictError(text, code=409, reason="Conflict")
