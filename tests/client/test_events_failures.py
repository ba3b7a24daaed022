"""Events when the server is away, unwilling or slow, when there are too many, and at the end."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.client.event_sink_rig import EventSinkRig, pod
from tests.faulty_transport import Asked, Fault, Garbage, Refuse, Vanish
from tests.garbage import NO_JSON

from mooring.client.errors import Fenced
from mooring.client.events import FINISH_AFTER, MAX_SERIES
from mooring.client.flowcontrol import RateLimiter, RequestPriority

LOST = Vanish("connection reset", done=True)  # the server has carried it out


@pytest.fixture
def rig() -> Iterator[EventSinkRig]:
    with EventSinkRig() as rig:
        yield rig


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        Vanish(),
        Refuse(500, "InternalError"),
        Refuse(503, "ServiceUnavailable"),
        Refuse(409, "Conflict"),
    ],
)
def test_tries_again_when_the_server_comes_back(rig: EventSinkRig, trouble: Fault) -> None:
    rig.server.fault = lambda _: trouble
    rig.emit()
    rig.loop.advance(60)
    assert 4 <= len(rig.server.asked) <= 7  # every 10 to 12.5 s
    rig.server.fault = lambda _: None
    rig.loop.advance(12.5)
    assert len(rig.events) == 1
    assert (rig.sink.sent, rig.sink.failed) == (1, 0)


def test_gives_up_after_twelve_tries(rig: EventSinkRig, caplog: pytest.LogCaptureFixture) -> None:
    rig.server.fault = lambda _: Vanish("connection reset")
    rig.emit("a")
    rig.emit("b")
    rig.loop.advance(200)
    assert len(rig.server.asked) == 24
    assert rig.sink.failed == 2
    assert warnings(caplog) == ["gave up on an Event after many tries"]


def test_does_not_create_it_twice_when_an_answer_is_lost(rig: EventSinkRig) -> None:
    rig.server.fault = lambda _: LOST
    rig.emit()
    rig.server.fault = lambda _: None
    rig.loop.advance(12.5)
    assert rig.server.methods == "POST POST"
    assert len(rig.events) == 1
    assert (rig.sink.sent, rig.sink.failed) == (1, 0)


def test_tells_of_the_repeat_even_when_the_first_answer_is_lost(rig: EventSinkRig) -> None:
    rig.server.fault = lambda _: LOST
    rig.emit()
    rig.server.fault = lambda _: None
    rig.emit()
    rig.loop.advance(12.5)
    assert rig.server.methods == "POST POST PATCH"
    assert rig.only()["series"]["count"] == 2


@pytest.mark.parametrize(
    "answer",
    [
        Refuse(403, "Forbidden", 'events.events.k8s.io is forbidden: User "x" cannot create'),
        Refuse(404, "NotFound", 'namespaces "shop" not found'),
        Refuse(422, "Invalid", "reportingController: Invalid value"),
    ],
)
def test_drops_what_the_server_refuses_and_says_so_once(
    rig: EventSinkRig, answer: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    rig.server.fault = lambda _: answer
    for name in "abc":
        rig.emit(name)
    assert rig.server.methods == "POST POST POST"
    assert rig.sink.failed == 3
    assert warnings(caplog) == ["the API server refused an Event"]
    assert caplog.records[0].__dict__["object"] == "shop/a"


def test_warns_once_for_each_kind_of_refusal(
    rig: EventSinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    for code, reason in [(403, "Forbidden"), (422, "Invalid"), (403, "Forbidden")]:
        answer = Refuse(code, reason)
        rig.server.fault = lambda _, answer=answer: answer  # type: ignore[misc]  # bound early
        rig.emit(f"pod-{len(rig.server.asked)}")
    assert len(warnings(caplog)) == 2


def test_a_namespace_that_goes_away_is_no_cause_for_alarm(
    rig: EventSinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    text = "unable to create new content in namespace shop because it is being terminated"
    rig.server.fault = lambda _: Refuse(403, "Forbidden", text)
    rig.emit()
    assert rig.sink.failed == 1
    assert warnings(caplog) == []


def test_a_refused_series_is_not_tried_at_every_repeat(rig: EventSinkRig) -> None:
    rig.server.fault = lambda _: Refuse(403, "Forbidden")
    for _ in range(20):
        rig.emit()
        rig.loop.advance(1)
    assert rig.server.methods == "POST POST"


def test_may_patch_again_what_it_could_not_before(rig: EventSinkRig) -> None:
    rig.emit()
    rig.server.fault = lambda asked: Refuse(403) if asked.verb == "patch" else None
    rig.emit()
    rig.server.fault = lambda _: None
    rig.loop.advance(2 * FINISH_AFTER)
    assert rig.only()["series"]["count"] == 2


def test_a_mistake_in_sending_stops_nothing(
    rig: EventSinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(asked: Asked) -> None:
        raise ZeroDivisionError("a bug")

    rig.server.fault = break_down
    rig.emit("a")
    rig.server.fault = lambda _: None
    rig.emit("b")
    assert not rig.task.done()
    assert rig.only()["regarding"]["name"] == "b"
    assert warnings(caplog) == ["could not send an Event"]


def test_sends_nothing_when_it_may_not_write_any_more(caplog: pytest.LogCaptureFixture) -> None:
    def fence() -> None:
        raise Fenced("not the leader")

    with EventSinkRig(fence=lambda: fence) as rig:
        rig.emit()
        assert rig.server.asked == []
        assert rig.sink.failed == 1


# --- too many ----------------------------------------------------------------------------------


def test_drops_newcomers_when_too_many_wait(caplog: pytest.LogCaptureFixture) -> None:
    with EventSinkRig(capacity=10) as rig:
        rig.server.latency = 0.5
        for number in range(50):
            rig.emit(f"pod-{number:02}")
        assert rig.sink.dropped == 50 - 4 - 10  # four are on their way
        rig.loop.advance(60)
        assert len(rig.events) == 14
        assert rig.sink.sent == 14


def test_drops_the_oldest_repeat_before_anything_new() -> None:
    with EventSinkRig(capacity=2) as rig:
        for name in "abcdxy":
            rig.emit(name)
        rig.server.latency = 0.5
        for name in "abcd":
            rig.emit(name)  # four patches are on their way
        rig.emit("x")
        rig.emit("y")
        rig.emit("new")
        rig.loop.advance(10)
        told = {event["regarding"]["name"]: event for event in rig.events}
        assert "new" in told
        assert "series" in told["y"]
        assert "series" not in told["x"]
        assert rig.sink.dropped == 1
        rig.emit("x")  # and what was dropped is told with the next repeat
        rig.loop.advance(10)
        [event] = rig.regarding("x")
        assert event["series"]["count"] == 3


def test_sends_what_is_new_before_repeats(rig: EventSinkRig) -> None:
    for name in "abcde":
        rig.emit(name)
    rig.server.latency = 0.5
    for name in "abcde":
        rig.emit(name)  # four patches are on their way, one waits
    rig.emit("new")
    rig.loop.advance(10)
    assert rig.server.methods.split()[5:] == ["PATCH"] * 4 + ["POST", "PATCH"]


def test_an_event_that_was_dropped_is_told_with_its_next_repeat() -> None:
    with EventSinkRig(capacity=1) as rig:
        rig.server.latency = 0.5
        for number in range(6):
            rig.emit(f"pod-{number}")
        assert rig.sink.dropped == 1
        rig.loop.advance(10)
        rig.emit("pod-5")
        rig.loop.advance(10)
        [event] = rig.regarding("pod-5")
        assert event["series"]["count"] == 2


def test_remembers_only_so_many_series_and_tells_of_those_it_forgets() -> None:
    with EventSinkRig(capacity=10 * MAX_SERIES) as rig:
        for _ in range(3):
            rig.emit("first")
        for number in range(MAX_SERIES):
            rig.sink.emit(
                pod(f"pod-{number}"), "Normal", "Scheduled", "Binding", "assigned", controller="x"
            )
        rig.loop.settle()
        assert len(rig.sink._series) == MAX_SERIES
        assert [event["series"]["count"] for event in rig.regarding("first")] == [3]
        rig.emit("first")
        assert len(rig.events) == MAX_SERIES + 2


def test_forgets_first_what_was_not_seen_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.client.events.MAX_SERIES", 300)
    with EventSinkRig(capacity=10 * MAX_SERIES) as rig:
        for number in range(600):
            rig.sink.emit(
                pod(f"pod-{number}"), "Normal", "Scheduled", "Binding", "assigned", controller="x"
            )
            if number % 100 == 0:
                rig.emit("often")
        assert len(rig.regarding("often")) == 1


def test_a_flood_is_bounded_while_the_server_is_slow() -> None:
    with EventSinkRig(capacity=100) as rig:
        rig.server.latency = 0.5
        for _ in range(60):
            for number in range(500):
                rig.sink.emit(
                    pod(f"pod-{number}"),
                    "Warning",
                    "FailedScheduling",
                    "Scheduling",
                    "x" * 2000,
                    controller="x",
                )
                assert rig.sink._waiting <= 100
            rig.loop.advance(10)
        assert len(rig.sink._series) == 500
        assert len(rig.events) == 500  # every event was sent
        assert len(rig.server.asked) <= 2 * 500 + 100
        assert rig.sink.dropped > 0


def test_steps_aside_for_everything_else() -> None:
    class Watched(RateLimiter):
        asked: list[RequestPriority] = []

        async def acquire(self, priority: RequestPriority = RequestPriority.WRITE) -> None:
            self.asked.append(priority)

    with EventSinkRig(limiter=Watched(1, 1)) as rig:
        rig.emit()
        rig.emit()
        assert Watched.asked == [RequestPriority.EVENT, RequestPriority.EVENT]


# --- the end -----------------------------------------------------------------------------------


def test_sends_what_waits_before_the_end(rig: EventSinkRig) -> None:
    rig.server.latency = 0.5
    for number in range(20):
        rig.emit(f"pod-{number}")
    drained = rig.loop.create_task(rig.sink.drain(30.0))
    rig.loop.advance(5)
    assert drained.done()
    assert len(rig.events) == 20
    rig.emit("too late")
    assert rig.sink.dropped == 1


def test_sends_what_was_interrupted_when_it_is_drained_after_the_run(rig: EventSinkRig) -> None:
    rig.server.latency = 0.5
    for number in range(20):
        rig.emit(f"pod-{number}")
    rig.stop()
    drained = rig.loop.create_task(rig.sink.drain(30.0))
    rig.loop.advance(10)
    assert drained.done()
    assert len(rig.events) == 20
    assert rig.sink.dropped == 0


def test_ends_in_time_even_if_the_server_hangs(
    rig: EventSinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.server.latency = 1000.0
    for number in range(20):
        rig.emit(f"pod-{number}")
    drained = rig.loop.create_task(rig.sink.drain(3.0))
    rig.loop.advance(3)
    assert drained.done()
    rig.stop()
    assert rig.sink.dropped == 20
    assert warnings(caplog) == ["not all Events could be sent before the end"]


def test_waits_for_what_the_run_has_on_its_way(rig: EventSinkRig) -> None:
    rig.server.latency = 1.0
    rig.emit()
    drained = rig.loop.create_task(rig.sink.drain(30.0))
    rig.loop.advance(1)
    assert not drained.done()
    rig.loop.advance(1)
    assert drained.done()
    assert len(rig.events) == 1


@pytest.mark.parametrize("body", NO_JSON)
@pytest.mark.parametrize("times", [1, 2])
def test_sends_again_what_was_answered_with_garbage(
    rig: EventSinkRig, times: int, body: bytes
) -> None:
    for _ in range(times - 1):
        rig.emit()
    rig.server.fault = lambda _: Garbage(body, 201)
    rig.emit()
    rig.loop.advance(30)
    assert (rig.sink.sent, rig.sink.failed) == (times - 1, 0)
    rig.server.fault = lambda _: None
    rig.loop.advance(30)
    assert (rig.sink.sent, rig.sink.failed) == (times, 0)
    assert rig.seen() == times
