"""Many runs at once, in this process or on any `concurrent.futures.Executor`.

A snapshot travels once per run as the bytes of its file, and is decoded once per worker. Runs and
outcomes are JSON, so that the answers are the same bytes wherever they were worked out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import msgspec

from mooring.api import codec
from mooring.errors import MooringError
from mooring.lens.reading import snapshot_of
from mooring.lens.snapshot import Snapshot
from mooring.lens.writing import encoded
from mooring.observe import garbage_collection
from mooring.simulator.imagine import OnBound, Run, RunOutcome, imagine

_TRIES: Final = 3  # of workers that end before their work does

Job = tuple[Snapshot, Run]
OnDone = Callable[[int], None]
"""Called with the number of runs that have ended."""


class WorkersLost(MooringError):
    """Worker processes ended before their work, again and again."""


class Workers(msgspec.Struct, frozen=True):
    """An executor, and how bytes that several runs need are handed to it."""

    executor: Executor
    send: Callable[[bytes], Any] = bytes


MakeWorkers = Callable[[], AbstractContextManager[Workers]]


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """Local processes, the default."""
    with ProcessPoolExecutor(count) as executor:
        yield Workers(executor)


def outcomes(
    jobs: Sequence[Job],
    workers: MakeWorkers | None = None,
    *,
    on_bound: OnBound | None = None,
    on_done: OnDone | None = None,
) -> list[RunOutcome]:
    """The outcome of every job, in order; without workers, one after the other in this process."""
    if workers is None:
        found = []
        for number, (snapshot, run) in enumerate(jobs, start=1):
            found.append(imagine(snapshot, run, on_bound))
            if on_done is not None:
                on_done(number)
        return found
    done: dict[int, bytes] = {}
    for _ in range(_TRIES):
        try:
            with workers() as running:
                _work(jobs, running, done, on_done)
        except BrokenExecutor:
            continue  # what has ended is kept
        return [msgspec.json.decode(done[index], type=RunOutcome) for index in range(len(jobs))]
    raise WorkersLost(f"a worker process ended early {_TRIES} times; is there enough memory?")


def _work(
    jobs: Sequence[Job], workers: Workers, done: dict[int, bytes], on_done: OnDone | None
) -> None:
    sent: dict[int, Any] = {}  # id of a snapshot -> its bytes, as the executor wants them
    waiting: dict[Future[bytes], int] = {}
    for index, (snapshot, run) in enumerate(jobs):
        if index in done:
            continue
        if id(snapshot) not in sent:
            sent[id(snapshot)] = workers.send(b"".join(encoded(snapshot, strip=False)))
        data = sent[id(snapshot)]
        waiting[workers.executor.submit(carry_out, data, codec.encode(run))] = index
    lost: BrokenExecutor | None = None
    for future in as_completed(waiting):
        try:
            done[waiting[future]] = future.result()
        except BrokenExecutor as error:
            lost = error
            continue
        if on_done is not None:
            on_done(len(done))
    if lost is not None:
        raise lost


_known: dict[bytes, Snapshot] = {}  # of a worker, by digest


def carry_out(data: bytes, run: bytes) -> bytes:
    """In a worker: the outcome of one run."""
    digest = hashlib.sha256(data).digest()
    if digest not in _known:
        garbage_collection.collect_rarely()
        _known.clear()
        _known[digest] = snapshot_of(data, "snapshot")
    outcome = imagine(_known[digest], codec.decode(run, Run))
    return msgspec.json.encode(outcome)
