"""One kind kept current: lists, watches and their resumption; objects that cannot be read."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.client_rig import ClientRig, Recorded
from tests.faulty_transport import EXPIRED, Asked, Hang, Refuse, Vanish

from mooring.api.core import Node, Pod
from mooring.client._decoding import Reader, is_older
from mooring.client._events import JsonEvents
from mooring.client.watch import Reflector

# --- listing and watching ------------------------------------------------------------------------


def test_tells_what_there_is_and_then_what_happens(rig: ClientRig) -> None:
    rig.server.put(Pod, "a")
    reflector = rig.follow()
    rig.server.put(Pod, "b")
    rig.server.put(Pod, "a", spec={"nodeName": "n"})
    rig.server.delete(Pod, "b")
    rig.settle()
    assert rig.told == ["all: a", "put b", "put a", "remove b"]
    assert reflector.problem == ""
    assert reflector.undecodable == 0


def test_asks_for_the_newest_list_in_pages_and_watches_from_there_with_bookmarks(
    rig: ClientRig,
) -> None:
    for number in range(5):
        rig.server.put(Pod, f"p{number}")
    rig.follow(page_size=2)
    first, second, third, watch = (asked.query for asked in rig.server.asked)
    assert first == {"limit": "2"}
    assert second == {"limit": "2", "continue": second["continue"]}
    assert third == {"limit": "2", "continue": third["continue"]}
    assert rig.told == ["all: p0 p1 p2 p3 p4"]
    assert 300 <= int(watch["timeoutSeconds"]) <= 600
    assert dict(watch) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "1000",
        "timeoutSeconds": watch["timeoutSeconds"],
    }


def test_follows_one_namespace_and_a_selection(rig: ClientRig) -> None:
    sink: Recorded[Pod] = Recorded()
    chosen = {"metadata": {"name": "mine", "namespace": "a", "labels": {"x": "y"}}}
    rig.server.put(Pod, "mine", "a", **chosen)
    rig.server.put(Pod, "unlabelled", "a")
    rig.server.put(Pod, "other", "ab")
    reflector = Reflector(
        rig.client, Pod, sink, namespace="a", labels="x=y", fields="status.phase!=Failed"
    )
    rig.start(reflector.run())
    rig.server.put(Pod, "other", "ab")
    rig.server.put(Pod, "mine", "a")
    rig.server.put(Pod, "unlabelled", "a")
    rig.server.put(Pod, "mine", "a", status={"phase": "Failed"})
    rig.settle()
    assert sink.told == ["all: mine", "put mine", "remove mine"]
    for asked in rig.server.asked:
        assert asked.query["labelSelector"] == "x=y"
        assert asked.query["fieldSelector"] == "status.phase!=Failed"


def test_lists_again_when_the_pages_expire_midway(rig: ClientRig) -> None:
    for number in range(4):
        rig.server.put(Pod, f"p{number}")

    def age(asked: Asked) -> None:
        """Forget the version of the first page."""
        if "continue" in asked.query:
            rig.server.put(Pod, "p3")
            rig.server.store.compact()

    rig.server.fault = age
    reflector = rig.follow(page_size=2)
    rig.server.fault = lambda asked: None
    rig.advance(5)
    queries = [dict(asked.query) for asked in rig.server.asked if asked.verb == "list"]
    first, expired, again, last = queries
    assert first == again == {"limit": "2"}
    assert expired.keys() == last.keys() == {"limit", "continue"}
    assert rig.told == ["all: p0 p1 p2 p3"]
    assert reflector.problem == ""


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_reads_lines_that_are_cut_anywhere(size: int, rig: ClientRig) -> None:
    rig.server.chop = lambda data: [data[i : i + size] for i in range(0, len(data), size)]
    rig.follow()
    rig.server.put(Pod, "a")
    rig.server.say(b"\n\n")
    rig.server.put(Pod, "b")
    rig.settle()
    assert rig.told == ["all:", "put a", "put b"]


@given(st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"x", b"\n"))))
def test_lines_do_not_depend_on_how_they_arrive(chunks: list[bytes]) -> None:
    events = JsonEvents(Reader(Pod))
    found = [line for chunk in chunks for line in events.feed(chunk)]
    assert found == b"".join(chunks).split(b"\n")[:-1]


def test_gives_others_a_turn_within_a_flood(rig: ClientRig) -> None:
    rig.follow()
    for number in range(1000):
        rig.server.put(Pod, f"p{number}")
    turns: list[int] = []

    async def bystander() -> None:
        while len(rig.told) <= 1000:
            turns.append(len(rig.told))
            await asyncio.sleep(0)

    rig.start(bystander())
    assert max(later - sooner for sooner, later in pairwise(turns)) <= 256


# --- going on after an end -----------------------------------------------------------------------


def test_resumes_after_an_end_and_after_a_cut_without_a_new_list(rig: ClientRig) -> None:
    reflector = rig.follow()
    for stop in (rig.server.end, rig.server.cut):
        rig.advance(60)
        stop()
        rig.server.put(Pod, "missed")
        rig.settle()
    assert rig.told == ["all:", "put missed", "put missed"]
    assert (reflector.lists, rig.server.count("watch")) == (1, 3)
    assert reflector.problem == ""


def test_resumes_when_the_server_ends_the_watch_at_the_time_asked_for(rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.advance(3600)
    assert 6 <= rig.server.count("watch") <= 13
    assert reflector.lists == 1


def test_a_bookmark_moves_the_version_and_nothing_else(rig: ClientRig) -> None:
    rig.follow()
    rig.server.put(Node, "n")
    version = rig.server.store.version
    rig.advance(60)
    rig.server.store.compact()
    rig.server.cut()
    rig.settle()
    assert rig.server.asked[-1].query["resourceVersion"] == str(version)
    assert rig.told == ["all:"]


def test_what_was_told_already_is_not_told_again(rig: ClientRig) -> None:
    rig.follow()
    lines = rig.overhear()
    rig.server.put(Pod, "a")
    rig.server.put(Pod, "a")
    rig.server.delete(Pod, "a")
    rig.settle()
    told = list(rig.told)
    rig.server.say(b"".join(lines))
    rig.settle()
    # The end of an object is passed on in any case: not every server gives it a new version.
    assert rig.told == [*told, "remove a"]


@pytest.mark.parametrize("by_event", [True, False])
def test_lists_again_when_the_version_has_expired(by_event: bool, rig: ClientRig) -> None:
    rig.server.put(Pod, "a")
    reflector = rig.follow()
    rig.advance(60)
    rig.server.put(Pod, "b")
    rig.server.store.compact()
    rig.server.cut()
    if not by_event:
        rig.server.fail("watch", EXPIRED)
    rig.advance(2)
    assert rig.told == ["all: a", "all: a b"]
    assert reflector.problem == ""


def test_lists_again_when_a_watch_expires_while_it_is_open(rig: ClientRig) -> None:
    reflector = rig.follow()
    for status in (EXPIRED, Refuse(410, "Gone"), Refuse(0, "Expired")):
        rig.server.report(status)
        rig.advance(30)
    assert reflector.lists == 4


def test_waits_as_long_as_the_list_took_before_it_lists_again(rig: ClientRig) -> None:
    rig.server.latency = 10.0
    reflector = rig.follow()
    rig.advance(60)
    rig.server.report()
    rig.advance(19)
    assert rig.server.count("list") == 1
    rig.advance(21.1)
    assert reflector.lists == 2


def test_gives_up_on_a_watch_that_does_not_end_in_time(rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.server.silence()
    rig.server.put(Pod, "missed")
    rig.advance(631)
    assert rig.told == ["all:", "put missed"]
    assert reflector.lists == 1


# --- objects that cannot be read -----------------------------------------------------------------

BAD = {"containers": 5}


def test_an_object_that_cannot_be_read_does_not_hide_the_others(
    rig: ClientRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.server.put(Pod, "a")
    rig.server.put(Pod, "bad", spec=BAD)
    rig.server.put(Pod, "c")
    reflector = rig.follow()
    rig.server.put(Pod, "bad", status={"phase": "Running"})
    rig.server.put(Pod, "worse", spec=BAD)
    rig.server.delete(Pod, "worse")
    rig.settle()
    assert rig.told == ["all: a c bad?", "put bad?", "put worse?", "remove worse"]
    assert reflector.undecodable == 1
    said = [(record.__dict__["object"], record.__dict__["reason"]) for record in caplog.records]
    assert said == [
        ("default/bad", "Pod default/bad: spec.containers: expected array, got int"),
        ("default/worse", "Pod default/worse: spec.containers: expected array, got int"),
    ]
    rig.server.put(Pod, "bad", spec={})
    rig.settle()
    assert rig.told[-1] == "put bad"
    assert reflector.undecodable == 0


def test_a_list_ends_the_memory_of_objects_that_cannot_be_read(rig: ClientRig) -> None:
    rig.server.put(Pod, "bad", spec=BAD)
    reflector = rig.follow()
    rig.server.silence()
    rig.server.delete(Pod, "bad")
    rig.server.store.compact()
    rig.advance(700)
    assert reflector.lists == 2
    assert reflector.undecodable == 0


def test_an_object_without_readable_metadata_is_passed_over(
    rig: ClientRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.follow()
    nested = b"[" * 100_000 + b"]" * 100_000
    for what in (b"5", b'{"metadata":{"name":7}}', b'{"metadata":{"name":"\xff"}}'):
        rig.server.say(b'{"type":"ADDED","object":%s}\n' % what)
    rig.server.say(b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"spec":%s}}\n' % nested)
    rig.advance(2)
    rig.server.put(Pod, "a")
    rig.settle()
    assert rig.told == ["all:", "put a"]
    assert len(caplog.records) == 4


# --- versions ------------------------------------------------------------------------------------


@given(st.integers(1), st.integers(1))
def test_versions_are_compared_as_numbers(one: int, other: int) -> None:
    assert is_older(str(one), str(other)) == (one < other)


@given(st.text(max_size=3), st.sampled_from(["", "0", "07", "x", "٣", "1a"]))
def test_nothing_is_known_of_versions_that_are_no_numbers(one: str, other: str) -> None:
    assert not is_older(one, other)
    assert not is_older(other, one)


# --- refreshing --------------------------------------------------------------------------------


def test_a_refresh_waits_for_a_list_however_late_the_watch_is(rig: ClientRig) -> None:
    rig.server.put(Pod, "a")
    reflector = rig.follow()
    rig.advance(5)
    rig.server.silence()
    rig.server.put(Pod, "b")
    refresh = rig.start(reflector.refresh())
    rig.advance(1)
    assert refresh.done()
    assert rig.told == ["all: a", "all: a b"]
    rig.server.put(Pod, "c")
    rig.settle()
    assert rig.told[-1] == "put c"
    assert reflector.problem == ""


def test_a_refresh_is_not_content_with_a_list_that_was_under_way(rig: ClientRig) -> None:
    rig.server.latency = 1.0
    reflector = rig.follow()
    refresh = rig.start(reflector.refresh())
    rig.advance(2.5)
    assert reflector.lists == 1
    assert not refresh.done()
    rig.advance(2)
    assert reflector.lists == 2
    assert refresh.done()


def test_a_refresh_does_not_wait_for_a_watch_that_is_being_opened(rig: ClientRig) -> None:
    rig.server.fail("watch", Hang())
    reflector = rig.follow()
    refresh = rig.start(reflector.refresh())
    rig.advance(1)
    assert refresh.done()
    assert reflector.lists == 2


def test_a_refresh_survives_lists_that_fail(rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.server.fail("list", Refuse(500, "InternalError"), Refuse(403, "Forbidden"))
    refresh = rig.start(reflector.refresh())
    rig.advance(1)
    assert not refresh.done()
    rig.advance(30)
    assert refresh.done()
    assert reflector.problem == ""


def test_a_refresh_cuts_the_wait_for_a_server_that_was_away_short(rig: ClientRig) -> None:
    rig.server.fault = lambda asked: Vanish()
    reflector = rig.follow()
    rig.advance(60)
    rig.server.calm()
    rig.advance(0.01)
    refresh = rig.start(reflector.refresh())
    rig.settle()
    assert refresh.done()
    assert reflector.problem == ""
