from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from tests.simulator.clusters import snapshot, strategy

from mooring.simulator.changes import ClusterChanges
from mooring.simulator.imagine import Run, imagine
from mooring.simulator.sweeps import Job, Workers, WorkersLost, carry_out, outcomes, processes
from mooring.simulator.workloads import Scaling
from mooring.testing import node, pod


def sweep() -> list[Job]:
    first = snapshot(
        *(node(f"n{i}", zone=f"z{i % 2}", images={"app:latest": 10**9}) for i in range(4)),
        *(pod(f"p{i}", cpu="700m", annotations={"note": "kept"}) for i in range(12)),
    )
    second = snapshot(node("alone"), *(pod(f"q{i}", cpu=1, ports=[80 + i]) for i in range(6)))
    runs = [
        Run(),
        Run(seed=7, config=strategy("MostAllocated"), config_name="most"),
        Run(changes=ClusterChanges(add_nodes=2, like=node("big", cpu="8").api)),
        Run(reschedule=True, watched={"default/p1": ("n1", "n2")}),
    ]
    return [(one, run) for one in (first, second) for run in runs]


def as_bytes(found: object) -> bytes:
    return msgspec.json.encode(found)


def test_processes_give_the_same_bytes_as_this_process() -> None:
    jobs = sweep()
    done: list[int] = []
    here = outcomes(jobs)
    there = outcomes(jobs, lambda: processes(2), on_done=done.append)
    assert as_bytes(there) == as_bytes(here)
    assert done == list(range(1, len(jobs) + 1))


class _Forgetful(Executor):
    """An executor whose workers end after some work, as often as it is told."""

    def __init__(self, work: int) -> None:
        self._inner = ThreadPoolExecutor(1)
        self._work = work

    def submit(self, fn: Any, /, *args: Any, **options: Any) -> Future[Any]:
        if self._work:
            self._work -= 1
            return self._inner.submit(fn, *args, **options)
        lost: Future[Any] = Future()
        lost.set_exception(BrokenExecutor("ended"))
        return lost


def test_what_a_lost_worker_had_not_done_is_done_by_others() -> None:
    jobs = sweep()
    calls: list[int] = []

    @contextmanager
    def workers() -> Iterator[Workers]:
        calls.append(len(calls))
        yield Workers(_Forgetful(4))

    assert as_bytes(outcomes(jobs, workers)) == as_bytes(outcomes(jobs))
    assert len(calls) == 2


def test_workers_that_always_end_are_an_error() -> None:
    @contextmanager
    def workers() -> Iterator[Workers]:
        yield Workers(_Forgetful(0))

    with pytest.raises(WorkersLost, match="ended early 3 times"):
        outcomes(sweep(), workers)


def test_a_process_that_is_killed_loses_nothing() -> None:
    jobs = sweep()[:4]
    killed: list[int] = []

    @contextmanager
    def workers() -> Iterator[Workers]:
        with processes(1) as made:
            if not killed:
                pid = made.executor.submit(os.getpid).result()
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)
            yield made

    assert as_bytes(outcomes(jobs, workers)) == as_bytes(outcomes(jobs))
    assert len(killed) == 1


def test_mistakes_of_a_run_come_back_from_workers() -> None:
    given = snapshot(node("n"))
    wrong = Run(changes=ClusterChanges(scale=(Scaling("Deployment", "web", 3),)))
    with pytest.raises(Exception, match="there are no pods of Deployment default/web"):
        outcomes([(given, wrong)], lambda: processes(1))


def test_everything_about_a_run_reaches_a_worker() -> None:
    (given, run), *_ = [job for job in sweep() if job[1].changes.add_nodes]
    from mooring.api import codec
    from mooring.lens.writing import encoded

    data = b"".join(encoded(given, strip=False))
    found = carry_out(data, codec.encode(run))
    assert found == as_bytes(imagine(given, run))
