"""Binds a pod exactly once, over a connection that may lose responses.

If the response to a Binding was lost, the pod is looked up until the outcome is known. The server
refuses a second Binding of a pod, so that a repeated request is safe.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from mooring.api import core
from mooring.client.client import ApiClient
from mooring.client.errors import OUTCOME_UNKNOWN, ConflictError, Fenced, NotFound
from mooring.errors import ApiError

log = logging.getLogger(__name__)

_SHORTEST_PAUSE: Final = 0.1  # seconds
_LONGEST_PAUSE: Final = 5.0


class AlreadyBound(ConflictError):
    """The pod was bound by another client, to `node`."""

    def __init__(self, error: ConflictError, node: str) -> None:
        super().__init__(str(error), code=error.code, reason=error.reason, details=error.details)
        self.node: str = node


class PodBinder:
    """Creates Bindings. A Binding must name the uid of its pod, so that no namesake is bound."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def bind(self, binding: core.Binding) -> None:
        """Return once the pod is bound to the target node. Waits for a server that is down.

        Raises `AlreadyBound`, `NotFound` for a pod that is gone or terminating, `Fenced`, or the
        error with which the server refused.
        """
        pause = _SHORTEST_PAUSE
        fence = self._client.new_fence()
        is_unknown = False  # whether a request of ours may have been carried out unanswered
        while True:
            try:
                await self._client.bind(binding, fence)
                return
            except ConflictError as error:
                node = await self.node_of(binding)
                # By a request of ours whose response was lost, or by an equal one of another
                # client: then nothing is left to do either.
                if node == binding.target.name:
                    return
                if node:
                    raise AlreadyBound(error, node) from error
                raise
            except Fenced:
                raise
            except OUTCOME_UNKNOWN as error:
                is_unknown = True
                extra = {"pod": binding.key, "node": binding.target.name, "error": str(error)}
                log.warning("the outcome of a bind is unknown; looking it up", extra=extra)
            except ApiError:
                # This says nothing of the request before: a server that has just started may
                # forbid everything, because it has not read its rules yet.
                if not is_unknown:
                    raise
            if await self.node_of(binding) == binding.target.name:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def node_of(self, binding: core.Binding) -> str:
        """The pod's node or "", asked until the server answers. Raises `NotFound`."""
        meta = binding.metadata
        pause = _SHORTEST_PAUSE
        while True:
            try:
                pod = await self._client.get(core.Pod, meta.name, meta.namespace)
            except NotFound:
                raise
            except ApiError as error:
                extra = {"pod": binding.key, "error": str(error)}
                log.debug("could not look up a pod", extra=extra)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            is_leaving = pod.metadata.deletion_timestamp and not pod.spec.node_name
            if pod.metadata.uid != meta.uid or is_leaving:
                raise pod_not_found(meta.name)
            return pod.spec.node_name


def pod_not_found(name: str) -> NotFound:
    """For a pod that is terminating, or whose name now belongs to another one."""
    return NotFound(f'pods "{name}" not found', code=404, reason="NotFound")
