"""Metrics of the process itself: CPU, memory, files, the garbage collector.

Under the names that every Prometheus client uses. Most of it is read from /proc, and left out on a
system that has none.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from pathlib import Path
from typing import Final

from mooring.observe.family import MetricFamily, MetricsRegistry, MetricValue

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
    registry.before_scrape(_GarbageCollector(registry).refresh)
    if (proc / "self" / "stat").exists():
        registry.before_scrape(_Process(registry, proc).refresh)


class _Process:
    """Memory and files, from /proc."""

    def __init__(self, registry: MetricsRegistry, proc: Path) -> None:
        def gauge(name: str, help: str) -> MetricValue:
            return registry.gauge(name, help, (), "").labels()

        self._proc = proc / "self"
        self._resident = gauge("process_resident_memory_bytes", "Memory held in RAM.")
        self._virtual = gauge("process_virtual_memory_bytes", "Memory mapped, held or not.")
        self._open = gauge("process_open_fds", "Open file descriptors, sockets among them.")
        gauge("process_max_fds", "How many file descriptors may be open at once.").set(
            resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        )
        booted = _booted_at(proc)
        if booted is not None:
            started = booted + int(self._stat()[_START_TIME]) / os.sysconf("SC_CLK_TCK")
            gauge("process_start_time_seconds", "When the process started, in Unix time.").set(
                started
            )

    def refresh(self) -> None:
        stat = self._stat()
        self._virtual.set(int(stat[_VIRTUAL_BYTES]))
        self._resident.set(int(stat[_RESIDENT_PAGES]) * resource.getpagesize())
        self._open.set(len(os.listdir(self._proc / "fd")) - 1)  # without the listing's own

    def _stat(self) -> list[str]:
        return (self._proc / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _booted_at(proc: Path) -> int | None:
    """Unix time; sandboxes may hide it."""
    stat = proc / "stat"
    lines = stat.read_text(encoding="utf-8").splitlines() if stat.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("btime ")), None)


class _GarbageCollector:
    """What Python's garbage collector did so far, per generation."""

    def __init__(self, registry: MetricsRegistry) -> None:
        def counter(name: str, help: str) -> MetricFamily[MetricValue]:
            return registry.counter(name, help, ("generation",), "")

        self._families = {
            "collections": counter(
                "python_gc_collections_total", "How often this generation was collected."
            ),
            "collected": counter(
                "python_gc_objects_collected_total", "Objects that were found to be garbage."
            ),
            "uncollectable": counter(
                "python_gc_objects_uncollectable_total", "Garbage that could not be freed."
            ),
        }

    def refresh(self) -> None:
        for generation, stats in enumerate(gc.get_stats()):
            for what, family in self._families.items():
                family.labels(str(generation)).set(stats[what])
