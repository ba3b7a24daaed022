from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import prometheus_client
import pytest
from prometheus_client.registry import Collector
from tests.observe.parse_exposition import read

from mooring.observe.exposition import Exposition
from mooring.observe.metrics import Metrics


@pytest.fixture
def registered() -> Iterator[list[Any]]:
    """What a test registers, gone afterwards."""
    made: list[Any] = []
    yield made
    for one in made:
        prometheus_client.REGISTRY.unregister(one)


def shown() -> str:
    return Exposition(Metrics()).render()


def test_metrics_of_plugins_are_shown_beside_ours(registered: list[Any]) -> None:
    registered.append(prometheus_client.Counter("rack_refusals", "Refused racks.", ["rack"]))
    registered[0].labels("r1").inc(3)
    found = read(shown())
    [sample] = [s for s in found["rack_refusals_total"].samples if s.name == "rack_refusals_total"]
    assert (sample.labels, sample.value) == ({"rack": "r1"}, 3)
    assert "scheduler_pending_pods" in found
    assert not any(name.startswith(("python_", "process_")) for name in found)


def test_names_of_ours_are_not_shown_twice(registered: list[Any]) -> None:
    registered.append(prometheus_client.Gauge("scheduler_pending_pods", "Not ours."))
    registered.append(prometheus_client.Counter("mooring_decisions", "Not ours."))
    text = shown()
    assert text.count("# TYPE scheduler_pending_pods ") == 1
    assert text.count("# TYPE mooring_decisions_total ") == 1
    assert "Not ours" not in text


def test_a_collector_that_fails_costs_its_own_metrics_alone(
    registered: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Collector):
        def collect(self) -> Iterator[Any]:
            raise KeyError("rack")

        def describe(self) -> list[Any]:
            return []

    registered.append(Broken())
    prometheus_client.REGISTRY.register(registered[0])
    exposition = Exposition(Metrics())
    assert "scheduler_pending_pods" in exposition.render()
    assert exposition.render().endswith("\n")
    assert caplog.text.count("metrics of plugins cannot be read") == 1


def test_without_the_package_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "prometheus_client")
    assert shown().endswith("\n")
