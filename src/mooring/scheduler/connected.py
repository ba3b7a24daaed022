"""A scheduler on an API server, whichever way that is reached: informers in, writes and Events out.

    informers ──▶ scheduler ──▶ binds, status patches
                      └──────▶ Events

It decides nothing before it knows the cluster. There is one scheduler and no lease: who runs
several beside each other has to see to it that they serve different pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from typing import Final

from mooring import config as cfg
from mooring.client.client import ApiClient
from mooring.client.events import EventSink
from mooring.client.informer import Informers
from mooring.extender.calling.connecting import connect, documents_for
from mooring.framework.handle import Clock
from mooring.framework.plugin import Base
from mooring.observe.metrics import Metrics
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry
from mooring.scheduler.cluster import CONGESTED, Writer
from mooring.scheduler.conflicts import Conflict
from mooring.runtime.recorder import EventRecorder
from mooring.scheduler.scheduler import Attempt, Scheduler
from mooring.scheduler.watching import informers_for, kinds_to_watch

_SYNCING: Final = "informers are not synced"
_EVENTS_WAITING: Final = 20_000  # to be written; further ones are dropped
_EVENTS_LAST: Final = 3.0  # seconds for Events that are still in line at the end
_GRACE: Final = 5.0  # seconds for binds that are under way at the end


class Connected:
    """One scheduler and its connections; `await run()` until `stop()`."""

    def __init__(
        self,
        client: ApiClient,
        config: cfg.KubeSchedulerConfiguration | None = None,
        *,
        clock: Clock,
        rng: random.Random | None = None,
        plugins: Iterable[type[Base]] = (),
        metrics: Metrics | None = None,
        host: str = "localhost",
        node_selector: str = "",
        on_attempt: Callable[[Attempt], None] | None = None,
        check_share: float = 0.0,
    ) -> None:
        config = cfg.default_configuration() if config is None else config
        plugins = tuple(plugins)
        self.metrics: Metrics = metrics or Metrics()
        documents = documents_for(config.extenders)
        extenders = connect(
            config.extenders,
            documents,
            user_agent="mooring",
            scoring=self.metrics.goroutines.labels("prioritizing_extender"),
        )
        self._extenders = extenders
        writer = Writer(client, on_conflict=self._count, on_congestion=self._on_congestion)
        self.events: EventSink = EventSink(
            client, host=host, clock=clock.now, capacity=_EVENTS_WAITING, binds=writer.binds
        )
        self.scheduler: Scheduler = Scheduler(
            config,
            client=writer,
            recorder=EventRecorder(self.events),
            clock=clock,
            rng=rng,
            plugins=plugins,
            metrics=self.metrics,
            on_attempt=on_attempt,
            extenders=extenders,
            check_share=check_share,
        )
        plans = plan_profiles(config, Registry.discover(plugins))
        self.informers: Informers = informers_for(
            self.scheduler.handlers, kinds_to_watch(plans), client, node_selector, documents
        )
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Schedule until `stop`; binds that are under way may end, and Events be written."""
        self.scheduler.hold(_SYNCING)
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(self._watch(), name="informers"),
                tasks.create_task(self.events.run(), name="events"),
            ]
            scheduling = tasks.create_task(self.scheduler.run(), name="scheduler")
            await self._stop.wait()
            self.scheduler.stop()
            _, late = await asyncio.wait([scheduling], timeout=_GRACE)
            for task in late:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await self.events.drain(_EVENTS_LAST)
            for task in background:
                task.cancel()
            await self._extenders.close()

    def stop(self) -> None:
        """Decide about no further pod; `run` comes to its end."""
        self._stop.set()

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informers.run())
            await self.informers.wait_synced()
            self.scheduler.release(_SYNCING)

    def _on_congestion(self, is_congested: bool) -> None:
        if is_congested:
            self.scheduler.hold(CONGESTED)
        else:
            self.scheduler.release(CONGESTED)

    def _count(self, kind: Conflict) -> None:
        self.metrics.conflicts.labels(kind.value).add()
