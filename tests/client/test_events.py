"""Events: first, again, and how often in the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.event_sink_rig import EVENTS, EventSinkRig, pod
from tests.faulty_transport import Vanish

from mooring.api.meta import ObjectReference
from mooring.client.events import FINISH_AFTER, REFRESH_EVERY
from mooring.client.transport import METADATA

LOST = Vanish("connection reset", done=True)  # the server has carried it out


@pytest.fixture
def rig() -> Iterator[EventSinkRig]:
    with EventSinkRig() as rig:
        yield rig


def test_creates_an_event_with_all_that_kubernetes_asks_for(rig: EventSinkRig) -> None:
    rig.emit(note="0/3 nodes are available", related=pod("victim"))
    [asked] = rig.server.asked
    assert asked.path == "/apis/events.k8s.io/v1/namespaces/shop/events"
    assert asked.body == {
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
    assert rig.only().items() >= {**asked.body, "metadata": rig.only()["metadata"]}.items()
    assert rig.sink.sent == 1


def test_the_first_repeat_makes_it_a_series(rig: EventSinkRig) -> None:
    rig.emit()
    rig.loop.advance(1)
    rig.emit(note="still no room")
    assert rig.server.methods == "POST PATCH"
    patch = rig.server.asked[1]
    assert patch.request.content_type == "application/strategic-merge-patch+json"
    assert patch.body == {"series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:21.000000Z"}}
    assert rig.only()["note"] == "no room"


def test_what_the_server_made_of_an_event_is_not_asked_for(rig: EventSinkRig) -> None:
    rig.emit()
    rig.emit()
    assert rig.server.methods == "POST PATCH"
    assert {asked.request.accept for asked in rig.server.asked} == {METADATA}


def test_further_repeats_are_told_when_it_has_been_quiet(rig: EventSinkRig) -> None:
    for _ in range(10):
        rig.emit()
        rig.loop.advance(60)
    assert rig.server.methods == "POST PATCH"
    rig.loop.advance(2 * FINISH_AFTER)
    assert rig.server.methods == "POST PATCH PATCH"
    assert rig.only()["series"] == {
        "count": 10,
        "lastObservedTime": "2023-11-14T22:22:20.000000Z",
    }


def test_a_series_of_two_needs_no_last_word(rig: EventSinkRig) -> None:
    rig.emit()
    rig.emit()
    rig.loop.advance(3 * FINISH_AFTER)
    assert rig.server.methods == "POST PATCH"


def test_a_long_series_is_refreshed_before_the_server_forgets_it(rig: EventSinkRig) -> None:
    for _ in range(100):
        rig.emit()
        rig.loop.advance(60)
    assert rig.server.methods == "POST PATCH" + " PATCH" * 3
    assert 6000 // REFRESH_EVERY == 3
    assert rig.only()["series"]["count"] == 90


def test_an_event_that_was_forgotten_by_the_server_is_created_again(rig: EventSinkRig) -> None:
    rig.emit()
    rig.loop.advance(60)
    name = rig.only()["metadata"]["name"]
    rig.server.store.remove(EVENTS, "shop", name)
    rig.emit()
    assert rig.server.methods == "POST PATCH POST"
    assert rig.only()["metadata"]["name"] == name
    assert rig.only()["series"]["count"] == 2


def test_what_comes_after_a_long_quiet_is_a_new_event(rig: EventSinkRig) -> None:
    rig.emit()
    rig.loop.advance(2 * FINISH_AFTER)
    rig.emit()
    assert rig.server.methods == "POST POST"
    assert len(rig.events) == 2


def test_events_that_differ_in_more_than_the_note_are_not_the_same(rig: EventSinkRig) -> None:
    rig.emit()
    rig.emit("other")
    rig.emit(type_="Normal")
    rig.emit(reason="Preempted")
    rig.emit(action="Binding")
    rig.emit(related=pod("other"))
    later = ObjectReference(kind="Pod", namespace="shop", name="web", uid="u", resource_version="2")
    rig.sink.emit(later, "Warning", "FailedScheduling", "Scheduling", "no room", controller="x")
    rig.loop.settle()
    assert rig.server.methods == " ".join(["POST"] * 7)
    assert len(rig.events) == 7  # although all of them happened in the same instant


def test_repeats_before_it_is_sent_are_told_with_it(rig: EventSinkRig) -> None:
    for _ in range(3):
        rig.sink.emit(
            pod("web"), "Warning", "FailedScheduling", "Scheduling", "no room", controller="x"
        )
    rig.loop.settle()
    assert rig.server.methods == "POST"
    assert rig.only()["series"]["count"] == 3


def test_repeats_while_it_is_sent_are_told_after_it(rig: EventSinkRig) -> None:
    rig.server.latency = 0.5
    for _ in range(3):
        rig.emit()
    rig.loop.advance(5)
    assert rig.server.methods == "POST PATCH"
    assert rig.only()["series"]["count"] == 3


def test_speaks_in_the_default_namespace_about_what_has_none(rig: EventSinkRig) -> None:
    node = ObjectReference(kind="Node", name="n1")
    rig.sink.emit(node, "Normal", "R", "A", "n", controller="x")
    rig.loop.settle()
    meta = rig.only()["metadata"]
    assert meta["namespace"] == "default"
    assert meta["name"].startswith("n1.")


@pytest.mark.parametrize("name", ["a" * 253, "system:node", "", "UPPER"])
def test_an_event_has_a_valid_name_whatever_it_is_about(rig: EventSinkRig, name: str) -> None:
    rig.emit(name)
    made = rig.only()["metadata"]["name"]
    assert len(made) == 36  # a UUID
    assert rig.only()["regarding"].get("name", "") == name


def test_everything_is_cut_to_what_the_server_accepts(rig: EventSinkRig) -> None:
    rig.emit(note="ä" * 600, reason="R" * 130, action="ä" * 65)
    event = rig.only()
    assert event["note"] == "ä" * 510 + " ..."
    assert event["reason"] == "R" * 128
    assert event["action"] == "ä" * 64
    assert rig.sink.failed == 0


def test_a_text_that_is_no_text_is_told_all_the_same(rig: EventSinkRig) -> None:
    rig.emit(note="bad \ud800 byte")
    assert rig.only()["note"] == "bad ? byte"


def test_refuses_a_type_that_kubernetes_does_not_know(
    rig: EventSinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.emit(type_="Error")
    assert rig.server.methods == ""
    assert rig.sink.failed == 1
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
    with EventSinkRig() as rig:
        for name, pause, trouble in steps:
            fault = LOST if trouble == "cut" else None
            rig.server.fault = lambda _, fault=fault: fault  # type: ignore[misc]  # bound early
            rig.server.latency = 1.5 if trouble == "slow" else 0.0
            rig.emit(name)
            rig.loop.advance(min(pause, 20.0))  # shorter than it takes to give up
            rig.server.fault = lambda _: None
            rig.loop.advance(max(pause - 20.0, 0.0))
        rig.loop.advance(3 * FINISH_AFTER)
        assert rig.seen() == len(steps)
        assert (rig.sink.dropped, rig.sink.failed) == (0, 0)
