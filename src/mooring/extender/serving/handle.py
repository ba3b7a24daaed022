"""The framework handle of an extender's plugins: the cluster as one request sees it.

An extender has no queue: no pod waits at Permit, none is nominated, and none can be activated.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager

from mooring.api import core
from mooring.api.meta import Condition, Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import ApiError
from mooring.framework.handle import Client, Recorder
from mooring.runtime.clock import SystemClock
from mooring.runtime.handle import ProfileHandle
from mooring.runtime.waiting import WaitingPods

log = logging.getLogger(__name__)


class ExtenderHandle(ProfileHandle):
    """A handle whose nodes are those of the request that is being answered."""

    def __init__(
        self, scheduler_name: str, *, cache: Cache, client: Client, recorder: Recorder
    ) -> None:
        super().__init__(
            scheduler_name,
            cache=cache,
            clock=SystemClock(),
            rng=random.Random(),
            client=client,
            recorder=recorder,
            waiting=WaitingPods(),
        )
        self._seen = cache

    @property
    def nodes(self) -> Nodes:
        return self._seen.nodes

    @contextmanager
    def looking_at(self, seen: Cache) -> Iterator[None]:
        """While plugins run for a request, `nodes` are those of its cache."""
        self._seen = seen
        try:
            yield
        finally:
            self._seen = self._cache


class LoggingRecorder:
    """Logs Events instead of writing them."""

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        log.info("event", extra={"pod": pod.key, "type": type_, "reason": reason, "note": note})


class NoCluster:
    """Fulfils `framework.Client` where there is no cluster to write to."""

    async def bind(self, binding: core.Binding) -> None:
        raise _not_connected()

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        raise _not_connected()

    async def delete_pod(self, pod: Pod) -> None:
        raise _not_connected()

    async def update(self, value: Object) -> None:
        raise _not_connected()


def _not_connected() -> ApiError:
    return ApiError("this extender is not connected to a cluster")
