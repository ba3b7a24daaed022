"""Counters, gauges and histograms cheap enough for the scheduling cycle.

A child (one set of label values) is looked up once and kept by the caller; observing then costs one
bisect and two adds. Not thread-safe: one thread writes metrics.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, Literal, TypeAlias, TypeVar

log = logging.getLogger(__name__)

Kind = Literal["counter", "gauge", "histogram"]
Stability = Literal["STABLE", "BETA", "ALPHA", ""]  # Kubernetes' stability level; "" for none

MOST_CHILDREN: Final = 2_000
OTHER: Final = "other"  # the labels of the child that counts all label sets beyond the limit


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds start, start*factor, … (count of them; +Inf is implied)."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)  # step by step: the last digit is part of a series' name
    return tuple(bounds)


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


class MetricValue:
    """One child of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0.0

    def add(self, amount: float = 1.0) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        self.value = value


Child = TypeVar("Child", Histogram, MetricValue)


class MetricFamily(Generic[Child]):
    """All children of one metric name; their number is limited.

    Label values should come from closed sets. If they do not, the label sets beyond `limit` share
    one child whose labels all say "other". Without labels the only child exists from the start.
    """

    def __init__(
        self,
        name: str,
        help: str,
        label_names: tuple[str, ...],
        make: Callable[[], Child],
        *,
        kind: Kind,
        stability: Stability = "ALPHA",
        limit: int = MOST_CHILDREN,
    ) -> None:
        self.name: str = name
        self.help: str = help
        self.label_names: tuple[str, ...] = label_names
        self.kind: Kind = kind
        self.stability: Stability = stability
        self.limit: int = limit
        self._make: Callable[[], Child] = make
        self._children: dict[tuple[str, ...], Child] = {}
        self._overflow: Child | None = None
        if not label_names:
            self._children[()] = make()

    def labels(self, *values: str) -> Child:
        child = self._children.get(values)
        return self._added(values) if child is None else child

    def _added(self, values: tuple[str, ...]) -> Child:
        if len(values) != len(self.label_names):
            raise ValueError(f"{self.name} takes labels {self.label_names}, got {values}")
        if self._overflow is not None:
            return self._overflow
        if len(self._children) >= self.limit:
            log.warning(
                "a metric has too many label sets; further ones are counted together",
                extra={"metric": self.name, "limit": self.limit},
            )
            values = (OTHER,) * len(self.label_names)
            self._overflow = self._children[values] = self._children.get(values) or self._make()
            return self._overflow
        child = self._children[values] = self._make()
        return child

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], Child]]:
        return iter(self._children.items())

    def __len__(self) -> int:
        return len(self._children)


AnyFamily: TypeAlias = MetricFamily[Histogram] | MetricFamily[MetricValue]


class MetricsRegistry:
    """Families by name, and functions that refresh some of them before a scrape."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}
        self._refreshers: dict[Callable[[], None], bool] = {}  # -> whether it works

    def __iter__(self) -> Iterator[AnyFamily]:
        return (self._families[name] for name in sorted(self._families))

    def counter(
        self, name: str, help: str, labels: tuple[str, ...] = (), stability: Stability = "ALPHA"
    ) -> MetricFamily[MetricValue]:
        return self._add(
            MetricFamily(name, help, labels, MetricValue, kind="counter", stability=stability)
        )

    def gauge(
        self, name: str, help: str, labels: tuple[str, ...] = (), stability: Stability = "ALPHA"
    ) -> MetricFamily[MetricValue]:
        return self._add(
            MetricFamily(name, help, labels, MetricValue, kind="gauge", stability=stability)
        )

    def histogram(
        self,
        name: str,
        help: str,
        bounds: Sequence[float],
        labels: tuple[str, ...] = (),
        stability: Stability = "ALPHA",
    ) -> MetricFamily[Histogram]:
        make = partial(Histogram, bounds)
        return self._add(
            MetricFamily(name, help, labels, make, kind="histogram", stability=stability)
        )

    def before_scrape(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before every scrape, to set gauges that are not kept current."""
        self._refreshers[refresh] = True

    def refresh(self) -> None:
        """Refresh the gauges; one whose function fails keeps its last value."""
        for refresh, worked in self._refreshers.items():
            try:
                refresh()
            except Exception:
                if worked:  # one line, not one per scrape
                    log.exception("a metric could not be read", extra={"source": repr(refresh)})
                self._refreshers[refresh] = False
            else:
                self._refreshers[refresh] = True

    def _add(self, family: MetricFamily[Child]) -> MetricFamily[Child]:
        if family.name in self._families:
            raise ValueError(f"the metric {family.name} exists already")
        self._families[family.name] = family
        return family
