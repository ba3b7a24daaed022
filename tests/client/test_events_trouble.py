"""Events when the server is away, unwilling or slow, when there are too many, and at the end."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.client.event_server import Room, pod, refused
from tests.garbage import NO_JSON

from mooring.client.errors import Fenced, Unreachable
from mooring.client.events import FINISH_AFTER, MAX_SERIES
from mooring.client.limits import Limiter, Priority
from mooring.client.transport import Answer


@pytest.fixture
def room() -> Iterator[Room]:
    with Room() as room:
        yield room


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        Unreachable("connection refused", sent=True),
        refused(500, "InternalError"),
        refused(503, "ServiceUnavailable"),
        refused(409, "Conflict"),
    ],
)
def test_tries_again_when_the_server_comes_back(room: Room, trouble: Answer | Exception) -> None:
    room.server.fault = lambda _: trouble
    room.emit()
    room.loop.advance(60)
    assert 4 <= len(room.server.requests) <= 7  # every 10 to 12.5 s
    room.server.fault = lambda _: None
    room.loop.advance(12.5)
    assert len(room.server.events) == 1
    assert (room.sink.sent, room.sink.failed) == (1, 0)


def test_gives_up_after_twelve_tries(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.server.fault = lambda _: Unreachable("connection reset", sent=True)
    room.emit("a")
    room.emit("b")
    room.loop.advance(200)
    assert len(room.server.requests) == 24
    assert room.sink.failed == 2
    assert warnings(caplog) == ["gave up on an Event after many tries"]


def test_does_not_create_it_twice_when_an_answer_is_lost(room: Room) -> None:
    room.server.cuts_answers = True
    room.emit()
    room.server.cuts_answers = False
    room.loop.advance(12.5)
    assert room.server.methods == "POST POST"
    assert len(room.server.events) == 1
    assert (room.sink.sent, room.sink.failed) == (1, 0)


def test_tells_of_the_repeat_even_when_the_first_answer_is_lost(room: Room) -> None:
    room.server.cuts_answers = True
    room.emit()
    room.server.cuts_answers = False
    room.emit()
    room.loop.advance(12.5)
    assert room.server.methods == "POST POST PATCH"
    assert room.server.only()["series"]["count"] == 2


@pytest.mark.parametrize(
    "answer",
    [
        refused(403, "Forbidden", 'events.events.k8s.io is forbidden: User "x" cannot create'),
        refused(404, "NotFound", 'namespaces "shop" not found'),
        refused(422, "Invalid", "reportingController: Invalid value"),
    ],
)
def test_drops_what_the_server_refuses_and_says_so_once(
    room: Room, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    room.server.fault = lambda _: answer
    for name in "abc":
        room.emit(name)
    assert room.server.methods == "POST POST POST"
    assert room.sink.failed == 3
    assert warnings(caplog) == ["the server does not take an Event"]
    assert caplog.records[0].__dict__["object"] == "shop/a"


def test_warns_once_for_each_kind_of_refusal(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    for code, reason in [(403, "Forbidden"), (422, "Invalid"), (403, "Forbidden")]:
        answer = refused(code, reason)
        room.server.fault = lambda _, answer=answer: answer  # type: ignore[misc]  # bound early
        room.emit(f"pod-{len(room.server.requests)}")
    assert len(warnings(caplog)) == 2


def test_a_namespace_that_goes_away_is_no_cause_for_alarm(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    text = "unable to create new content in namespace shop because it is being terminated"
    room.server.fault = lambda _: refused(403, "Forbidden", text)
    room.emit()
    assert room.sink.failed == 1
    assert warnings(caplog) == []


def test_a_refused_series_is_not_tried_at_every_repeat(room: Room) -> None:
    room.server.fault = lambda _: refused(403, "Forbidden")
    for _ in range(20):
        room.emit()
        room.loop.advance(1)
    assert room.server.methods == "POST POST"


def test_may_patch_again_what_it_could_not_before(room: Room) -> None:
    room.emit()
    room.server.fault = lambda request: refused(403) if request.method == "PATCH" else None
    room.emit()
    room.server.fault = lambda _: None
    room.loop.advance(2 * FINISH_AFTER)
    assert room.server.only()["series"]["count"] == 2


def test_a_mistake_in_sending_stops_nothing(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.server.fault = lambda _: ZeroDivisionError("a bug")
    room.emit("a")
    room.server.fault = lambda _: None
    room.emit("b")
    assert not room.task.done()
    assert room.server.only()["regarding"]["name"] == "b"
    assert warnings(caplog) == ["could not send an Event"]


def test_sends_nothing_when_it_may_not_write_any_more(caplog: pytest.LogCaptureFixture) -> None:
    def fence() -> None:
        raise Fenced("not the leader")

    with Room(fence=fence) as room:
        room.emit()
        assert room.server.requests == []
        assert room.sink.failed == 1


# --- too many ----------------------------------------------------------------------------------


def test_drops_newcomers_when_too_many_wait(caplog: pytest.LogCaptureFixture) -> None:
    with Room(capacity=10) as room:
        room.server.latency = 1.0
        for number in range(50):
            room.emit(f"pod-{number:02}")
        assert room.sink.dropped == 50 - 4 - 10  # four are on their way
        room.loop.advance(60)
        assert len(room.server.events) == 14
        assert room.sink.sent == 14


def test_drops_the_oldest_repeat_before_anything_new() -> None:
    with Room(capacity=2) as room:
        for name in "abcdxy":
            room.emit(name)
        room.server.latency = 1.0
        for name in "abcd":
            room.emit(name)  # four patches are on their way
        room.emit("x")
        room.emit("y")
        room.emit("new")
        room.loop.advance(10)
        told = {e["regarding"]["name"]: e for e in room.server.events.values()}
        assert "new" in told
        assert "series" in told["y"]
        assert "series" not in told["x"]
        assert room.sink.dropped == 1
        room.emit("x")  # and what was dropped is told with the next repeat
        room.loop.advance(10)
        assert told["x"]["series"]["count"] == 3


def test_sends_what_is_new_before_repeats(room: Room) -> None:
    for name in "abcde":
        room.emit(name)
    room.server.latency = 1.0
    for name in "abcde":
        room.emit(name)  # four patches are on their way, one waits
    room.emit("new")
    room.loop.advance(10)
    assert room.server.methods.split()[5:] == ["PATCH"] * 4 + ["POST", "PATCH"]


def test_an_event_that_was_dropped_is_told_with_its_next_repeat() -> None:
    with Room(capacity=1) as room:
        room.server.latency = 1.0
        for number in range(6):
            room.emit(f"pod-{number}")
        assert room.sink.dropped == 1
        room.loop.advance(10)
        room.emit("pod-5")
        room.loop.advance(10)
        told = {e["regarding"]["name"]: e for e in room.server.events.values()}
        assert told["pod-5"]["series"]["count"] == 2


def test_remembers_only_so_many_series_and_tells_of_those_it_forgets() -> None:
    with Room(capacity=10 * MAX_SERIES) as room:
        for _ in range(3):
            room.emit("first")
        for number in range(MAX_SERIES):
            room.sink.emit(
                pod(f"pod-{number}"), "Normal", "Scheduled", "Binding", "assigned", controller="x"
            )
        room.loop.settle()
        assert len(room.sink._series) == MAX_SERIES
        first = [e for e in room.server.events.values() if e["regarding"]["name"] == "first"]
        assert [event["series"]["count"] for event in first] == [3]
        room.emit("first")
        assert len(room.server.events) == MAX_SERIES + 2


def test_forgets_first_what_was_not_seen_for_longest() -> None:
    with Room(capacity=10 * MAX_SERIES) as room:
        for number in range(2 * MAX_SERIES):
            room.sink.emit(
                pod(f"pod-{number}"), "Normal", "Scheduled", "Binding", "assigned", controller="x"
            )
            if number % 1000 == 0:
                room.emit("often")
        told = [e for e in room.server.events.values() if e["regarding"]["name"] == "often"]
        assert len(told) == 1


def test_a_flood_is_bounded_while_the_server_is_slow() -> None:
    with Room(capacity=100) as room:
        room.server.latency = 1.0
        for _ in range(60):
            for number in range(500):
                room.sink.emit(
                    pod(f"pod-{number}"),
                    "Warning",
                    "FailedScheduling",
                    "Scheduling",
                    "x" * 2000,
                    controller="x",
                )
                assert room.sink._waiting <= 100
            room.loop.advance(10)
        assert len(room.sink._series) == 500
        assert len(room.server.events) == 500  # everybody's turn came
        assert len(room.server.requests) <= 2 * 500 + 100
        assert room.sink.dropped > 0


def test_steps_aside_for_everything_else() -> None:
    class Watched(Limiter):
        asked: list[Priority] = []

        async def acquire(self, priority: Priority = Priority.WRITE) -> None:
            self.asked.append(priority)

    with Room(limiter=Watched(1, 1)) as room:
        room.emit()
        room.emit()
        assert Watched.asked == [Priority.EVENT, Priority.EVENT]


# --- the end -----------------------------------------------------------------------------------


def test_sends_what_waits_before_the_end(room: Room) -> None:
    room.server.latency = 1.0
    for number in range(20):
        room.emit(f"pod-{number}")
    drained = room.loop.create_task(room.sink.drain(30.0))
    room.loop.advance(5)
    assert drained.done()
    assert len(room.server.events) == 20
    room.emit("too late")
    assert room.sink.dropped == 1


def test_sends_what_was_interrupted_when_it_is_drained_after_the_run(room: Room) -> None:
    room.server.latency = 1.0
    for number in range(20):
        room.emit(f"pod-{number}")
    room.stop()
    drained = room.loop.create_task(room.sink.drain(30.0))
    room.loop.advance(10)
    assert drained.done()
    assert len(room.server.events) == 20
    assert room.sink.dropped == 0


def test_ends_in_time_even_if_the_server_hangs(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.server.latency = 1000.0
    for number in range(20):
        room.emit(f"pod-{number}")
    drained = room.loop.create_task(room.sink.drain(3.0))
    room.loop.advance(3)
    assert drained.done()
    room.stop()
    assert room.sink.dropped == 20
    assert warnings(caplog) == ["not all Events could be sent before the end"]


def test_waits_for_what_the_run_has_on_its_way(room: Room) -> None:
    room.server.latency = 2.0
    room.emit()
    drained = room.loop.create_task(room.sink.drain(30.0))
    room.loop.advance(1)
    assert not drained.done()
    room.loop.advance(1)
    assert drained.done()
    assert len(room.server.events) == 1


@pytest.mark.parametrize("body", NO_JSON)
@pytest.mark.parametrize("times", [1, 2])
def test_sends_again_what_was_answered_with_garbage(room: Room, times: int, body: bytes) -> None:
    for _ in range(times - 1):
        room.emit()
    room.server.fault = lambda _: Answer(201, {}, body)
    room.emit()
    room.loop.advance(30)
    assert (room.sink.sent, room.sink.failed) == (times - 1, 0)
    room.server.fault = lambda _: None
    room.loop.advance(30)
    assert (room.sink.sent, room.sink.failed) == (times, 0)
    assert room.server.seen() == times
