"""Watches in protobuf, as far as the server has them; JSON says what cannot be read."""

from __future__ import annotations

import logging
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.go_protobuf import field
from tests.client.client_rig import ClientRig, Recorded
from tests.faulty_transport import EXPIRED, Refuse
from tests.protobuf_transport import frame

from mooring.api.core import Node, Pod
from mooring.client._decoding import Reader
from mooring.client._events import ProtobufEvents
from mooring.client.errors import Gone
from mooring.client.raw_objects import RawObjects
from mooring.client.transport import MAX_ANSWER
from mooring.client.watch import Reflector


@pytest.fixture
def server(rig: ClientRig) -> Any:
    rig.server.form.in_protobuf = True
    return rig.server


def accepted(rig: ClientRig) -> list[str]:
    """What watches asked for."""
    return [asked.request.accept for asked in rig.server.asked if asked.verb == "watch"]


PROTOBUF = "application/vnd.kubernetes.protobuf, application/json"


def test_tells_what_happens(rig: ClientRig, server: Any) -> None:
    server.put(Pod, "a")
    reflector = rig.follow()
    server.put(Pod, "b")
    server.put(Pod, "a", spec={"nodeName": "n"})
    server.delete(Pod, "b")
    rig.settle()
    assert rig.told == ["all: a", "put b", "put a", "remove b"]
    assert accepted(rig) == [PROTOBUF]
    assert reflector.problem == ""


@pytest.mark.parametrize(
    ("kind", "options"),
    [(Node, {}), (Pod, {"on_read": RawObjects[Pod]().put})],
    ids=["another kind", "JSON is kept"],
)
def test_asks_for_json_otherwise(
    kind: Any, options: dict[str, Any], rig: ClientRig, server: Any
) -> None:
    sink: Recorded[Any] = Recorded()
    rig.start(Reflector(rig.client, kind, sink, **options).run())
    server.put(kind, "a")
    rig.settle()
    assert sink.told == ["all:", "put a"]
    assert accepted(rig) == ["application/json"]


def test_goes_on_from_a_bookmark(rig: ClientRig, server: Any) -> None:
    rig.follow()
    version = str(server.store.version + 100)
    server.say(frame("BOOKMARK", {"metadata": {"resourceVersion": version}}))
    rig.settle()
    server.end()
    rig.advance(2)
    versions = [a.query["resourceVersion"] for a in server.asked if a.verb == "watch"]
    assert versions[-1] == version


def test_a_version_that_is_gone_is_listed_again(rig: ClientRig, server: Any) -> None:
    rig.follow()
    server.put(Pod, "a")
    rig.settle()
    server.report(EXPIRED)
    rig.advance(30)
    assert rig.told == ["all:", "put a", "all: a"]
    assert set(accepted(rig)) == {PROTOBUF}


def test_reads_an_error_as_the_real_server_sends_it() -> None:
    details = b'\x12\x07Failure\x1a!too old resource version: 2 (202)"\x07Expired0\x9a\x03'
    status = b"\n\x06\n\x00\x12\x00\x1a\x00" + details
    wrapped = b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12@" + status + b'\x1a\x00"\x00'
    sent = b"\x00\x00\x00c\n\x05ERROR\x12Z\nX" + wrapped
    events = ProtobufEvents(Reader(Pod))
    (event,) = events.feed(sent)
    with pytest.raises(Gone) as caught:
        events.read(event)
    error = caught.value
    assert (error.code, error.reason) == (410, "Expired")
    assert str(error) == "too old resource version: 2 (202)"


def test_waits_as_long_as_an_error_says(rig: ClientRig, server: Any) -> None:
    rig.follow()
    rig.advance(2)
    server.report(Refuse(429, "TooManyRequests", retry_after=9))
    rig.advance(30)
    first, second = rig.times("watch")
    assert 9 <= second - first - 2 <= 10


def length(size: int) -> bytes:
    return size.to_bytes(4, "big")


NO_ENVELOPE = field(1, b"ADDED") + field(2, field(1, b"{}"))


@pytest.mark.parametrize(
    "garbage",
    [
        length(MAX_ANSWER + 1),
        length(3) + b"\x0a\x05A",
        length(len(NO_ENVELOPE)) + NO_ENVELOPE,
        frame("ADDED", {"spec": {"containers": "none"}}),
        frame("BOOKMARK", {"spec": {"containers": "none"}}),
    ],
    ids=["too long", "cut", "no envelope", "no pod", "no bookmark"],
)
def test_what_cannot_be_read_is_asked_for_in_json_from_the_version_before(
    garbage: bytes, rig: ClientRig, server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reflector = rig.follow()
    server.put(Pod, "a")
    rig.settle()
    version = str(server.store.version)
    server.say(garbage)
    rig.settle()
    server.put(Pod, "b")
    rig.settle()
    assert rig.told == ["all:", "put a", "put b"]
    assert accepted(rig) == [PROTOBUF, "application/json"]
    assert server.asked[-1].query["resourceVersion"] == version
    assert (reflector.problem, reflector.lists) == ("", 1)
    said = "what came in protobuf cannot be read, asking for JSON"
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING] == [said]


def test_a_server_that_sends_protobuf_all_the_same_is_asked_less_and_less(
    rig: ClientRig, server: Any
) -> None:
    reflector = rig.follow()
    server.form.is_deaf = True
    server.put(Pod, "spoilt", spec={"containers": "none"})
    rig.advance(300)
    assert 3 < len(accepted(rig)) < 30
    assert "not valid JSON" in reflector.problem


def test_a_pod_that_cannot_be_read_stops_no_other(rig: ClientRig, server: Any) -> None:
    reflector = rig.follow()
    server.put(Pod, "a")
    server.put(Pod, "spoilt", spec={"containers": "none"})
    server.put(Pod, "b")
    rig.settle()
    assert rig.told == ["all:", "put a", "put spoilt?", "put b"]
    assert reflector.undecodable == 1
    server.end()
    rig.advance(700)
    assert set(accepted(rig)[1:]) == {"application/json"}


def test_an_event_is_there_as_soon_as_it_is_complete() -> None:
    events = ProtobufEvents(Reader(Pod))
    sent = length(5) + b"event"
    assert events.feed(sent[:6]) == []
    assert events.feed(sent[6:]) == [b"event"]


@given(
    sizes=st.lists(st.integers(0, 300), max_size=6),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=9),
)
def test_events_do_not_depend_on_how_they_arrive(sizes: list[int], cuts: list[int]) -> None:
    sent = [bytes([number]) * size for number, size in enumerate(sizes)]
    left = b"".join(length(len(event)) + event for event in sent) + length(7)[:3]
    events = ProtobufEvents(Reader(Pod))
    found = []
    for size in cycle(cuts):
        found += events.feed(left[:size])
        left = left[size:]
        if not left:
            break
    assert found == sent
