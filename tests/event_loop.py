"""`asyncio.run` with a watchful eye: no task may be left, and the loop may log nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 30.0  # seconds; a test that takes longer hangs


def run(scenario: Coroutine[Any, Any, T]) -> T:
    complaints: list[dict[str, Any]] = []

    async def watched() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        async with asyncio.timeout(PATIENCE):
            result = await scenario
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks were left behind: {left}"
        return result

    result = asyncio.run(watched())
    assert not complaints, f"the event loop complains: {complaints}"
    return result
