"""One attempt in the record, as an object and as the row that is shown."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.lens.api import AttemptOutcome, BindResult, RecordRow, Way
from mooring.lens.state import time_text
from mooring.scheduler.diagnosis import Diagnosis


class Why(msgspec.Struct, frozen=True):
    """Why an attempt failed."""

    message: str
    diagnosis: Diagnosis | None = None  # None: after an error

    @property
    def reasons(self) -> dict[str, int]:
        return {} if self.diagnosis is None else dict(self.diagnosis.reasons)

    @property
    def refused_by(self) -> tuple[str, ...]:
        found = self.diagnosis
        return () if found is None else tuple(sorted(found.unschedulable_plugins))


class RecordEntry(msgspec.Struct, gc=False, array_like=True):
    """One attempt. It refers to nothing that could refer back: no cycle needs to be found.

    The order of the fields is that of `--record-file`.
    """

    seq: int
    at: float  # when it was decided, seconds since 1970
    uid: str
    namespace: str
    pod: str
    profile: str
    attempt: int
    queued_at: float
    woken_by: str
    way: Way
    outcome: AttemptOutcome
    took: float  # seconds
    evaluated: int
    feasible: int
    node: str
    why: Any = None  # Why, or its number in a block, or None
    nominated: str = ""
    victims: int = 0
    points: int | None = None
    runner_up: str = ""
    margin: int | None = None
    bind: BindResult = ""
    bind_took: float | None = None  # seconds, from the decision
    permit_took: float | None = None  # seconds that it waited at Permit, from the decision


def row_of(entry: RecordEntry) -> RecordRow:
    """An entry as it is shown."""
    why: Why | None = entry.why
    return RecordRow(
        seq=entry.seq,
        at=time_text(entry.at) or "",
        uid=entry.uid,
        namespace=entry.namespace,
        pod=entry.pod,
        profile=entry.profile,
        attempt=entry.attempt,
        queued_at=time_text(entry.queued_at),
        woken_by=entry.woken_by,
        way=entry.way,
        outcome=entry.outcome,
        took_us=micros(entry.took),
        evaluated=entry.evaluated,
        feasible=entry.feasible,
        node=entry.node,
        points=entry.points,
        runner_up=entry.runner_up,
        margin=entry.margin,
        reasons=why.reasons if why is not None else {},
        message=why.message if why is not None else "",
        refused_by=why.refused_by if why is not None else (),
        nominated=entry.nominated,
        victims=entry.victims,
        bind=entry.bind,
        bind_us=None if entry.bind_took is None else micros(entry.bind_took),
        permit_us=None if entry.permit_took is None else micros(entry.permit_took),
    )


def micros(seconds: float) -> float:
    return round(seconds * 1e6, 1)
