"""What following a kind goes through when the server refuses, vanishes or talks nonsense."""

import logging
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.client.memory_server import (
    EXPIRED,
    Babble,
    EndAtOnce,
    Fault,
    Hang,
    Refuse,
    Vanish,
)
from tests.client.stage import Recorded, Stage
from tests.garbage import NO_OBJECT, NO_TEXT

from mooring.api.core import Pod
from mooring.api.storage import StorageClass
from mooring.client._backoff import Backoff
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden
from mooring.client.watch import Reflector

OUT_OF_DATE = "objects may be out of date"
CURRENT = "objects are current again"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Refuse(500, "InternalError", "etcd is away"), "etcd is away"),
        (Refuse(403, "Forbidden", "no rule"), "no rule"),
        (Refuse(401, "Unauthorized", "who?"), "who?"),
        (Vanish(), "connection refused"),
        (Hang(), "timed out"),
    ],
)
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_names_the_problem_until_it_is_over(
    verb: str,
    fault: Fault,
    words: str,
    stage: Stage,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    stage.server.weather = lambda asked: fault if asked == verb else None
    reflector = stage.follow()
    stage.advance(90)
    assert reflector.problem == f"cannot {verb} pods: {words}"
    assert [record.message for record in caplog.records] == [OUT_OF_DATE]
    stage.server.weather = lambda asked: None
    stage.advance(61 if isinstance(fault, Hang) else 31)
    assert reflector.problem == ""
    assert [record.message for record in caplog.records] == [OUT_OF_DATE, CURRENT]
    assert reflector.last_contact is not None
    assert stage.server.watches


def test_says_of_which_group_a_kind_is(stage: Stage) -> None:
    stage.server.forbidden.add(("list", StorageClass))
    heard: list[Forbidden] = []
    client = ApiClient(stage.server, on_forbidden=heard.append)
    reflector = Reflector(client, StorageClass, Recorded())
    stage.start(reflector.run())
    assert reflector.problem == (
        'cannot list storageclasses.storage.k8s.io: storageclasses is forbidden: User "mooring" '
        'cannot list resource "storageclasses" in API group "storage.k8s.io" at the cluster scope'
    )
    stage.server.forbidden = {("watch", StorageClass)}
    stage.advance(30)
    assert [error.code for error in heard[-2:]] == [403, 403]
    assert reflector.problem.startswith("cannot watch storageclasses.storage.k8s.io: ")


def test_tries_less_and_less_often_up_to_half_a_minute(stage: Stage) -> None:
    stage.server.weather = lambda verb: Refuse(500)
    stage.follow()
    stage.advance(600)
    tries = stage.times("list")
    pauses = [later - sooner for sooner, later in pairwise(tries)]
    assert 0.8 <= pauses[0] <= 1.2
    assert all(20 <= pause <= 30 for pause in pauses[5:])


def test_looks_for_a_server_that_is_gone_every_few_seconds(stage: Stage) -> None:
    stage.server.weather = lambda verb: Vanish(sent=True)
    reflector = stage.follow()
    stage.advance(600)
    stage.server.weather = lambda verb: None
    stage.advance(9)
    assert reflector.problem == ""
    assert reflector.lists == 1


def test_begins_with_short_waits_again_when_a_lost_server_answers_at_all(stage: Stage) -> None:
    stage.server.weather = lambda verb: Vanish()
    stage.follow()
    stage.advance(60)
    before = len(stage.times("list"))
    stage.server.weather = lambda verb: Refuse(403, "Forbidden")
    stage.advance(15)
    waits = [after - at for at, after in pairwise(stage.times("list")[before:])]
    assert waits[0] < 1.3
    assert waits[1] > 1.5


def test_begins_with_short_waits_again_after_two_healthy_minutes() -> None:
    backoff = Backoff(random.Random(1))
    now = 0.0
    for _ in range(10):
        now += backoff.next(now)
    assert backoff.next(now + 119) >= 20
    assert backoff.next(now + 119 + 30 + 120) <= 1.2


def test_backs_off_from_a_server_that_ends_every_watch_at_once(stage: Stage) -> None:
    stage.server.weather = lambda verb: EndAtOnce() if verb == "watch" else None
    reflector = stage.follow()
    stage.advance(600)
    assert stage.server.count("watch") < 150
    assert reflector.lists == 1
    assert reflector.problem == "cannot watch pods: the stream ended as soon as it had begun"
    stage.server.weather = lambda verb: None
    stage.advance(10)
    assert reflector.problem == ""


def test_backs_off_from_a_server_whose_lists_are_always_too_old(stage: Stage) -> None:
    stage.server.weather = lambda verb: EXPIRED if verb == "watch" else None
    reflector = stage.follow()
    stage.advance(600)
    assert reflector.lists < 40
    assert reflector.problem == "cannot watch pods: too old resource version"


@pytest.mark.parametrize("by_event", [True, False])
def test_waits_as_long_as_a_busy_server_asks_and_resumes(by_event: bool, stage: Stage) -> None:
    reflector = stage.follow()
    stage.advance(60)
    busy = Refuse(429, "TooManyRequests", "busy", retry_after=7)
    if by_event:
        stage.server.expire(busy)
    else:
        stage.server.fail("watch", busy)
        stage.server.end()
    stage.advance(6.99)
    assert stage.server.watches == []
    stage.advance(0.8)
    assert len(stage.server.watches) == 1
    assert reflector.lists == 1
    assert reflector.problem == ""


def test_a_watch_that_stands_makes_earlier_failures_forgotten(stage: Stage) -> None:
    reflector = stage.follow()
    for _ in range(4):
        stage.advance(10)
        stage.server.fail("watch", *[Refuse(429, retry_after=1)] * 2)
        stage.server.end()
        stage.advance(2)
        assert reflector.problem == ""


def test_a_watch_that_told_something_is_no_problem_however_soon_it_ended(stage: Stage) -> None:
    reflector = stage.follow()
    stage.server.fail("watch", Vanish(), EndAtOnce(), Hang())
    stage.server.cut()
    stage.settle()
    assert reflector.problem == "cannot watch pods: connection reset by peer"
    stage.server.put(Pod, "a")
    stage.advance(5)
    assert stage.told == ["all:", "put a"]
    assert reflector.problem == ""


def test_resumes_from_before_a_line_that_is_garbage(stage: Stage) -> None:
    reflector = stage.follow()
    stage.advance(60)
    for garbage in (b"<html>\n", b'{"type":1}\n', b"\xff\n", b'{"type":"BOOKMARK","object":[]}\n'):
        stage.server.put(Pod, "a")
        stage.server.say(garbage)
        stage.settle()
        stage.server.put(Pod, "b")
        stage.advance(2)
    assert stage.told == ["all:", *["put a", "put b"] * 4]
    assert reflector.lists == 1


def test_lists_again_when_the_same_garbage_comes_again_and_again(stage: Stage) -> None:
    reflector = stage.follow()
    stage.server.end()
    stage.server.put(Pod, "a")
    stage.server.chop = lambda data: [b"garbage\n"]
    stage.advance(20)
    assert reflector.lists == 2
    assert stage.told == ["all:", "all: a"]
    assert reflector.problem == ""


def test_lists_again_when_the_server_went_back_in_time(stage: Stage) -> None:
    stage.server.version = 1000
    stage.server.put(Pod, "a")
    reflector = stage.follow()
    stage.server.restore(50)
    stage.server.put(Pod, "a")
    stage.server.cut()
    stage.advance(10)
    assert "Too large resource version" not in reflector.problem
    stage.server.put(Pod, "b")
    stage.settle()
    assert stage.told[-2:] == ["all: a", "put b"]


def test_ignores_events_it_does_not_know_and_says_so_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.follow()
    stage.server.say(b'{"type":"SIGHED","object":{}}\n' * 3)
    stage.server.put(Pod, "a")
    stage.settle()
    assert stage.told == ["all:", "put a"]
    assert [record.message for record in caplog.records] == [
        "events of an unknown type are ignored"
    ]


HUGE_PAUSE = b'{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":1%s}}}' % (
    b"0" * 400
)
ERROR_OF_NOTHING = b'{"type":"ERROR","object":[]}'


@pytest.mark.parametrize(
    ("verb", "garbage"),
    [
        *(("list", body) for body in (*NO_OBJECT, *NO_TEXT)),
        *(("watch", body) for body in (*NO_OBJECT, *NO_TEXT, HUGE_PAUSE, ERROR_OF_NOTHING)),
        *(("watch", b'{"type":"BOOKMARK","object":' + body) for body in (*NO_OBJECT, *NO_TEXT)),
        *(("watch", b'{"type":"ADDED","object":' + body + b"}") for body in (*NO_OBJECT, *NO_TEXT)),
    ],
)
def test_goes_on_when_answers_can_be_read_again(verb: str, garbage: bytes, stage: Stage) -> None:
    stage.server.put(Pod, "before")
    stage.server.weather = lambda asked: Babble(garbage) if asked == verb else None
    stage.follow()
    stage.advance(120)
    stage.server.put(Pod, "meanwhile")
    stage.server.weather = lambda asked: None
    stage.advance(120)
    stage.server.put(Pod, "after")
    stage.settle()
    assert stage.told[-1] == "put after"
    assert any("meanwhile" in told for told in stage.told)
