"""The record: one entry per attempt to schedule a pod, in memory, the newest as objects.

    decided, ended ──▶ newest entries ──▶ blocks of bytes ──▶ dropped beyond `size`
            └────────▶ sinks: a file, a stream

Entries refer to texts that exist anyway. After some thousand attempts they are packed into blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Final, Protocol

from mooring.client.errors import ConflictError
from mooring.decision.evaluation import Evaluation
from mooring.framework.results import QueuedPod
from mooring.framework.status import OK, Status
from mooring.lens.api import Rates, RecordRow, Way
from mooring.lens.record_block import RecordBlock
from mooring.lens.record_entry import RecordEntry, Why, micros, row_of
from mooring.scheduler.cycle import Decision

SIZE: Final = 100_000
NEWEST: Final = 4_096  # entries that are objects
BLOCK: Final = 256  # packed at a time, in less than a millisecond
MOST_BYTES: Final = 24 << 20  # of blocks: long names make them larger
_RATE_SECONDS: Final = 60.0
_MOST_FOR_RATES: Final = 2_000  # entries
_STEP: Final = 64  # entries between two yields


class RecordSink(Protocol):
    """Takes entries as they come; must not fail or wait."""

    def decided(self, entry: RecordEntry) -> None: ...

    def ended(self, entry: RecordEntry) -> None: ...


class DecisionRecord:
    """Fulfils `scheduler.ledger.AttemptLedger`; keeps the last `size` attempts."""

    def __init__(
        self, now: Callable[[], float], *, size: int = SIZE, margins: bool = False
    ) -> None:
        self.seq: int = 0  # of the newest
        self.size: int = size
        self._now = now
        self._margins = margins
        self._newest: list[RecordEntry] = []
        self._blocks: deque[RecordBlock] = deque()
        self._bytes = 0  # of the blocks
        self._fold_at = min(NEWEST, size) + BLOCK
        self._sinks: tuple[RecordSink, ...] = ()

    def __len__(self) -> int:
        return min(len(self._newest) + BLOCK * len(self._blocks), self.size)

    def add_sink(self, sink: RecordSink) -> None:
        self._sinks = (*self._sinks, sink)

    # --- told by the scheduler -----------------------------------------------------------------

    def decided(
        self, queued: QueuedPod, decision: Decision, evaluation: Evaluation | None, took: float
    ) -> RecordEntry:
        self.seq = seq = self.seq + 1
        pod = queued.pod
        way: Way = "full"
        if evaluation is not None and evaluation.pod is pod and evaluation.by_class:
            way = "class"
        entry = RecordEntry(
            seq,
            self._now(),
            pod.uid,
            pod.namespace,
            pod.name,
            pod.api.spec.scheduler_name,
            queued.attempts,
            queued.timestamp,
            queued.woken_by,
            way,
            "scheduled",
            took,
            decision.evaluated,
            decision.found,
            decision.node_name,
        )
        if decision.status is not OK:
            _fail(entry, decision)
        elif evaluation is not None:
            if evaluation.row < 0:
                if decision.is_nominated:
                    entry.way = "nominated"
            elif self._margins:
                lead = evaluation.lead()
                if lead is not None:
                    entry.points, entry.runner_up, entry.margin = lead
        newest = self._newest
        newest.append(entry)
        if len(newest) >= self._fold_at:
            self._fold()
        for sink in self._sinks:
            sink.decided(entry)
        return entry

    def permitted(self, entry: RecordEntry, took: float) -> None:
        entry.permit_took = took - entry.took

    def ended(self, entry: RecordEntry, status: Status, took: float) -> None:
        entry.bind_took = took - entry.took
        if status is OK:
            entry.bind = "ok"
        else:
            entry.bind = "conflict" if isinstance(status.cause, ConflictError) else "refused"
            entry.why = Why(status.message)
        if entry.seq <= self.seq - self._fold_at:  # folded perhaps, while it was on its way
            self._end_folded(entry)
        for sink in self._sinks:
            sink.ended(entry)

    def _fold(self) -> None:
        newest, blocks = self._newest, self._blocks
        if self.size > NEWEST:
            block = RecordBlock.of(newest[:BLOCK])
            blocks.append(block)
            self._bytes += block.size
            while len(blocks) * BLOCK + NEWEST > self.size or self._bytes > MOST_BYTES:
                self._bytes -= blocks.popleft().size
        del newest[:BLOCK]

    def _end_folded(self, entry: RecordEntry) -> None:
        for block in self._blocks:
            if block.first <= entry.seq < block.first + BLOCK:
                block.end(entry)

    # --- reading -------------------------------------------------------------------------------

    def newest(self, count: int) -> list[RecordEntry]:
        """The newest that are objects, at most so many, the oldest first."""
        return self._newest[-count:] if count else []

    def rates(self, now: float) -> Rates:
        """Of the last minute, or of the newest entries if there are more."""
        some = [e for e in self._newest[-_MOST_FOR_RATES:] if e.at > now - _RATE_SECONDS]
        if not some:
            return Rates()
        seconds = max(now - some[0].at, 1.0)
        took = sorted(entry.took for entry in some)
        return Rates(
            decisions_per_second=round(len(some) / seconds, 3),
            bound_per_second=round(sum(e.bind == "ok" for e in some) / seconds, 3),
            p50_us=micros(took[len(took) // 2]),
            p99_us=micros(took[len(took) * 99 // 100]),
        )

    def select(
        self,
        keep: Callable[[RecordRow], bool],
        limit: int,
        before: int | None = None,
        pod: str = "",
    ) -> Generator[None, None, list[RecordRow]]:
        """The newest rows that are wanted, in slices; `pod` is "namespace/name", or "" for all."""
        found: list[RecordRow] = []
        below = self.seq + 1 if before is None else before
        oldest = self.seq - self.size
        space, _, name = pod.rpartition("/")
        for number, entry in enumerate(self._entries(below, name)):
            if not number % _STEP:
                yield
            if not oldest < entry.seq < below:
                continue
            if pod and (entry.pod != name or entry.namespace != space):
                continue
            row = row_of(entry)
            if keep(row):
                found.append(row)
                if len(found) >= limit:
                    break
        return found

    def _entries(self, below: int, name: str) -> Iterator[RecordEntry]:
        """The newest first, as they are at the first step; of `name`, if there is one."""
        newest, blocks = list(self._newest), list(self._blocks)
        yield from reversed(newest)
        for block in reversed(blocks):
            if block.first < below and (not name or block.may_have(name)):
                yield from block.entries()


def _fail(entry: RecordEntry, decision: Decision) -> None:
    status, after = decision.status, decision.after
    entry.outcome = "unschedulable" if status.rejected else "error"
    entry.why = Why(status.message, decision.diagnosis)
    if after is not None and after.nominate:
        entry.outcome = "nominated"
        entry.nominated = after.nominate
        entry.victims = len(after.victims)
