"""Counters, gauges and histograms cheap enough for the scheduling cycle.

Names, labels and buckets are kube-scheduler's, because dashboards already read them. A child (one
set of label values) is looked up once and kept by the caller; observing then
costs one bisect and two adds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds start, start*factor, … (count of them; +Inf is implied)."""
    return tuple(start * factor**i for i in range(count))


class Histogram:
    """One child of a histogram: counts per bucket, and the sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: tuple[float, ...] = tuple(bounds)
        self.counts: list[int] = [0] * (len(self.bounds) + 1)
        self.total: float = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class Value:
    """One child of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0.0

    def add(self, amount: float = 1.0) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        self.value = value


Child = TypeVar("Child", Histogram, Value)


class Family(Generic[Child]):
    """All children of one metric name."""

    __slots__ = ("_children", "_make", "label_names", "name")

    def __init__(self, name: str, label_names: tuple[str, ...], make: Callable[[], Child]) -> None:
        self.name: str = name
        self.label_names: tuple[str, ...] = label_names
        self._make: Callable[[], Child] = make
        self._children: dict[tuple[str, ...], Child] = {}

    def labels(self, *values: str) -> Child:
        child = self._children.get(values)
        if child is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} takes labels {self.label_names}, got {values}")
            child = self._children[values] = self._make()
        return child

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], Child]]:
        return iter(self._children.items())


def _histogram(name: str, labels: tuple[str, ...], bounds: Sequence[float]) -> Family[Histogram]:
    return Family(name, labels, lambda: Histogram(bounds))


def _value(name: str, labels: tuple[str, ...] = ()) -> Family[Value]:
    return Family(name, labels, Value)


class Metrics:
    """Every metric of one scheduler; made by the scheduler and handed down, never global."""

    def __init__(self) -> None:
        attempt_bounds = exponential(0.001, 2, 15)
        self.schedule_attempts: Family[Value] = _value(
            "scheduler_schedule_attempts_total", ("result", "profile")
        )
        self.attempt_duration: Family[Histogram] = _histogram(
            "scheduler_scheduling_attempt_duration_seconds", ("result", "profile"), attempt_bounds
        )
        self.algorithm_duration: Family[Histogram] = _histogram(
            "scheduler_scheduling_algorithm_duration_seconds", (), attempt_bounds
        )
        self.point_duration: Family[Histogram] = _histogram(
            "scheduler_framework_extension_point_duration_seconds",
            ("extension_point", "status", "profile"),
            exponential(0.0001, 2, 12),
        )
        self.plugin_duration: Family[Histogram] = _histogram(
            "scheduler_plugin_execution_duration_seconds",
            ("plugin", "extension_point", "status"),
            exponential(0.00001, 1.5, 20),
        )
        self.pending_pods: Family[Value] = _value("scheduler_pending_pods", ("queue",))
        self.queue_incoming: Family[Value] = _value(
            "scheduler_queue_incoming_pods_total", ("queue", "event")
        )
        self.unschedulable_pods: Family[Value] = _value(
            "scheduler_unschedulable_pods", ("plugin", "profile")
        )
        self.preemption_attempts: Family[Value] = _value("scheduler_preemption_attempts_total")
        self.preemption_victims: Family[Histogram] = _histogram(
            "scheduler_preemption_victims", (), exponential(1, 2, 7)
        )
        self.permit_wait: Family[Histogram] = _histogram(
            "scheduler_permit_wait_duration_seconds", ("result",), attempt_bounds
        )
        self.pod_attempts: Family[Histogram] = _histogram(
            "scheduler_pod_scheduling_attempts", (), exponential(1, 2, 5)
        )
        self.pod_sli_duration: Family[Histogram] = _histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            ("attempts",),
            exponential(0.01, 2, 20),
        )
