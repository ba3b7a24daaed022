"""Decisions recorded from kube-scheduler 1.36, replayed: ours must be the same, one by one."""

from __future__ import annotations

import pytest
from tests.oracle.compare import differences
from tests.parity.recordings import FAMILIES, evaluator, expected_lines


@pytest.mark.parametrize("family", FAMILIES)
def test_decides_as_recorded(family: str) -> None:
    different: list[str] = []
    count = 0
    for line, expected in expected_lines(family):
        count += 1
        got = next(evaluator().lines([line]))
        found = differences(expected.expect, got)
        if found:
            different.append(f"{expected.id}: {found[0]}")
    assert count
    assert not different, f"{len(different)} of {count} differ:\n" + "\n".join(different[:10])
