"""One run: a cluster as its backup has it, then one scheduler, watched until all pods are bound."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import msgspec
from tests.controlplane.processes import Process

from bench.versus.machine import busy_seconds, wait_for_calm
from bench.versus.pods import MEASURED
from bench.versus.raw import Run
from bench.versus.rig import Rig
from bench.versus.volume_controller import VolumeController
from bench.versus.watcher import Watcher
from bench.versus.workloads import Workload
from bench.versus.writers import Writers

_LOOK = 0.2  # seconds between two looks at a scheduler that works
_LONGEST_NOISE = 20.0  # seconds to wait for quiet after the last bind


def measure(
    rig: Rig,
    name: str,
    workload: Workload,
    scheduler: str,
    number: int,
    *,
    pods: int,
    deadline: float,
) -> Run:
    """Make a run; afterwards all is there as the scheduler left it."""
    began = time.monotonic()
    asked = workload.count(pods, rig.nodes)
    rig.set_up(name, workload, asked)
    with VolumeController(rig.plane) if workload.binds_claims else nullcontext():
        run = _with_placements(rig, _watched(rig, scheduler, workload, asked, deadline))
    took = round(time.monotonic() - began, 1)
    return msgspec.structs.replace(run, workload=name, round=number, took=took)


def _watched(rig: Rig, scheduler: str, workload: Workload, asked: int, deadline: float) -> Run:
    """Let the scheduler work until everything is bound, it ends, or time is up."""
    at_first: list[float] = []
    watcher = Watcher(rig.plane, asked, lambda: at_first.append(cpu_seconds(process.pid)))
    watcher.start()
    server_before, others_before = rig.server_cpu_seconds, _others(rig)
    started = time.monotonic()
    process = rig.start(scheduler)
    try:
        with _writers(rig, workload):
            outcome = _wait(process, watcher, started + deadline)
            cpu = cpu_seconds(process.pid)
        quiet = cpu if outcome else _when_quiet(process)
        server = rig.server_cpu_seconds - server_before
        others = _others(rig) - others_before - quiet
        passed = time.monotonic() - started
        peak = peak_megabytes(process.pid)
    finally:
        process.stop()
        watcher.stop()
    times = sorted(watcher.bound.values())
    first = watcher.began or started
    return Run(
        workload="",
        scheduler=scheduler,
        round=0,
        asked=asked,
        bound=len(times),
        outcome=outcome,
        first_bind=round(times[0] - started, 3) if times else 0.0,
        last_bind=round(times[-1] - started, 3) if times else 0.0,
        span=round(times[-1] - first, 3) if times else 0.0,
        timeline=twentieths(times, first),
        cpu_first=round(at_first[0], 2) if at_first else 0.0,
        cpu=round(cpu, 2),
        cpu_quiet=round(quiet, 2),
        server_cpu=round(server, 2),
        others=round(max(others, 0.0) / passed / len(os.sched_getaffinity(0)), 3),
        peak_memory=round(peak, 1),
    )


def _others(rig: Rig) -> float:
    """CPU seconds of all programs but the control plane and this one; a scheduler is in it."""
    return busy_seconds() - rig.server_cpu_seconds - time.process_time()


def _writers(rig: Rig, workload: Workload) -> AbstractContextManager[object]:
    write = workload.during
    if write is None:
        return nullcontext()
    return Writers(partial(write, rig), workload.rate)


def _wait(process: Process, watcher: Watcher, latest: float) -> str:
    """Wait until everything is bound; what went wrong."""
    while not watcher.done.wait(_LOOK):
        if not process.is_alive:
            print(process.tail(), file=sys.stderr)
            return f"the scheduler ended with {process.exit_code}"
        if time.monotonic() > latest:
            return "not all pods were bound before the deadline"
    return ""


def _when_quiet(process: Process) -> float:
    """CPU seconds once the scheduler has nothing left to do; Events may follow the last bind."""
    return wait_for_calm(lambda: cpu_seconds(process.pid), _LONGEST_NOISE)


def _with_placements(rig: Rig, run: Run) -> Run:
    """Ask the server itself how many are bound, and see how they were placed."""
    found = rig.plane.admin.list("Pod", labelSelector=f"{MEASURED}=yes")
    per_node = Counter(pod["spec"].get("nodeName", "") for pod in found)
    per_node.pop("", None)
    return msgspec.structs.replace(
        run,
        bound=per_node.total(),
        nodes_used=len(per_node),
        most_on_a_node=max(per_node.values(), default=0),
        events=rig.count("events.k8s.io/v1/Event"),
    )


def twentieths(times: Sequence[float], first: float) -> tuple[float, ...]:
    """Seconds from `first` to each further 5 % of these times."""
    if len(times) < 20:
        return ()
    marks = (len(times) * part // 20 - 1 for part in range(1, 21))
    return tuple(round(times[mark] - first, 2) for mark in marks)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children; 0 if it is gone."""
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [
            int(child)
            for task in (folder / "task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    # Its own, and of those children that have ended; in user and in system mode.
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, children))


def peak_megabytes(pid: int) -> float:
    """The most memory a process ever held; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
