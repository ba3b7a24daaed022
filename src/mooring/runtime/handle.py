"""The handle that the plugins of one profile get, in a scheduler and in an extender."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from mooring.cache.cache import Cache
from mooring.cache.objects import Objects
from mooring.cache.snapshot import Nodes
from mooring.framework.handle import Client, Clock, Nominator, Recorder, WhatIf
from mooring.runtime.waiting import WaitingPods


class ProfileHandle:
    """Fulfils `framework.Handle`.

    Profiles are built before the queue, because the queue is sorted by one of their plugins; so
    queue and profile are attached afterwards. No plugin is called before that.
    """

    def __init__(
        self,
        scheduler_name: str,
        *,
        cache: Cache,
        clock: Clock,
        rng: random.Random,
        client: Client,
        recorder: Recorder,
        waiting: WaitingPods,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.clock = clock
        self.random = rng
        self.client = client
        self.recorder = recorder
        self.waiting = waiting
        self.nominator: Nominator
        self.what_if: WhatIf
        self._cache = cache
        self._activate: Callable[[Iterable[str]], None]

    def attach(
        self, nominator: Nominator, what_if: WhatIf, activate: Callable[[Iterable[str]], None]
    ) -> None:
        self.nominator = nominator
        self.what_if = what_if
        self._activate = activate

    @property
    def nodes(self) -> Nodes:
        return self._cache.nodes

    @property
    def objects(self) -> Objects:
        return self._cache.objects

    def activate(self, pods: Iterable[str]) -> None:
        # Not at once: the plugin may have been called while the queue moves pods.
        asyncio.get_running_loop().call_soon(self._activate, tuple(pods))
