"""Long work between decisions: what a slice is, and which steps have one of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from mooring.lens.slices import LONG_STEP, in_slices


def test_a_long_step_begins_a_slice_of_its_own() -> None:
    turns: list[int] = []
    turn = 0

    def work() -> Generator[bool | None, None, str]:
        for value in (None, None, LONG_STEP, None):
            turns.append(turn)
            yield value
        turns.append(turn)
        return "done"

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def both() -> str:
        beside = asyncio.ensure_future(others())
        try:
            return await in_slices(work(), seconds=60.0)
        finally:
            beside.cancel()

    assert asyncio.run(both()) == "done"
    assert turns[0] == turns[1] == turns[2]
    assert turns[3] == turns[4] == turns[2] + 1
