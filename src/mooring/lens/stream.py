"""Changes of a running scheduler as frames of Server-Sent Events, for several readers at once.

Twice a second, while there is a reader, the rows that changed are read from the journals of the
cache. A frame is encoded once for all readers who see the same; a reader that does not keep up
gets a reset instead. Recording costs no more by being watched: entries are looked up, not told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Final

import msgspec
import numpy as np

from mooring.api import core
from mooring.cache.internals import changed_since, epoch_of, mark_of
from mooring.cache.snapshot import Mark
from mooring.lens.api import (
    LensAnswer,
    NodesFrame,
    QueueCounts,
    QueueFrame,
    Rates,
    RecordsFrame,
    ResetFrame,
)
from mooring.lens.record import DecisionRecord
from mooring.lens.record_entry import RecordEntry, row_of
from mooring.lens.sight import Sight, seen_row
from mooring.lens.slices import Busy
from mooring.lens.state import is_ready, resource_names, time_text
from mooring.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)

MAX_STREAMS: Final = 16
LONGEST: Final = 600.0  # seconds of one stream
PERIOD: Final = 0.5  # seconds between two frames
MOST_ROWS: Final = 100  # records in a frame
_RESET_EVERY: Final = 5.0  # seconds, at least
_QUIET: Final = 15.0  # seconds without a frame, until a comment keeps the connection open
_WAITING: Final = 8  # frames that a reader may be behind


class _Reader:
    """One stream."""

    def __init__(self, sight: Sight) -> None:
        self.sight = sight
        self.frames: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)

    def offer(self, frame: bytes) -> None:
        if self.frames.full():
            while not self.frames.empty():
                self.frames.get_nowait()
            frame = encoded_frame("reset", ResetFrame())
        self.frames.put_nowait(frame)


class ChangeStream:
    """The streams of one scheduler; its task runs while there is a reader."""

    def __init__(self, scheduler: Scheduler, record: DecisionRecord | None) -> None:
        self._scheduler = scheduler
        self._record = record
        self._readers: set[_Reader] = set()
        self._task: asyncio.Task[None] | None = None
        self._mark = Mark(0, 0)
        self._epoch = 0
        self._nodes: list[core.Node] = []
        self._owes_reset = False
        self._next_reset = 0.0
        self._seq = 0
        self._open: dict[int, RecordEntry] = {}  # told, and its bind has not ended
        self._counts: tuple[QueueCounts, Rates | None] | None = None

    def __len__(self) -> int:
        return len(self._readers)

    async def follow(self, sight: Sight) -> AsyncGenerator[bytes, None]:
        """The frames of one reader, from now on. May raise Busy, before the first."""
        if len(self._readers) >= MAX_STREAMS:
            raise Busy(f"{MAX_STREAMS} streams are open")
        reader = _Reader(sight)
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        self._readers.add(reader)
        try:
            if self._task is None:
                self._begin()
                self._task = loop.create_task(self._run())
            yield b": follows\n\n"
            while (left := until - loop.time()) > 0:
                try:
                    async with asyncio.timeout(min(_QUIET, left)):
                        frame = await reader.frames.get()
                except TimeoutError:
                    frame = b": quiet\n\n"
                yield frame
        finally:
            self._readers.discard(reader)
            if not self._readers and self._task is not None:
                self._task.cancel()
                self._task = None

    # --- frames --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            try:
                self._tick()
            except Exception:
                log.exception("a frame of the stream could not be made")
                self._begin()
                self._owes_reset = True

    def _begin(self) -> None:
        nodes = self._scheduler.cache.nodes
        self._mark, self._epoch = mark_of(nodes), epoch_of(nodes)
        self._nodes = list(self._scheduler.cache.table.api)
        self._seq = 0 if self._record is None else self._record.seq
        self._open.clear()
        self._counts = None

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        frame = self._node_frame()
        if frame is not None:
            self._send("nodes", frame)
        if self._owes_reset and loop.time() >= self._next_reset:
            self._owes_reset = False
            self._next_reset = loop.time() + _RESET_EVERY
            self._send("reset", ResetFrame())
        self._send_queue()
        self._send_records()

    def _send(self, event: str, frame: LensAnswer) -> None:
        body = encoded_frame(event, frame)
        for reader in self._readers:
            reader.offer(body)

    def _node_frame(self) -> NodesFrame | None:
        """What changed; None if nothing did, or so much that `state` has to be read again."""
        cache = self._scheduler.cache
        nodes, table = cache.nodes, cache.table
        changes = changed_since(nodes, self._mark)
        if changes is None or self._epoch != epoch_of(nodes):
            self._mark, self._epoch = mark_of(nodes), epoch_of(nodes)
            self._nodes = list(table.api)
            self._owes_reset = True
            return None
        self._mark = mark_of(nodes)
        for row in changes.nodes:
            if _is_another(self._nodes[row], table.api[row]):
                self._owes_reset = True
            self._nodes[row] = table.api[row]
        rows = sorted({*changes.pods, *changes.nodes})
        if not rows:
            return None
        places = np.array(rows, dtype=np.int64)
        requested = {name: nodes.requested(name)[places].tolist() for name in resource_names(cache)}
        return NodesFrame(
            seq=0 if self._record is None else self._record.seq,
            rows=rows,
            pods=requested["pods"],
            unschedulable=table.unschedulable.view[places].astype(int).tolist(),
            ready=[is_ready(table.api[row]) for row in rows],
            requested=requested,
        )

    def _send_queue(self) -> None:
        now = self._scheduler.now()
        counts = queue_counts(self._scheduler)
        rates = None if self._record is None else self._record.rates(now)
        if (counts, rates) != self._counts:
            self._counts = counts, rates
            self._send("queue", QueueFrame(at=time_text(now) or "", counts=counts, rates=rates))

    def _send_records(self) -> None:
        record = self._record
        if record is None:
            return
        new = record.seq - self._seq
        entries = [one for one in record.newest(min(new, MOST_ROWS)) if one.seq > self._seq]
        self._seq = record.seq
        ended = [one for one in self._open.values() if one.bind]
        for one in ended:
            del self._open[one.seq]
        self._open.update((one.seq, one) for one in entries if one.node and not one.bind)
        while len(self._open) > 10 * MOST_ROWS:
            del self._open[next(iter(self._open))]
        if not entries and not ended:
            return
        rows = [row_of(one) for one in (*ended, *entries)]
        bodies: dict[Sight, bytes] = {}
        for reader in self._readers:
            sight = reader.sight
            if sight not in bodies:
                seen = tuple(seen_row(row, sight) for row in rows if sight.sees(row.namespace))
                left_out = max(new - len(entries), 0) if sight.pods else 0
                frame = RecordsFrame(rows=seen, left_out=left_out)
                bodies[sight] = encoded_frame("records", frame) if seen else b""
            if bodies[sight]:
                reader.offer(bodies[sight])


def queue_counts(scheduler: Scheduler) -> QueueCounts:
    """Where the pods without a node are."""
    sizes = scheduler.queue.sizes()
    waiting = len(scheduler.waiting)
    return QueueCounts(
        active=sizes["active"],
        backoff=sizes["backoff"],
        unschedulable=sizes["unschedulable"],
        gated=sizes["gated"],
        waiting=waiting,
        in_flight=max(len(scheduler.queue.in_flight) - waiting, 0),
    )


def encoded_frame(event: str, frame: LensAnswer) -> bytes:
    """One event as it is sent."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(frame))


def _is_another(old: core.Node, new: core.Node) -> bool:
    """Whether more changed than a frame tells."""
    return (
        old.metadata.labels != new.metadata.labels
        or old.spec.taints != new.spec.taints
        or old.status.allocatable != new.status.allocatable
    )
