"""Events make way for binds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.event_server import Room

from mooring.client.events import PATIENCE


@pytest.fixture
def room() -> Iterator[Room]:
    with Room(capacity=10) as room:
        yield room


def test_waits_while_binds_are_under_way(room: Room) -> None:
    room.rush.begin()
    room.rush.begin()
    room.emit()
    room.rush.end()
    room.loop.advance(PATIENCE / 2)
    assert room.sink.sent == 0
    room.rush.end()
    room.loop.settle()
    assert room.sink.sent == 1


def test_does_not_wait_longer_than_a_few_seconds(room: Room) -> None:
    room.rush.begin()
    room.emit("early")
    room.loop.advance(PATIENCE - 1)
    room.emit("late")
    room.loop.advance(1)
    assert [event["regarding"]["name"] for event in room.server.events.values()] == ["early"]
    room.loop.advance(PATIENCE)
    assert room.sink.sent == 2


def test_goes_out_before_the_line_becomes_too_long(room: Room) -> None:
    room.rush.begin()
    for number in range(20):
        room.emit(f"pod-{number}")
    assert room.sink.dropped == 0
    assert room.sink.sent == 15


def test_tells_the_time_when_it_happened_and_not_when_it_was_sent(room: Room) -> None:
    room.rush.begin()
    room.emit()
    room.loop.advance(3)
    room.rush.end()
    room.loop.settle()
    assert room.server.only()["eventTime"] == "2023-11-14T22:13:20.000000Z"


def test_what_waits_is_sent_at_the_end_even_if_binds_hang(room: Room) -> None:
    room.rush.begin()
    room.emit()
    draining = room.loop.create_task(room.sink.drain(1.0))
    room.loop.settle()
    assert draining.done()
    assert room.sink.sent == 1
