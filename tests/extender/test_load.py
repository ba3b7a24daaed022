"""The benchmark, small: every answer is right, whatever it takes."""

from __future__ import annotations

import asyncio

from bench import extender


def test_answers_every_request_under_load() -> None:
    found = asyncio.run(extender.run(nodes=500, rate=50.0, seconds=1.0, form="plugin"))
    assert (found["requests"], found["errors"]) == (50.0, 0.0)
    assert any("code 200" in what for what in found)
