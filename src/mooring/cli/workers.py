"""Where runs are carried out, and how far they are: this process, local processes, or Dask."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from mooring.cli.progress import progress
from mooring.errors import ConfigError, Problem
from mooring.simulator.imagine import RunOutcome
from mooring.simulator.sweeps import Job, MakeWorkers, Workers, outcomes, processes

_FEW: Final = 2  # runs that are not worth a process
PATIENCE = 10.0  # seconds to reach a Dask scheduler


def carried_out(jobs: Sequence[Job], *, processes_wanted: int, dask: str) -> list[RunOutcome]:
    """The outcomes of all runs, in order."""
    workers = _workers(len(jobs), processes_wanted, dask)
    with progress() as shown:
        on_done = partial(shown.done, total=len(jobs))
        if workers is None:
            return outcomes(jobs, on_bound=shown.placed, on_done=on_done)
        return outcomes(jobs, workers, on_done=on_done)


def _workers(count: int, wanted: int, dask: str) -> MakeWorkers | None:
    if dask:
        return partial(_dask, dask)
    if wanted == 1 or (not wanted and count <= _FEW):
        return None
    return partial(processes, min(wanted or os.cpu_count() or 1, count))


@contextmanager
def _dask(address: str) -> Iterator[Workers]:
    try:
        from distributed import Client
    except ImportError as error:
        problem = "needs the packages of mooring[dask]"
        raise ConfigError([Problem("--dask", f"{problem}: {error}")]) from error
    try:
        client: Any = Client(address, timeout=PATIENCE)  # type: ignore[no-untyped-call]  # it has no types
    except (OSError, ValueError) as error:
        raise ConfigError([Problem("--dask", f"can't reach {address}: {error}")]) from error
    with client:
        # A task, not scattered data: if the worker that holds it ends, another makes it again.
        yield Workers(client.get_executor(), lambda data: client.submit(bytes, data, pure=False))
