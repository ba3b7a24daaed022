"""Events make way for other writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.event_sink_rig import EventSinkRig

from mooring.client.events import PATIENCE


@pytest.fixture
def rig() -> Iterator[EventSinkRig]:
    with EventSinkRig(capacity=10) as rig:
        yield rig


def test_waits_while_writes_are_under_way(rig: EventSinkRig) -> None:
    rig.writes.begin()
    rig.writes.begin()
    rig.emit()
    rig.writes.end()
    rig.loop.advance(PATIENCE / 2)
    assert rig.sink.sent == 0
    rig.writes.end()
    rig.loop.settle()
    assert rig.sink.sent == 1


def test_does_not_wait_longer_than_a_few_seconds(rig: EventSinkRig) -> None:
    rig.writes.begin()
    rig.emit("early")
    rig.loop.advance(PATIENCE - 1)
    rig.emit("late")
    rig.loop.advance(1)
    assert [event["regarding"]["name"] for event in rig.events] == ["early"]
    rig.loop.advance(PATIENCE)
    assert rig.sink.sent == 2


def test_after_that_one_is_sent_at_a_time(
    rig: EventSinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.writes.begin()
    for number in range(4):
        rig.emit(f"pod-{number}")
    most = 0
    request = rig.sink._request

    async def watched(*given: Any) -> Any:
        nonlocal most
        most = max(most, rig.sink._in_flight)
        await asyncio.sleep(0.1)
        return await request(*given)

    monkeypatch.setattr(rig.sink, "_request", watched)
    rig.loop.advance(PATIENCE + 1)
    assert (rig.sink.sent, most) == (4, 1)


def test_goes_out_before_the_line_becomes_too_long(rig: EventSinkRig) -> None:
    rig.writes.begin()
    for number in range(20):
        rig.emit(f"pod-{number}")
    assert rig.sink.dropped == 0
    assert rig.sink.sent == 15


def test_tells_the_time_when_it_happened_and_not_when_it_was_sent(rig: EventSinkRig) -> None:
    rig.writes.begin()
    rig.emit()
    rig.loop.advance(3)
    rig.writes.end()
    rig.loop.settle()
    assert rig.only()["eventTime"] == "2023-11-14T22:13:20.000000Z"


def test_what_waits_is_sent_at_the_end_even_if_writes_hang(rig: EventSinkRig) -> None:
    rig.writes.begin()
    rig.emit()
    draining = rig.loop.create_task(rig.sink.drain(1.0))
    rig.loop.settle()
    assert draining.done()
    assert rig.sink.sent == 1
