"""The text Prometheus gets, compared with what kube-scheduler 1.36 sent from the same state."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.observe.parse_exposition import read

from mooring.observe.exposition import Exposition, number
from mooring.observe.family import MetricsRegistry
from mooring.observe.metrics import Metrics
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod

DATA = Path(__file__).parent / "data"
STABLE: list[dict[str, Any]] = json.loads((DATA / "kube-scheduler-stable-metrics.json").read_text())
OTHER: list[dict[str, Any]] = json.loads((DATA / "kube-scheduler-other-metrics.json").read_text())
# Batching by signature is a feature that we do not have.
LEFT_OUT = ("batch", "get_node_hint", "store_schedule_results")


def ours() -> list[dict[str, Any]]:
    return [known for known in OTHER if not known["name"].startswith(tuple(_with_prefix()))]


def _with_prefix() -> list[str]:
    return [f"scheduler_{name}" for name in LEFT_OUT]


def by_name(known: dict[str, Any]) -> str:
    return str(known["name"])


def families() -> dict[str, Any]:
    return {family.name: family for family in Metrics()}


@pytest.mark.parametrize("known", [*STABLE, *ours()], ids=by_name)
def test_has_the_families_of_kube_scheduler(known: dict[str, Any]) -> None:
    family = families()[known["name"]]
    assert family.kind == known["type"]
    assert family.stability == known["stability"]
    assert sorted(family.label_names) == known["labels"]
    if "buckets" in known:
        bounds = family.labels(*("x" for _ in family.label_names)).bounds
        assert [number(bound) for bound in (*bounds, math.inf)] == known["buckets"]


def test_announces_every_stable_name_before_the_first_pod() -> None:
    with Simulation() as sim:
        seen = read(Exposition(sim.scheduler.metrics).render())
    for known in STABLE:
        found = seen[known["name"]]
        assert (found.type, found.stability) == (known["type"], "STABLE")
        if known["before the first pod"]:
            assert found.samples, found.name
            assert {sample.value for sample in found.samples} == {0}


def test_shows_after_some_pods_what_kube_scheduler_shows() -> None:
    with Simulation() as sim:
        sim.apply(*(node(f"n{i}", cpu=4) for i in range(3)))
        sim.schedule(*(pod(f"p{i}", cpu=3) for i in range(3)))
        sim.schedule(pod("big", cpu=100))
        sim.schedule(pod("boss", cpu=3, priority=10))
        seen = read(Exposition(sim.scheduler.metrics).render())
    for known in STABLE:
        found = seen[known["name"]]
        assert found.labels == known["labels"], found.name
        assert found.buckets == known.get("buckets", []), found.name
    attempts = {
        sample.labels["result"]: sample.value
        for sample in seen["scheduler_schedule_attempts_total"].samples
    }
    assert attempts["scheduled"] >= 4
    assert attempts["unschedulable"] >= 2


def test_makes_every_bucket_hold_those_below_it() -> None:
    registry = MetricsRegistry()
    duration = registry.histogram("d", "D.", (1.0, 2.5), ("who",))
    for value in (0.5, 2.0, 2.0, 9.0):
        duration.labels("me").observe(value)
    assert Exposition(registry).render() == (
        "# HELP d [ALPHA] D.\n"
        "# TYPE d histogram\n"
        'd_bucket{who="me",le="1"} 1\n'
        'd_bucket{who="me",le="2.5"} 3\n'
        'd_bucket{who="me",le="+Inf"} 4\n'
        'd_sum{who="me"} 13.5\n'
        'd_count{who="me"} 4\n'
    )


def test_sorts_families_labels_and_children() -> None:
    registry = MetricsRegistry()
    registry.gauge("z", "Z.", stability="").labels().set(1.5)
    wide = registry.counter("a_total", "A.", ("queue", "event"), stability="BETA")
    for labels in (("y", "2"), ("x", "2"), ("z", "1")):
        wide.labels(*labels).add()
    assert Exposition(registry).render() == (
        "# HELP a_total [BETA] A.\n"
        "# TYPE a_total counter\n"
        'a_total{event="1",queue="z"} 1\n'
        'a_total{event="2",queue="x"} 1\n'
        'a_total{event="2",queue="y"} 1\n'
        "# HELP z Z.\n"
        "# TYPE z gauge\n"
        "z 1.5\n"
    )


@given(st.dictionaries(st.tuples(st.text(), st.text()), st.floats(allow_nan=False), max_size=5))
def test_gives_back_whatever_the_labels_hold(values: dict[tuple[str, str], float]) -> None:
    registry = MetricsRegistry()
    family = registry.gauge("g", 'Back\\slash, "quote" and\nnewline.', ("a", "b"))
    for labels, value in values.items():
        family.labels(*labels).set(value)
    shown = Exposition(registry)
    for _ in range(2):  # the second time from what is kept
        seen = read(shown.render())["g"]
        assert {(s.labels["a"], s.labels["b"]): s.value for s in seen.samples} == values
        assert seen.help == 'Back\\\\slash, "quote" and\\nnewline.'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # As seen in scrapes of kube-scheduler.
        (0, "0"),
        (1.0, "1"),
        (0.001, "0.001"),
        (1.024, "1.024"),
        (0.00001, "1e-05"),
        (0.00017085937500000006, "0.00017085937500000006"),
        (20000, "20000"),
        (5242.88, "5242.88"),
        (68378624, "6.8378624e+07"),
        (1794780734.14, "1.79478073414e+09"),
        (18446744073709551615, "1.8446744073709552e+19"),
        (math.inf, "+Inf"),
        # As strconv.FormatFloat(x, 'g', -1, 64) writes them.
        (999999, "999999"),
        (1000000, "1e+06"),
        (-1234567.5, "-1.2345675e+06"),
        (1e100, "1e+100"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_writes_numbers_as_go_does(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_loses_no_digit(value: float) -> None:
    assert float(number(value)) == value
