"""An explanation as a person reads it in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from tests.lens.clusters import explained

from mooring.cache.pods import Pod
from mooring.lens.explanation import Explanation
from mooring.lens.rendering import duration, show
from mooring.testing import node, pod


def shown(found: Explanation) -> str:
    page = io.StringIO()
    show(found, Console(file=page, width=100), now=0.0)
    return page.getvalue()


def vip(**more: Any) -> Pod:
    return pod("vip", cpu=3, priority=100, **more)


def test_says_whom_an_eviction_would_hit_on_each_candidate() -> None:
    nodes = [node(f"n{number}") for number in range(7)]
    running = [pod(f"low{number}", cpu=4, priority=number, on=f"n{number}") for number in range(7)]
    text = shown(explained(vip(), nodes, running))
    assert (
        "Preemption would evict default/low0 from n0 (highest priority of a victim: 0 against 1)."
    ) in text
    rows = [line.split() for line in text.splitlines() if "default/low" in line]
    assert ["n0", "default/low0", "0"] in rows
    assert ["n4", "default/low4", "0"] in rows
    assert ["n5", "default/low5", "0"] not in rows
    assert "  … and 2 more" in text


def test_says_why_preemption_is_not_tried() -> None:
    never = vip(spec={"preemptionPolicy": "Never"})
    text = shown(explained(never, [node("a")], [pod("low", cpu=4, priority=0, on="a")]))
    assert "Preemption: not eligible due to preemptionPolicy=Never." in text


def test_says_what_holds_a_pod_back_before_any_node_is_tried() -> None:
    text = shown(explained(pod("web", cpu=1, gates=["example.com/quota"]), [node("a")]))
    assert " SchedulingGates: scheduling gate example.com/quota\n" in text
    assert "remove the scheduling gate example.com/quota" in text


def test_names_the_nodes_of_a_tie() -> None:
    text = shown(explained(pod("web", cpu=1), [node(name) for name in "abc"]))
    assert "A tie of 3 (a, b and c) falls by listing order: a." in text
    text = shown(explained(pod("web", cpu=1), [node(name) for name in "abcdef"]))
    assert "A tie of 6 (6 nodes) falls by listing order: a." in text


def test_shows_the_points_of_a_node_that_was_asked_for() -> None:
    nodes = [node("a", cpu=4), node("b", cpu=8)]
    text = shown(explained(pod("web", cpu=2), nodes, ask=["a"]))
    assert "a: place 2" in text
    rows = [line.split() for line in text.partition("a: place 2")[2].splitlines()]
    assert ["plugin", "raw", "0-100", "weight", "points"] in rows
    assert ["TaintToleration", "0", "100", "3", "300"] in rows


def test_shows_what_else_refuses_a_node() -> None:
    nodes = [node("a", cpu=1, taints=["team=ml:NoSchedule"])]
    text = shown(explained(pod("web", cpu=2), nodes))
    assert "+ NodeResourcesFit" in text


def test_counts_groups_that_it_has_no_room_for() -> None:
    nodes = [
        node(
            f"n{number}",
            cpu=1 if number & 1 else 8,
            taints=["team=ml:NoSchedule"] if number & 2 else [],
            labels={} if number & 4 else {"disk": "ssd"},
            unschedulable=bool(number & 8),
        )
        for number in range(1, 16)
    ]
    text = shown(explained(pod("web", cpu=2, node_selector={"disk": "ssd"}), nodes))
    assert " smaller groups (-o json has them all)" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (59.9, "59s"),
        (372, "6m12s"),
        (3600, "1h"),
        (3 * 3600 + 300, "3h5m"),
        (2 * 86_400, "2d"),
        (2 * 86_400 + 4 * 3600, "2d4h"),
    ],
)
def test_writes_ages_as_kubectl_does(seconds: float, text: str) -> None:
    assert duration(seconds) == text
