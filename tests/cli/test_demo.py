from __future__ import annotations

import html
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from mooring.cli.demo.command import demo


@pytest.fixture(scope="module")
def told() -> str:
    return _tell()


def _tell() -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert demo(console=console) == 0
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def _decisions(story: str) -> str:
    """Who went where and why; how long it took, and how far the queue is, may differ."""
    return re.sub(r"[\d.]+ (?=m?s\b)", "", story.partition("queue:")[0])


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
    assert re.search(r"urgent is bound to spot-1; batch-\S+ made room\.", told)


def test_decides_the_same_again_with_the_same_seed(told: str) -> None:
    assert _decisions(_tell()) == _decisions(told)


def test_shows_nodes_queue_and_last_decisions(told: str) -> None:
    assert re.search(r"spot-1 b spot 5 █+ 4 of 4 ", told)
    assert re.search(r"queue: active \d+ backoff \d+ unschedulable \d+ gated 0", told)
    assert "urgent → spot-1 1 of 1 nodes fit" in told


def test_ends_with_numbers(told: str) -> None:
    numbers = re.search(
        r"(\d+) binds on 7 nodes in [\d.]+ s, [\d.]+ ms per decision: (\d+) pods have a node,"
        r" (\d+) wait",
        told,
    )
    assert numbers is not None
    assert int(numbers[2]) > 6 + 6
    assert int(numbers[3]) > 0


def test_picture_for_the_readme_is_whole_and_needs_nothing_from_the_network() -> None:
    root = Path(__file__).resolve().parents[2]
    picture = (root / "docs" / "images" / "demo.svg").read_text(encoding="utf-8")
    assert not re.search(r"@font-face|url\(\s*[\"']?https?:|@import|href=\"https?:", picture)
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", picture)).split())
    for words in ("PreferSpot", "made room", "queue: active", "→ spot-1", "binds on 7 nodes"):
        assert words in shown
