"""Nodes, queue, records and stream of a running scheduler, as `/lens/v1` shows them.

Everything happens on the loop of the scheduler, a few milliseconds at a time; decisions are made in
between. An answer that was just given is given again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final, Literal

import msgspec

from mooring import __version__
from mooring.lens.api import (
    LensQueue,
    LensState,
    PluginTime,
    RecordPage,
    RecordRow,
    SchedulerInfo,
)
from mooring.lens.queued import queued_pods
from mooring.lens.record import DecisionRecord
from mooring.lens.record_entry import micros
from mooring.lens.sight import Sight, seen_node, seen_queue, seen_row, seen_state
from mooring.lens.slices import LONG_STEP, in_slices
from mooring.lens.state import node_columns, node_page, time_text
from mooring.lens.stream import ChangeStream, queue_counts
from mooring.lens.waiting_list import MOST_ROWS, queue_of
from mooring.observe.metrics import Metrics
from mooring.scheduler.scheduler import Scheduler

Source = Literal["scheduler", "cluster"]

MOST_RECORDS: Final = 1_000
_MOST_PLUGINS: Final = 10
_FRESH: Final = 0.5  # seconds for which an answer is given again


def plugin_times(metrics: Metrics) -> tuple[PluginTime, ...]:
    """The plugins that take the most time."""
    sums: dict[tuple[str, str], tuple[float, int]] = {}
    for (plugin, point, _), measured in metrics.plugin_duration:
        seconds, calls = sums.get((plugin, point), (0.0, 0))
        sums[plugin, point] = seconds + measured.total, calls + measured.count
    whole = sum(seconds for seconds, _ in sums.values()) or 1.0
    slowest = sorted(sums.items(), key=lambda one: (-one[1][0], one[0]))[:_MOST_PLUGINS]
    return tuple(
        PluginTime(
            plugin=plugin,
            point=point,
            calls=calls,
            mean_us=micros(seconds / max(calls, 1)),
            share=round(seconds / whole, 4),
        )
        for (plugin, point), (seconds, calls) in slowest
        if calls
    )


class RecordQuery(msgspec.Struct, frozen=True):
    """Which records are asked for."""

    limit: int = 100
    before: int | None = None  # number
    pod: str = ""  # "namespace/name"
    outcome: str = ""
    since: str = ""  # RFC 3339


class LiveViews:
    """What one scheduler shows of itself.

    `leads` says whether it decides, `explains_past` whether past attempts can be explained exactly.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        record: DecisionRecord | None = None,
        *,
        source: Source = "scheduler",
        leads: Callable[[], bool] = lambda: True,
        explains_past: Callable[[], bool] = lambda: False,
    ) -> None:
        self._scheduler = scheduler
        self._record = record
        self._source: Source = source
        self._leads = leads
        self._explains_past = explains_past
        self._stream = ChangeStream(scheduler, record)
        self._turn = asyncio.Lock()
        self._kept: dict[Any, tuple[float, bytes]] = {}  # answer by question, and since when

    async def state(self, sight: Sight) -> bytes:
        """Nodes in columns, counts of the queue, rates."""
        return await self._answer(("state", sight), lambda: self._state(sight))

    async def queue(self, sight: Sight, place: str = "", limit: int = MOST_ROWS) -> bytes:
        """Pods without a node."""
        return await self._answer(
            ("queue", sight, place, limit), lambda: self._queue(sight, place, limit)
        )

    async def node(self, name: str, sight: Sight) -> bytes | None:
        """One node and its pods; None if there is none of this name."""
        nominated = self._scheduler.queue.nominator.nominated_on(name)
        found = node_page(self._scheduler.cache, name, nominated)
        return None if found is None else msgspec.json.encode(seen_node(found, sight))

    async def records(self, sight: Sight, query: RecordQuery) -> bytes | None:
        """Records, the newest first; None if none are kept."""
        if self._record is None:
            return None
        return await in_slices(self._records(self._record, sight, query))

    def stream(self, sight: Sight) -> AsyncGenerator[bytes, None]:
        """Changes from now on, as Server-Sent Events. May raise Busy, before the first."""
        return self._stream.follow(sight)

    async def _answer(self, key: Any, work: Callable[[], Generator[Any, None, bytes]]) -> bytes:
        loop = asyncio.get_running_loop()
        async with self._turn:
            known = self._kept.get(key)
            if known is not None and loop.time() - known[0] < _FRESH:
                return known[1]
            self._kept = {k: v for k, v in self._kept.items() if loop.time() - v[0] < _FRESH}
            found = await in_slices(work())
            self._kept[key] = loop.time(), found
            return found

    def _state(self, sight: Sight) -> Generator[bool | None, None, bytes]:
        scheduler, record = self._scheduler, self._record
        now = scheduler.now()
        seq = 0 if record is None else record.seq
        queue = queue_counts(scheduler)
        nodes = yield from node_columns(scheduler.cache)
        info = SchedulerInfo(
            name="mooring",
            version=__version__,
            profiles=tuple(scheduler.runtimes),
            leader=self._leads(),
            explains_past=self._explains_past(),
        )
        yield None
        state = LensState(
            seq=seq,
            at=time_text(now) or "",
            source=self._source,
            scheduler=info,
            nodes=nodes,
            queue=queue,
            rates=None if record is None else record.rates(now),
            plugins=plugin_times(scheduler.metrics),
        )
        yield LONG_STEP
        return msgspec.json.encode(seen_state(state, sight))

    def _queue(self, sight: Sight, place: str, limit: int) -> Generator[bool | None, None, bytes]:
        queued = queued_pods(self._scheduler)
        namespace = "" if sight.pods else sight.namespace
        work = queue_of(
            queued, self._scheduler.now(), place=place, namespace=namespace, limit=limit
        )
        yield LONG_STEP
        found: LensQueue = yield from work
        yield LONG_STEP
        return msgspec.json.encode(seen_queue(found, sight))

    @staticmethod
    def _records(
        record: DecisionRecord, sight: Sight, query: RecordQuery
    ) -> Generator[None, None, bytes]:
        def keep(row: RecordRow) -> bool:
            return (
                sight.sees(row.namespace)
                and (not query.outcome or row.outcome == query.outcome)
                and row.at >= query.since
            )

        limit = min(query.limit, MOST_RECORDS)
        rows = yield from record.select(keep, limit, query.before, query.pod)
        yield
        page = RecordPage(
            shown=sight.shown,
            rows=tuple(seen_row(row, sight) for row in rows),
            next=rows[-1].seq if len(rows) == limit else None,
            kept=len(record),
        )
        return msgspec.json.encode(page)
