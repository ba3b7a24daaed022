"""One kind kept current: lists, watches and their resumption; objects that cannot be read."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.memory_server import EXPIRED, Hang, Refuse, Vanish
from tests.client.stage import Recorded, Stage

from mooring.api.core import Pod
from mooring.client._reading import Lines, is_older
from mooring.client.watch import Reflector


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


# --- listing and watching ------------------------------------------------------------------------


def test_tells_what_there_is_and_then_what_happens(stage: Stage) -> None:
    stage.server.put(Pod, "a")
    reflector = stage.follow()
    stage.server.put(Pod, "b")
    stage.server.put(Pod, "a", spec={"nodeName": "n"})
    stage.server.delete(Pod, "b")
    stage.settle()
    assert stage.told == ["all: a", "put b", "put a", "remove b"]
    assert reflector.problem == ""
    assert reflector.undecodable == 0


def test_asks_for_the_newest_list_in_pages_and_watches_from_there_with_bookmarks(
    stage: Stage,
) -> None:
    for number in range(5):
        stage.server.put(Pod, f"p{number}")
    stage.follow(page_size=2)
    first, second, third, watch = (asked.query for asked in stage.server.seen)
    assert first == {"limit": "2"}
    assert second == {"limit": "2", "continue": "100:2"}
    assert third == {"limit": "2", "continue": "100:4"}
    assert stage.told == ["all: p0 p1 p2 p3 p4"]
    assert 300 <= int(watch["timeoutSeconds"]) <= 600
    assert dict(watch) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "100",
        "timeoutSeconds": watch["timeoutSeconds"],
    }


def test_follows_one_namespace_and_a_selection(stage: Stage) -> None:
    sink: Recorded[Pod] = Recorded()
    stage.server.put(Pod, "mine", "a")
    stage.server.put(Pod, "other", "ab")
    reflector = Reflector(
        stage.client, Pod, sink, namespace="a", labels="x=y", fields="status.phase!=Failed"
    )
    stage.start(reflector.run())
    stage.server.put(Pod, "other", "ab")
    stage.server.put(Pod, "mine", "a")
    stage.settle()
    assert sink.told == ["all: mine", "put mine"]
    for asked in stage.server.seen:
        assert asked.query["labelSelector"] == "x=y"
        assert asked.query["fieldSelector"] == "status.phase!=Failed"


def test_lists_all_in_one_when_the_pages_expire_midway(stage: Stage) -> None:
    for number in range(4):
        stage.server.put(Pod, f"p{number}")
    answered = iter([None, Refuse(410, "Expired", "The provided continue parameter is too old")])
    stage.server.weather = lambda verb: next(answered, None)
    reflector = stage.follow(page_size=2)
    assert [dict(asked.query) for asked in stage.server.seen if asked.verb == "list"] == [
        {"limit": "2"},
        {"limit": "2", "continue": "99:2"},
        {},
    ]
    assert stage.told == ["all: p0 p1 p2 p3"]
    assert reflector.problem == ""


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_reads_lines_that_are_cut_anywhere(size: int, stage: Stage) -> None:
    stage.server.chop = lambda data: [data[i : i + size] for i in range(0, len(data), size)]
    stage.follow()
    stage.server.put(Pod, "a")
    stage.server.say(b"\n\n")
    stage.server.put(Pod, "b")
    stage.settle()
    assert stage.told == ["all:", "put a", "put b"]


@given(st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"x", b"\n"))))
def test_lines_do_not_depend_on_how_they_arrive(chunks: list[bytes]) -> None:
    lines = Lines()
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    assert found == b"".join(chunks).split(b"\n")[:-1]


def test_gives_others_a_turn_within_a_flood(stage: Stage) -> None:
    stage.follow()
    lines = stage.overhear()
    stage.server.silence()
    for number in range(1000):
        stage.server.put(Pod, f"p{number}")
    stage.server.watches[0].is_silent = False
    stage.server.watches[0].push(b"".join(lines))
    turns: list[int] = []

    async def bystander() -> None:
        while len(stage.told) <= 1000:
            turns.append(len(stage.told))
            await asyncio.sleep(0)

    stage.start(bystander())
    assert max(later - sooner for sooner, later in pairwise(turns)) <= 256


# --- going on after an end -----------------------------------------------------------------------


def test_resumes_after_an_end_and_after_a_cut_without_a_new_list(stage: Stage) -> None:
    reflector = stage.follow()
    for stop in (stage.server.end, stage.server.cut):
        stage.advance(60)
        stop()
        stage.server.put(Pod, "missed")
        stage.settle()
    assert stage.told == ["all:", "put missed", "put missed"]
    assert (reflector.lists, stage.server.count("watch")) == (1, 3)
    assert reflector.problem == ""


def test_resumes_when_the_server_ends_the_watch_at_the_time_asked_for(stage: Stage) -> None:
    reflector = stage.follow()
    stage.advance(3600)
    assert 6 <= stage.server.count("watch") <= 13
    assert reflector.lists == 1


def test_a_bookmark_moves_the_version_and_nothing_else(stage: Stage) -> None:
    stage.follow()
    stage.advance(2)
    stage.server.version = 500
    stage.server.bookmark()
    stage.settle()
    stage.server.compact()
    stage.server.cut()
    stage.settle()
    assert stage.server.seen[-1].query["resourceVersion"] == "500"
    assert stage.told == ["all:"]


def test_what_was_told_already_is_not_told_again(stage: Stage) -> None:
    stage.follow()
    lines = stage.overhear()
    stage.server.put(Pod, "a")
    stage.server.put(Pod, "a")
    stage.server.delete(Pod, "a")
    stage.settle()
    told = list(stage.told)
    stage.server.say(b"".join(lines))
    stage.settle()
    # The end of an object is passed on in any case: not every server gives it a new version.
    assert stage.told == [*told, "remove a"]


@pytest.mark.parametrize("by_event", [True, False])
def test_lists_again_when_the_version_has_expired(by_event: bool, stage: Stage) -> None:
    stage.server.expires_by_event = by_event
    stage.server.put(Pod, "a")
    reflector = stage.follow()
    stage.advance(60)
    stage.server.silence()
    stage.server.put(Pod, "b")
    stage.server.compact()
    stage.server.watches[0].is_silent = False
    stage.server.cut()
    stage.advance(2)
    assert stage.told == ["all: a", "all: a b"]
    assert reflector.problem == ""


def test_lists_again_when_a_watch_expires_while_it_is_open(stage: Stage) -> None:
    reflector = stage.follow()
    for status in (EXPIRED, Refuse(410, "Gone"), Refuse(0, "Expired")):
        stage.server.expire(status)
        stage.advance(30)
    assert reflector.lists == 4


def test_waits_as_long_as_the_list_took_before_it_lists_again(stage: Stage) -> None:
    stage.server.latency = lambda: 10.0
    reflector = stage.follow()
    stage.advance(60)
    stage.server.expire()
    stage.advance(19)
    assert stage.server.count("list") == 1
    stage.advance(21.1)
    assert reflector.lists == 2


def test_gives_up_on_a_watch_that_does_not_end_in_time(stage: Stage) -> None:
    reflector = stage.follow()
    stage.server.silence()
    stage.server.put(Pod, "missed")
    stage.advance(631)
    assert stage.told == ["all:", "put missed"]
    assert reflector.lists == 1


# --- objects that cannot be read -----------------------------------------------------------------

BAD = {"containers": 5}


def test_an_object_that_cannot_be_read_does_not_hide_the_others(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.server.put(Pod, "a")
    stage.server.put(Pod, "bad", spec=BAD)
    stage.server.put(Pod, "c")
    reflector = stage.follow()
    stage.server.put(Pod, "bad", status={"phase": "Running"})
    stage.server.put(Pod, "worse", spec=BAD)
    stage.server.delete(Pod, "worse")
    stage.settle()
    assert stage.told == ["all: a c bad?", "put bad?", "put worse?", "remove worse"]
    assert reflector.undecodable == 1
    said = [(record.__dict__["object"], record.__dict__["reason"]) for record in caplog.records]
    assert said == [
        ("default/bad", "Pod default/bad: spec.containers: expected array, got int"),
        ("default/worse", "Pod default/worse: spec.containers: expected array, got int"),
    ]
    stage.server.put(Pod, "bad", spec={})
    stage.settle()
    assert stage.told[-1] == "put bad"
    assert reflector.undecodable == 0


def test_a_list_ends_the_memory_of_objects_that_cannot_be_read(stage: Stage) -> None:
    stage.server.put(Pod, "bad", spec=BAD)
    reflector = stage.follow()
    stage.server.silence()
    stage.server.delete(Pod, "bad")
    stage.server.compact()
    stage.advance(700)
    assert reflector.lists == 2
    assert reflector.undecodable == 0


def test_an_object_without_readable_metadata_is_passed_over(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.follow()
    nested = b"[" * 100_000 + b"]" * 100_000
    for what in (b"5", b'{"metadata":{"name":7}}', b'{"metadata":{"name":"\xff"}}'):
        stage.server.say(b'{"type":"ADDED","object":%s}\n' % what)
    stage.server.say(b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"spec":%s}}\n' % nested)
    stage.advance(2)
    stage.server.put(Pod, "a")
    stage.settle()
    assert stage.told == ["all:", "put a"]
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


def test_a_refresh_waits_for_a_list_however_late_the_watch_is(stage: Stage) -> None:
    stage.server.put(Pod, "a")
    reflector = stage.follow()
    stage.advance(5)
    stage.server.silence()
    stage.server.put(Pod, "b")
    refresh = stage.start(reflector.refresh())
    stage.advance(1)
    assert refresh.done()
    assert stage.told == ["all: a", "all: a b"]
    stage.server.put(Pod, "c")
    stage.settle()
    assert stage.told[-1] == "put c"
    assert reflector.problem == ""


def test_a_refresh_is_not_content_with_a_list_that_was_under_way(stage: Stage) -> None:
    stage.server.latency = lambda: 1.0
    reflector = stage.follow()
    refresh = stage.start(reflector.refresh())
    stage.advance(2.5)
    assert reflector.lists == 1
    assert not refresh.done()
    stage.advance(2)
    assert reflector.lists == 2
    assert refresh.done()


def test_a_refresh_does_not_wait_for_a_watch_that_is_being_opened(stage: Stage) -> None:
    stage.server.fail("watch", Hang())
    reflector = stage.follow()
    refresh = stage.start(reflector.refresh())
    stage.advance(1)
    assert refresh.done()
    assert reflector.lists == 2


def test_a_refresh_survives_lists_that_fail(stage: Stage) -> None:
    reflector = stage.follow()
    stage.server.fail("list", Refuse(500, "InternalError"), Refuse(403, "Forbidden"))
    refresh = stage.start(reflector.refresh())
    stage.advance(1)
    assert not refresh.done()
    stage.advance(30)
    assert refresh.done()
    assert reflector.problem == ""


def test_a_refresh_cuts_the_wait_for_a_server_that_was_away_short(stage: Stage) -> None:
    stage.server.weather = lambda verb: Vanish()
    reflector = stage.follow()
    stage.advance(60)
    stage.server.calm()
    stage.advance(0.01)
    refresh = stage.start(reflector.refresh())
    stage.settle()
    assert refresh.done()
    assert reflector.problem == ""
