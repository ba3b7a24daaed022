"""What a thread writes for the loop, and what is counted when it can't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mooring.lens.background import BackgroundWriter


class Writing(BackgroundWriter[int]):
    FAULT: ClassVar[str] = "writing has ended"

    def __init__(self, *, fails: bool) -> None:
        super().__init__("nowhere", most=100)
        self.written: list[int] = []
        self._fails = fails

    def put(self, *items: int) -> None:
        for item in items:
            self._put(item)

    def _write(self, items: Sequence[int]) -> None:
        if self._fails:
            raise OSError("full")
        self.written += items


def test_what_waits_at_the_end_is_written() -> None:
    writing = Writing(fails=False)
    writing.put(1, 2, 3)
    writing.start()
    writing.close()
    assert (writing.written, writing.lost) == ([1, 2, 3], 0)


def test_what_a_failed_write_held_is_lost_and_so_is_what_comes_later() -> None:
    writing = Writing(fails=True)
    writing.put(1, 2, 3)
    writing.start()
    writing.close()
    writing.put(4)
    assert (writing.written, writing.lost) == ([], 4)
