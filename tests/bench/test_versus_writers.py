"""Writers beside a scheduler that is measured."""

from __future__ import annotations

import threading

import pytest
from bench.versus.writers import Writers


def test_writes_each_number_once_and_counts() -> None:
    numbers: list[int] = []
    enough = threading.Event()

    def write(number: int) -> None:
        numbers.append(number)
        if len(numbers) >= 50:
            enough.set()

    with Writers(write, rate=5_000, first=7) as writers:
        assert enough.wait(30)
    assert len(set(numbers)) == len(numbers) == writers.count
    assert min(numbers) == 7


def test_what_could_not_be_written_ends_the_measurement() -> None:
    tried = threading.Event()

    def write(number: int) -> None:
        tried.set()
        raise ConnectionError(f"write {number}")

    with pytest.raises(ConnectionError, match="write"), Writers(write, rate=5_000):
        assert tried.wait(30)
