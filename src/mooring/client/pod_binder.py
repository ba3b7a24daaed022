"""Binding a pod exactly once, over a connection that may lose answers.

A Binding whose answer was lost is not guessed about: the pod is looked up until it is known whether
it was carried out. The server refuses a second Binding of a pod, so to ask again is always safe.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from mooring.api import core
from mooring.client.client import ApiClient
from mooring.client.errors import ConflictError, Fenced, Garbled, NotFound, ServerError, Unreachable
from mooring.errors import ApiError

log = logging.getLogger(__name__)

_SHORTEST_PAUSE: Final = 0.1  # seconds
_LONGEST_PAUSE: Final = 5.0


class AlreadyBound(ConflictError):
    """Somebody else was faster; `node` is where the pod is."""

    def __init__(self, error: ConflictError, node: str) -> None:
        super().__init__(str(error), code=error.code, reason=error.reason, details=error.details)
        self.node: str = node


class PodBinder:
    """Creates Bindings. A Binding must name the uid of its pod, so that no namesake is bound."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def bind(self, binding: core.Binding) -> None:
        """Return once the pod is where the binding says, by a request of ours.

        Raises `AlreadyBound`, `NotFound` for a pod that nobody can bind any more, `Fenced`, or what
        else the server said no with. Waits for a server that does not answer.
        """
        pause = _SHORTEST_PAUSE
        is_unknown = False  # whether a request of ours may have been carried out unanswered
        while True:
            try:
                await self._client.bind(binding)
                return
            except ConflictError as error:
                node = await self._node_of(binding)
                # It is there by a request of ours whose answer was lost; or by somebody else's
                # who had the same idea, and then there is nothing left to do either.
                if node == binding.target.name:
                    return
                if node:
                    raise AlreadyBound(error, node) from error
                raise
            except Fenced:
                raise
            except (Unreachable, ServerError, Garbled) as error:
                is_unknown = True
                extra = {"pod": binding.key, "node": binding.target.name, "error": str(error)}
                log.warning("the outcome of a bind is unknown; looking it up", extra=extra)
            except ApiError:
                # A refusal speaks of this request and not of the one before it: a server that has
                # just started may forbid everything, because it has not read its rules yet.
                if not is_unknown:
                    raise
            if await self._node_of(binding) == binding.target.name:
                return
            # Not bound, or not yet: the server refuses a second Binding, so asking again is safe.
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _node_of(self, binding: core.Binding) -> str:
        """Where the pod is, empty if nowhere; asks until the server tells, or knows no such pod."""
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
            if pod.metadata.uid != meta.uid or is_leaving:  # which nobody can bind any more
                raise pod_not_found(meta.name)
            return pod.spec.node_name


def pod_not_found(name: str) -> NotFound:
    """For a pod whose name belongs to another one now, or that is on its way out."""
    return NotFound(f'pods "{name}" not found', code=404, reason="NotFound")
