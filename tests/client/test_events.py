"""Events: first, again, and how often in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.event_server import Room, pod

from mooring.api.meta import ObjectReference
from mooring.client.events import FINISH_AFTER, REFRESH_EVERY


@pytest.fixture
def room() -> Iterator[Room]:
    with Room() as room:
        yield room


def test_creates_an_event_with_all_that_kubernetes_asks_for(room: Room) -> None:
    room.emit(note="0/3 nodes are available", related=pod("victim"))
    [(path, event)] = room.server.events.items()
    assert path == "/apis/events.k8s.io/v1/namespaces/shop/events/web.17979cfe362a0000"
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.17979cfe362a0000", "namespace": "shop"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {
            "apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "u",
        },
        "related": {
            "apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "victim", "uid": "u",
        },
        "note": "0/3 nodes are available",
        "type": "Warning",
    }  # fmt: skip
    assert room.sink.sent == 1


def test_the_first_repeat_makes_it_a_series(room: Room) -> None:
    room.emit()
    room.loop.advance(1)
    room.emit(note="still no room")
    assert room.server.methods == "POST PATCH"
    patch = room.server.requests[1]
    assert patch.content_type == "application/strategic-merge-patch+json"
    assert json.loads(patch.body) == {
        "series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:21.000000Z"}
    }
    assert room.server.only()["note"] == "no room"


def test_further_repeats_are_told_when_it_has_been_quiet(room: Room) -> None:
    for _ in range(10):
        room.emit()
        room.loop.advance(60)
    assert room.server.methods == "POST PATCH"
    room.loop.advance(2 * FINISH_AFTER)
    assert room.server.methods == "POST PATCH PATCH"
    assert room.server.only()["series"] == {
        "count": 10,
        "lastObservedTime": "2023-11-14T22:22:20.000000Z",
    }


def test_a_series_of_two_needs_no_last_word(room: Room) -> None:
    room.emit()
    room.emit()
    room.loop.advance(3 * FINISH_AFTER)
    assert room.server.methods == "POST PATCH"


def test_a_long_series_is_refreshed_before_the_server_forgets_it(room: Room) -> None:
    for _ in range(100):
        room.emit()
        room.loop.advance(60)
    assert room.server.methods == "POST PATCH" + " PATCH" * 3
    assert 6000 // REFRESH_EVERY == 3
    assert room.server.only()["series"]["count"] == 90


def test_an_event_that_was_forgotten_by_the_server_is_created_again(room: Room) -> None:
    room.emit()
    room.loop.advance(60)
    [path] = room.server.events
    room.server.events.clear()
    room.emit()
    assert room.server.methods == "POST PATCH POST"
    assert list(room.server.events) == [path]
    assert room.server.only()["series"]["count"] == 2


def test_what_comes_after_a_long_quiet_is_a_new_event(room: Room) -> None:
    room.emit()
    room.loop.advance(2 * FINISH_AFTER)
    room.emit()
    assert room.server.methods == "POST POST"
    assert len(room.server.events) == 2


def test_events_that_differ_in_more_than_the_note_are_not_the_same(room: Room) -> None:
    room.emit()
    room.emit("other")
    room.emit(type_="Normal")
    room.emit(reason="Preempted")
    room.emit(action="Binding")
    room.emit(related=pod("other"))
    later = ObjectReference(kind="Pod", namespace="shop", name="web", uid="u", resource_version="2")
    room.sink.emit(later, "Warning", "FailedScheduling", "Scheduling", "no room", controller="x")
    room.loop.settle()
    assert room.server.methods == " ".join(["POST"] * 7)
    assert len(room.server.events) == 7  # although all of them happened in the same instant


def test_repeats_before_it_is_sent_are_told_with_it(room: Room) -> None:
    for _ in range(3):
        room.sink.emit(
            pod("web"), "Warning", "FailedScheduling", "Scheduling", "no room", controller="x"
        )
    room.loop.settle()
    assert room.server.methods == "POST"
    assert room.server.only()["series"]["count"] == 3


def test_repeats_while_it_is_sent_are_told_after_it(room: Room) -> None:
    room.server.latency = 1.0
    for _ in range(3):
        room.emit()
    room.loop.advance(5)
    assert room.server.methods == "POST PATCH"
    assert room.server.only()["series"]["count"] == 3


def test_speaks_in_the_default_namespace_about_what_has_none(room: Room) -> None:
    node = ObjectReference(kind="Node", name="n1")
    room.sink.emit(node, "Normal", "R", "A", "n", controller="x")
    room.loop.settle()
    [path] = room.server.events
    assert path.startswith("/apis/events.k8s.io/v1/namespaces/default/events/n1.")


@pytest.mark.parametrize("name", ["a" * 253, "system:node", "", "UPPER"])
def test_an_event_has_a_valid_name_whatever_it_is_about(room: Room, name: str) -> None:
    room.emit(name)
    made = room.server.only()["metadata"]["name"]
    assert len(made) == 36  # a UUID
    assert room.server.only()["regarding"].get("name", "") == name


def test_everything_is_cut_to_what_the_server_accepts(room: Room) -> None:
    room.emit(note="ä" * 600, reason="R" * 130, action="ä" * 65)
    event = room.server.only()
    assert event["note"] == "ä" * 510 + " ..."
    assert event["reason"] == "R" * 128
    assert event["action"] == "ä" * 64
    assert room.sink.failed == 0


def test_a_text_that_is_no_text_is_told_all_the_same(room: Room) -> None:
    room.emit(note="bad \ud800 byte")
    assert room.server.only()["note"] == "bad ? byte"


def test_refuses_a_type_that_kubernetes_does_not_know(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.emit(type_="Error")
    assert room.server.methods == ""
    assert room.sink.failed == 1
    assert caplog.messages == ["expected an Event of type Normal or Warning"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([0.0, 0.5, 7.0, 300.0, 800.0]),
            st.sampled_from(["", "", "cut", "slow"]),
        ),
        max_size=30,
    )
)
def test_in_the_end_every_occurrence_was_counted(steps: list[tuple[str, float, str]]) -> None:
    with Room() as room:
        for name, pause, trouble in steps:
            room.server.cuts_answers = trouble == "cut"
            room.server.latency = 3.0 if trouble == "slow" else 0.0
            room.emit(name)
            room.loop.advance(min(pause, 20.0))  # shorter than it takes to give up
            room.server.cuts_answers = False
            room.loop.advance(max(pause - 20.0, 0.0))
        room.loop.advance(3 * FINISH_AFTER)
        assert room.server.seen() == len(steps)
        assert (room.sink.dropped, room.sink.failed) == (0, 0)
