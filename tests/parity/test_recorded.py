"""Decisions recorded from kube-scheduler 1.36, replayed: ours must be the same, one by one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.compare import differences

from mooring.simulator.evaluate import Evaluator

DATA = Path(__file__).with_name("data")
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator()


@pytest.mark.parametrize("family", FAMILIES)
def test_decides_as_recorded(family: str, evaluator: Evaluator) -> None:
    different: list[str] = []
    count = 0
    with gzip.open(DATA / f"{family}.jsonl.gz") as lines:
        for line in lines:
            scenario: dict[str, Any] = json.loads(line)
            count += 1
            got = next(evaluator.lines([line]))
            found = differences(scenario["expect"], got)
            if found:
                different.append(f"{scenario['id']}: {found[0]}")
    assert count
    assert not different, f"{len(different)} of {count} differ:\n" + "\n".join(different[:10])
