"""A scheduler on an API server: informers in, writes and Events out.

    informers ──▶ scheduler ──▶ binds, status patches
                      └──────▶ Events

`mooring run` and the embedded cluster run it; what differs is their `Component`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from typing import Final

from mooring import config as cfg
from mooring.client.component import Component
from mooring.extender.calling.connecting import connect, documents_for
from mooring.framework.handle import Clock
from mooring.framework.plugin import Base
from mooring.observe.metrics import Metrics
from mooring.runtime.recorder import EventRecorder
from mooring.scheduler.attempts import Attempt
from mooring.scheduler.cluster import CONGESTED, SchedulerWriter
from mooring.scheduler.conflicts import Conflict
from mooring.scheduler.scheduler import MAX_IN_UNSCHEDULABLE, Scheduler
from mooring.scheduler.watching import add_informers, kinds_to_watch

log = logging.getLogger(__name__)

_WARN_EVERY: Final = 300.0  # seconds


class ConnectedScheduler:
    """A scheduler as the work of a component; `await run()` until `component.stop()`."""

    def __init__(
        self,
        component: Component,
        config: cfg.KubeSchedulerConfiguration | None = None,
        *,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random | None = None,
        plugins: Iterable[type[Base]] = (),
        node_selector: str = "",
        max_in_unschedulable: float = MAX_IN_UNSCHEDULABLE,
        on_attempt: Callable[[Attempt], None] | None = None,
        check_share: float = 0.0,
        feature_gates: frozenset[str] = frozenset(),
        user_agent: str = "mooring",
    ) -> None:
        config = cfg.default_configuration() if config is None else config
        self.component: Component = component
        self._metrics = metrics
        self._clock = clock
        self._already_bound = 0  # pods, since the last warning
        self._next_warning = 0.0  # not before that time
        documents = documents_for(config.extenders)
        extenders = connect(
            config.extenders,
            documents,
            user_agent=user_agent,
            fence=component.fence,
            scoring=metrics.goroutines.labels("prioritizing_extender"),
        )
        component.close_at_end(extenders)
        writer = SchedulerWriter(
            component.writer,
            writes=component.writes,
            on_conflict=self._count,
            on_congestion=self._on_congestion,
        )
        self.scheduler: Scheduler = Scheduler(
            config,
            client=writer,
            recorder=EventRecorder(component.events),
            clock=clock,
            rng=rng,
            plugins=plugins,
            metrics=metrics,
            max_in_unschedulable=max_in_unschedulable,
            on_attempt=on_attempt,
            extenders=extenders,
            node_of=writer.node_of,
            check_share=check_share,
            feature_gates=feature_gates,
        )
        add_informers(
            component.informers,
            component.reader,
            self.scheduler.handlers,
            kinds_to_watch(self.scheduler.plans),
            node_selector,
            documents,
        )

    async def run(self, on_synced: Callable[[], None] | None = None) -> None:
        """Schedule; at the end, binds in progress finish and Events are written."""
        await self.component.run(self.scheduler, on_synced)

    def _on_congestion(self, is_congested: bool) -> None:
        if is_congested:
            self.scheduler.hold(CONGESTED)
        else:
            self.scheduler.release(CONGESTED)

    def _count(self, kind: Conflict) -> None:
        self._metrics.conflicts.labels(kind.value).add()
        if kind is not Conflict.ALREADY_BOUND:
            return
        self._already_bound += 1
        if self._clock.now() >= self._next_warning:
            log.warning(
                "another process binds pods of this scheduler: is a second one of the same name"
                " running without leader election?",
                extra={"pods": self._already_bound},
            )
            self._next_warning = self._clock.now() + _WARN_EVERY
            self._already_bound = 0
