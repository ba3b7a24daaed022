import random

import pytest

from mooring.observe.family import (
    MOST_CHILDREN,
    MetricFamily,
    MetricsRegistry,
    MetricValue,
    exponential,
)


def counter(*labels: str, limit: int = MOST_CHILDREN) -> MetricFamily[MetricValue]:
    return MetricFamily("things_total", "Things.", labels, MetricValue, kind="counter", limit=limit)


def test_finds_the_same_child_for_the_same_labels() -> None:
    things = counter("a", "b")
    things.labels("x", "y").add()
    things.labels("x", "y").add(2)
    things.labels("y", "x").add()
    assert {labels: child.value for labels, child in things} == {("x", "y"): 3, ("y", "x"): 1}


def test_has_its_only_child_from_the_start_without_labels() -> None:
    assert [(labels, child.value) for labels, child in counter()] == [((), 0)]
    assert not list(counter("a"))


def test_refuses_the_wrong_number_of_labels() -> None:
    with pytest.raises(ValueError, match=r"things_total takes labels \('a', 'b'\), got \('x',\)"):
        counter("a", "b").labels("x")


def test_counts_into_the_first_bucket_that_is_not_smaller() -> None:
    duration = MetricsRegistry().histogram("d", "D.", (1.0, 2.0, 4.0)).labels()
    for value in (0.5, 1.0, 1.1, 4.0, 4.1):
        duration.observe(value)
    assert duration.counts == [2, 1, 1, 1]
    assert duration.count == 5
    assert duration.total == pytest.approx(10.7)


def test_makes_bounds_step_by_step() -> None:
    assert exponential(0.00001, 1.5, 3) == (1e-05, 1.5000000000000002e-05, 2.2500000000000005e-05)


@pytest.mark.parametrize("labels", [("name",), ("profile", "reason")])
def test_does_not_grow_without_end(
    labels: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    things, dice = counter(*labels), random.Random(1)
    for _ in range(100_000):
        things.labels(*(f"{dice.getrandbits(64):x}" for _ in labels)).add()
    assert len(things) == MOST_CHILDREN + 1
    assert sum(child.value for _, child in things) == 100_000
    assert things.labels(*("other" for _ in labels)).value == 100_000 - MOST_CHILDREN
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert vars(line)["metric"] == "things_total"


def test_still_finds_the_children_it_had_when_it_is_full() -> None:
    things = counter("a", limit=2)
    known = things.labels("x")
    things.labels("other").add()
    things.labels("y").add()
    things.labels("z").add()
    assert things.labels("x") is known
    assert {labels: child.value for labels, child in things} == {("x",): 0, ("other",): 3}


def test_takes_a_name_only_once() -> None:
    registry = MetricsRegistry()
    registry.counter("a_total", "A.")
    with pytest.raises(ValueError, match="the metric a_total exists already"):
        registry.gauge("a_total", "A.")


def test_asks_for_current_values_before_a_scrape() -> None:
    registry = MetricsRegistry()
    size = registry.gauge("size", "Size.").labels()
    things = ["a"]
    registry.before_scrape(lambda: size.set(len(things)))
    registry.refresh()
    assert size.value == 1
    things.append("b")
    registry.refresh()
    assert size.value == 2


def test_scrapes_although_a_value_cannot_be_had(caplog: pytest.LogCaptureFixture) -> None:
    registry = MetricsRegistry()
    size = registry.gauge("size", "Size.").labels()
    broken = [True]

    def fail() -> None:
        if broken:
            raise OSError("gone")

    registry.before_scrape(fail)
    registry.before_scrape(lambda: size.set(7))
    for _ in range(3):
        registry.refresh()
    assert size.value == 7
    assert len(caplog.records) == 1
    broken.clear()
    registry.refresh()
    broken.append(True)
    registry.refresh()
    assert len(caplog.records) == 2
