from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from mooring.cli.demo.command import demo


@pytest.fixture(scope="module")
def told() -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert demo(console=console) == 0
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def test_places_the_rollout_by_the_rule_of_our_own(told: str) -> None:
    assert "class PreferSpot(fw.Score)" in told
    assert "6 pods run: 6 on spot machines, 0 on others" in told


def test_spreads_evenly(told: str) -> None:
    assert "2 in zone a, 2 in zone b, 2 in zone c" in told


def test_says_why_a_pod_waits_and_binds_it_when_a_node_comes(told: str) -> None:
    assert "huge waits: 0/6 nodes are available: 6 Insufficient cpu." in told
    assert "huge is bound to large-0" in told


def test_preempts_for_what_is_urgent(told: str) -> None:
    assert re.search(r"batch-\S+ waits: 0/7 nodes are available: 7 Insufficient cpu", told)
    assert re.search(r"urgent is bound to \S+; \S+ made room", told)


def test_ends_with_numbers(told: str) -> None:
    numbers = re.search(
        r"(\d+) binds on 7 nodes in [\d.]+ s, [\d.]+ ms per decision: (\d+) pods have a node,"
        r" (\d+) wait",
        told,
    )
    assert numbers is not None
    assert int(numbers[2]) > 6 + 6
    assert int(numbers[3]) > 0
