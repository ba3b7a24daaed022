"""Metrics of the process itself: CPU, memory, files, the garbage collector.

The names are those of all Prometheus clients. Most metrics are read from /proc and are left out on
systems without it.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from pathlib import Path
from typing import Final

from mooring.observe.family import MetricsRegistry, MetricValue

_PROC: Final = Path("/proc")
# Places in /proc/self/stat after the name of the program, which may hold spaces; see proc(5).
_START_TIME: Final = 22 - 3
_VIRTUAL_BYTES: Final = 23 - 3
_RESIDENT_PAGES: Final = 24 - 3


def add_process_metrics(registry: MetricsRegistry, proc: Path = _PROC) -> None:
    """Add the process metrics to a registry; they are read at each scrape."""
    cpu = registry.counter(
        "process_cpu_seconds_total", "CPU time of the process, in user and system mode.", (), ""
    )
    registry.before_scrape(lambda: cpu.labels().set(time.process_time()))
    _add_garbage_collector_metrics(registry)
    if (proc / "self" / "stat").exists():
        _add_proc_metrics(registry, proc)


def _add_proc_metrics(registry: MetricsRegistry, proc: Path) -> None:
    """Memory and files, from /proc."""

    def gauge(name: str, help: str) -> MetricValue:
        return registry.gauge(name, help, (), "").labels()

    def stat() -> list[str]:
        return (proc / "self" / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()

    resident = gauge("process_resident_memory_bytes", "Resident memory size.")
    virtual = gauge("process_virtual_memory_bytes", "Virtual memory size.")
    open_fds = gauge("process_open_fds", "Open file descriptors, including sockets.")
    max_fds = gauge("process_max_fds", "Limit of open file descriptors.")
    max_fds.set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    booted = _booted_at(proc)
    if booted is not None:
        started = gauge("process_start_time_seconds", "When the process started, in Unix time.")
        started.set(booted + int(stat()[_START_TIME]) / os.sysconf("SC_CLK_TCK"))

    def refresh() -> None:
        now = stat()
        virtual.set(int(now[_VIRTUAL_BYTES]))
        resident.set(int(now[_RESIDENT_PAGES]) * resource.getpagesize())
        open_fds.set(len(os.listdir(proc / "self" / "fd")) - 1)  # without the listing's own

    registry.before_scrape(refresh)


def _booted_at(proc: Path) -> int | None:
    """The boot time in Unix time; None in sandboxes that hide it."""
    stat = proc / "stat"
    lines = stat.read_text(encoding="utf-8").splitlines() if stat.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("btime ")), None)


def _add_garbage_collector_metrics(registry: MetricsRegistry) -> None:
    """What Python's garbage collector did so far, per generation."""
    names = {
        "collections": ("collections", "How often this generation was collected."),
        "collected": ("objects_collected", "Objects that were found to be garbage."),
        "uncollectable": ("objects_uncollectable", "Garbage that could not be freed."),
    }
    families = {
        what: registry.counter(f"python_gc_{name}_total", text, ("generation",), "")
        for what, (name, text) in names.items()
    }

    def refresh() -> None:
        for generation, stats in enumerate(gc.get_stats()):
            for what, family in families.items():
                family.labels(str(generation)).set(stats[what])

    registry.before_scrape(refresh)
