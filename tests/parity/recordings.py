"""The recorded clusters, with what kube-scheduler 1.36 decided there."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario, read_scenarios

DATA: Final = Path(__file__).with_name("data")
FAMILIES: Final = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


class Expected(msgspec.Struct):
    """The part of a line that a scheduler is not told."""

    id: str
    expect: dict[str, Any]


class Recording(NamedTuple):
    scenario: Scenario
    expect: dict[str, Any]


_EXPECTED: Final = msgspec.json.Decoder(Expected)


def expected_lines(family: str) -> Iterator[tuple[bytes, Expected]]:
    """Each line of a family, and what is expected there."""
    with gzip.open(DATA / f"{family}.jsonl.gz") as lines:
        for line in lines:
            yield line, _EXPECTED.decode(line)


def recordings(family: str) -> Iterator[Recording]:
    """Each scenario of a family, and what is expected there."""
    for line, expected in expected_lines(family):
        (scenario,) = read_scenarios([line])
        assert isinstance(scenario, Scenario)
        yield Recording(scenario, expected.expect)


@functools.cache
def evaluator() -> Evaluator:
    """One for all tests of a process: the profiles of scenarios are read once, plugins are new."""
    return Evaluator()
