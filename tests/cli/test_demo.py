from __future__ import annotations

import io
import re

from rich.console import Console

from mooring.cli.demo import demo


def told(seed: int = 0) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert demo(seed, console) == 0
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_tells_what_happened_in_numbers() -> None:
    last = told().strip().splitlines()[-1]
    found = re.match(r"(\d+) of (\d+) pods placed on \d+ of \d+ nodes in \d+ attempts; 3", last)
    assert found is not None
    assert int(found[1]) == int(found[2]) - 3


def test_shows_reasons_scores_and_the_plugin() -> None:
    text = told()
    assert "tonodename-scoring-plugin" in text
    assert "Insufficient nvidia.com/gpu" in text
    assert "waiting for scheduling gates: example.com/quota" in text


def test_tells_the_same_story_every_time() -> None:
    assert told(seed=3) == told(seed=3)
