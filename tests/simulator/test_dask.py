"""A sweep on a real Dask cluster of two worker processes on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from tests.simulator.clusters import snapshot, strategy

from mooring.cli.workers import carried_out
from mooring.simulator.imagine import Run
from mooring.simulator.sweeps import Job, outcomes
from mooring.testing import node, pod

if find_spec("distributed") is None:  # importing it here would take each process half a second
    pytest.skip("the packages of mooring[dask] are not installed", allow_module_level=True)

_PATIENCE = 60.0  # seconds; a machine may be busy


class DaskCluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []
        self.address = ""
        self.workers: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        words = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        found = self._say(self._run(*words), r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)")
        self.address = found[1]
        for _ in range(2):
            worker = self._run(
                "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"
            )
            self._say(worker, r"Registered to")
            self.workers.append(worker)

    def _run(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._processes.append(process)
        return process

    def _say(self, process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            found = re.search(pattern, line)
            if found is not None:
                self._readers.append(threading.Thread(target=process.stdout.read))
                self._readers[-1].start()
                return found
        raise AssertionError(f"ended before it said {pattern}:\n{said}")

    def close(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                process.kill()
            process.wait()
        for reader in self._readers:
            reader.join()
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    cluster = DaskCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def jobs(count: int, pods: int) -> list[Job]:
    given = snapshot(
        *(node(f"n{i}", zone=f"z{i % 3}") for i in range(20)),
        *(pod(f"p{i}", cpu="50m", spread={"zone": 2}) for i in range(pods)),
    )
    configs = [strategy("LeastAllocated"), strategy("MostAllocated")]
    return [(given, Run(seed=seed, config=configs[seed % 2])) for seed in range(count)]


@pytest.mark.filterwarnings("default")  # of Dask's own threads and sockets
def test_a_sweep_on_dask_has_the_same_bytes_and_survives_a_killed_worker(tmp_path: Path) -> None:
    sweep = jobs(8, 150)
    here = msgspec.json.encode(outcomes(sweep))
    with dask_cluster(tmp_path) as cluster:
        there = carried_out(sweep, processes_wanted=0, dask=cluster.address)
        assert msgspec.json.encode(there) == here
        victim, other = cluster.workers
        killing = threading.Thread(target=_kill_when_busy, args=(victim,))
        killing.start()
        again = carried_out(sweep * 3, processes_wanted=0, dask=cluster.address)
        assert not killing.is_alive()  # it was killed while there was work
        assert victim.wait(_PATIENCE) == -signal.SIGKILL
        assert other.poll() is None
        for start in range(0, len(again), len(sweep)):
            assert msgspec.json.encode(again[start : start + len(sweep)]) == here


def _kill_when_busy(worker: subprocess.Popen[str]) -> None:
    """Kill a worker in the midst of its work: once it has used a little more CPU time."""
    before = _cpu(worker.pid)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and _cpu(worker.pid) < before + 5:
        threading.Event().wait(0.02)
    worker.kill()


def _cpu(pid: int) -> int:
    """Ticks of a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
