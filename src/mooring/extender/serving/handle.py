"""The framework handle of an extender's plugins: the cluster as one request sees it.

An extender has no queue: no pod waits at Permit, none is nominated, and none can be activated.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from mooring.api import core
from mooring.api.meta import Condition, Object
from mooring.cache.cache import Cache
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import ApiError
from mooring.framework.handle import Client, Recorder, WaitingPod, WhatIf
from mooring.runtime.clock import SystemClock

log = logging.getLogger(__name__)


class ExtenderHandle:
    """Fulfils `framework.Handle`; `what_if` is attached once there are plugins to ask."""

    def __init__(
        self,
        scheduler_name: str,
        *,
        cache: Cache,
        client: Client,
        recorder: Recorder,
        rng: random.Random | None = None,
    ) -> None:
        self.scheduler_name: str = scheduler_name
        self.clock: SystemClock = SystemClock()
        self.random: random.Random = rng or random.Random()
        self.client: Client = client
        self.recorder: Recorder = recorder
        self.waiting: NoWaitingPods = NoWaitingPods()
        self.nominator: NoNominatedPods = NoNominatedPods()
        self.what_if: WhatIf
        self._cache = cache
        self._seen = cache

    @property
    def nodes(self) -> Nodes:
        return self._seen.nodes

    @property
    def objects(self) -> Objects:
        return self._cache.objects

    def activate(self, pods: Iterable[str]) -> None:
        """Does nothing: there is no queue."""

    @contextmanager
    def looking_at(self, seen: Cache) -> Iterator[None]:
        """While plugins run for a request, `nodes` are those of its cache."""
        self._seen = seen
        try:
            yield
        finally:
            self._seen = self._cache


class NoWaitingPods:
    """No pod is held at Permit."""

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(())

    def get(self, uid: str) -> WaitingPod | None:
        return None


class NoNominatedPods:
    """Nominated pods are known to the calling scheduler only."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        return ()

    def nominated_nodes(self) -> Sequence[str]:
        return ()


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
