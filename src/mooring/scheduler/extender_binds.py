"""Pods that an extender reports as bound, until the watch shows the bind.

Without this check, a pod that the extender did not bind would stay assumed for ever, in no queue.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.client.errors import NotFound
from mooring.framework.handle import Clock
from mooring.framework.status import Status
from mooring.scheduler.binding import Assignment

log = logging.getLogger(__name__)

PATIENCE: Final = 30.0  # seconds until the pod is read from the API server

NodeOf = Callable[[Pod], Awaitable[str]]
"""The node that a pod has at the API server, or ""; raises NotFound."""


class _Claim(msgspec.Struct):
    assignment: Assignment
    extender: str
    since: float


class ExtenderBinds:
    """Reads pods that stay assumed from the API server; `refuse` gets those without a node."""

    def __init__(
        self,
        cache: Cache,
        clock: Clock,
        node_of: NodeOf,
        refuse: Callable[[Assignment, Status], None],
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._node_of = node_of
        self._refuse = refuse
        self._claims: dict[str, _Claim] = {}  # by pod uid

    def add(self, assignment: Assignment, extender: str) -> None:
        self._claims[assignment.pod.uid] = _Claim(assignment, extender, self._clock.now())

    async def check(self) -> None:
        for uid, claim in list(self._claims.items()):
            if not self._is_open(uid, claim):
                continue
            if self._clock.now() - claim.since >= PATIENCE:
                await self._ask(uid, claim)

    def _is_open(self, uid: str, claim: _Claim) -> bool:
        """Whether the watch has shown neither the bind nor the deletion of the pod."""
        if self._claims.get(uid) is not claim:
            return False  # the pod is in another attempt
        if not self._cache.is_assumed(uid):
            del self._claims[uid]
            return False
        return True

    async def _ask(self, uid: str, claim: _Claim) -> None:
        claim.since = self._clock.now()
        try:
            node = await self._node_of(claim.assignment.pod)
        except NotFound:
            return  # the watch will show the deletion
        if node or not self._is_open(uid, claim):
            return
        del self._claims[uid]
        text = f'extender "{claim.extender}" said that it bound the pod, which it did not'
        self._refuse(claim.assignment, Status.error(text))
