"""Runs of one kind together: medians, how far they lie apart, and which did not finish."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from bench.versus.raw import Run


class Spread(msgspec.Struct, frozen=True):
    """The middle of some numbers, and their ends."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


class Cell(msgspec.Struct, frozen=True):
    """One scheduler on one workload; spreads are None if no run was complete."""

    runs: tuple[Run, ...]

    @property
    def complete(self) -> list[Run]:
        return [run for run in self.runs if run.is_complete]

    @property
    def pods_per_second(self) -> Spread | None:
        return self._spread(lambda run: run.pods_per_second)

    @property
    def cpu_per_pod(self) -> Spread | None:
        return self._spread(lambda run: run.cpu_per_pod)

    @property
    def all_cpu_per_pod(self) -> Spread | None:
        return self._spread(lambda run: run.all_cpu_per_pod)

    @property
    def peak_memory(self) -> Spread | None:
        return self._spread(lambda run: run.peak_memory)

    @property
    def first_bind(self) -> Spread | None:
        return self._spread(lambda run: run.first_bind)

    @property
    def last_bind(self) -> Spread | None:
        return self._spread(lambda run: run.last_bind)

    def _spread(self, of: Callable[[Run], float]) -> Spread | None:
        values = [of(run) for run in self.complete]
        return Spread.of(values) if values else None


def cell(runs: Sequence[Run], workload: str, scheduler: str) -> Cell:
    kind = (workload, scheduler)
    return Cell(tuple(run for run in runs if (run.workload, run.scheduler) == kind))


def ratio(mine: Spread | None, theirs: Spread | None) -> float | None:
    """How many times their median ours is."""
    if mine is None or theirs is None or not theirs.median:
        return None
    return mine.median / theirs.median


def unfinished(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if not run.is_complete]
