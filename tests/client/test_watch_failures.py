"""What following a kind goes through when the server refuses, vanishes or talks nonsense."""

import logging
import random
from itertools import pairwise

import pytest
from tests.client.client_rig import ClientRig, Recorded
from tests.faulty_transport import (
    EXPIRED,
    EndAtOnce,
    Fault,
    Garbage,
    Hang,
    Refuse,
    Vanish,
)
from tests.garbage import NO_OBJECT, NO_TEXT

from mooring.api.core import Pod
from mooring.api.storage import StorageClass
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden
from mooring.client.flowcontrol import Backoff
from mooring.client.watch import Reflector

OUT_OF_DATE = "objects may be out of date"
CURRENT = "objects are current again"


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
    rig: ClientRig,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rig.server.fault = lambda asked: fault if asked.verb == verb else None
    reflector = rig.follow()
    rig.advance(90)
    assert reflector.problem == f"cannot {verb} pods: {words}"
    assert [record.message for record in caplog.records] == [OUT_OF_DATE]
    rig.server.fault = lambda asked: None
    rig.advance(61 if isinstance(fault, Hang) else 31)
    assert reflector.problem == ""
    assert [record.message for record in caplog.records] == [OUT_OF_DATE, CURRENT]
    assert reflector.last_contact is not None
    assert rig.server.watches


def test_says_of_which_group_a_kind_is(rig: ClientRig) -> None:
    rig.server.forbidden.add(("list", StorageClass))
    heard: list[Forbidden] = []
    client = ApiClient(rig.server, on_forbidden=heard.append)
    reflector = Reflector(client, StorageClass, Recorded())
    rig.start(reflector.run())
    assert reflector.problem == (
        "cannot list storageclasses.storage.k8s.io: storageclasses.storage.k8s.io is forbidden: "
        'User "mooring" cannot list resource "storageclasses" in API group "storage.k8s.io" '
        "at the cluster scope: no rule"
    )
    rig.server.forbidden = {("watch", StorageClass)}
    rig.advance(30)
    assert [error.code for error in heard[-2:]] == [403, 403]
    assert reflector.problem.startswith("cannot watch storageclasses.storage.k8s.io: ")


def test_tries_less_and_less_often_up_to_half_a_minute(rig: ClientRig) -> None:
    rig.server.fault = lambda asked: Refuse(500)
    rig.follow()
    rig.advance(600)
    tries = rig.times("list")
    pauses = [later - sooner for sooner, later in pairwise(tries)]
    assert 0.8 <= pauses[0] <= 1.2
    assert all(20 <= pause <= 30 for pause in pauses[5:])


def test_looks_for_a_server_that_is_gone_every_few_seconds(rig: ClientRig) -> None:
    rig.server.fault = lambda asked: Vanish(sent=True)
    reflector = rig.follow()
    rig.advance(600)
    rig.server.fault = lambda asked: None
    rig.advance(9)
    assert reflector.problem == ""
    assert reflector.lists == 1


def test_begins_with_short_waits_again_when_a_lost_server_answers_at_all(rig: ClientRig) -> None:
    rig.server.fault = lambda asked: Vanish()
    rig.follow()
    rig.advance(60)
    before = len(rig.times("list"))
    rig.server.fault = lambda asked: Refuse(403, "Forbidden")
    rig.advance(15)
    waits = [after - at for at, after in pairwise(rig.times("list")[before:])]
    assert waits[0] < 1.3
    assert waits[1] > 1.5


def test_begins_with_short_waits_again_after_two_healthy_minutes() -> None:
    backoff: Backoff[str] = Backoff(
        1.2, 30.0, jitter=1 / 3, forget_after=120.0, rng=random.Random(1)
    )
    now = 0.0
    for _ in range(10):
        now += backoff.next("pods", now)
    assert backoff.next("pods", now + 119) >= 20
    assert backoff.next("pods", now + 119 + 30 + 120) <= 1.2


def test_backs_off_from_a_server_that_ends_every_watch_at_once(rig: ClientRig) -> None:
    rig.server.fault = lambda asked: EndAtOnce() if asked.verb == "watch" else None
    reflector = rig.follow()
    rig.advance(600)
    assert rig.server.count("watch") < 150
    assert reflector.lists == 1
    assert reflector.problem == "cannot watch pods: the stream ended as soon as it had begun"
    rig.server.fault = lambda asked: None
    rig.advance(10)
    assert reflector.problem == ""


def test_backs_off_from_a_server_whose_lists_are_always_too_old(rig: ClientRig) -> None:
    rig.server.fault = lambda asked: EXPIRED if asked.verb == "watch" else None
    reflector = rig.follow()
    rig.advance(600)
    assert reflector.lists < 40
    assert reflector.problem == "cannot watch pods: too old resource version"


@pytest.mark.parametrize("by_event", [True, False])
def test_waits_as_long_as_a_busy_server_asks_and_resumes(by_event: bool, rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.advance(60)
    busy = Refuse(429, "TooManyRequests", "busy", retry_after=7)
    if by_event:
        rig.server.report(busy)
    else:
        rig.server.fail("watch", busy)
        rig.server.end()
    rig.advance(6.99)
    assert rig.server.watches == []
    rig.advance(0.8)
    assert len(rig.server.watches) == 1
    assert reflector.lists == 1
    assert reflector.problem == ""


def test_a_watch_that_stands_makes_earlier_failures_forgotten(rig: ClientRig) -> None:
    reflector = rig.follow()
    for _ in range(4):
        rig.advance(10)
        rig.server.fail("watch", *[Refuse(429, retry_after=1)] * 2)
        rig.server.end()
        rig.advance(2)
        assert reflector.problem == ""


def test_a_watch_that_told_something_is_no_problem_however_soon_it_ended(rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.advance(2)
    rig.server.fail("watch", Refuse(500), EndAtOnce(), Hang())
    rig.server.end()
    rig.settle()
    assert reflector.problem == "cannot watch pods: no"
    rig.server.put(Pod, "a")
    rig.advance(5)
    assert rig.told == ["all:", "put a"]
    assert reflector.problem == ""


def test_resumes_from_before_a_line_that_is_garbage(rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.advance(60)
    for garbage in (b"<html>\n", b'{"type":1}\n', b"\xff\n", b'{"type":"BOOKMARK","object":[]}\n'):
        rig.server.put(Pod, "a")
        rig.server.say(garbage)
        rig.settle()
        rig.server.put(Pod, "b")
        rig.advance(2)
    assert rig.told == ["all:", *["put a", "put b"] * 4]
    assert reflector.lists == 1


def test_lists_again_when_the_same_garbage_comes_again_and_again(rig: ClientRig) -> None:
    reflector = rig.follow()
    rig.server.end()
    rig.server.put(Pod, "a")
    rig.server.chop = lambda data: [b"garbage\n"]
    rig.advance(20)
    assert reflector.lists == 2
    assert rig.told == ["all:", "all: a"]
    assert reflector.problem == ""


@pytest.mark.parametrize("version", [50, 2000], ids=["behind", "ahead"])
def test_lists_again_when_the_server_was_away(version: int, rig: ClientRig) -> None:
    rig.server.put(Pod, "a")
    rig.follow()
    rig.server.fail("watch", Vanish())
    rig.server.restore(50)
    rig.server.put(Pod, "b")  # which no watch from the version before would report
    rig.server.restore(max(version, rig.server.store.version))
    rig.server.cut()
    rig.advance(10)
    rig.server.put(Pod, "c")
    rig.settle()
    assert rig.told == ["all: a", "all: a b", "put c"]


def test_lists_again_when_a_bookmark_shows_that_the_server_went_back(rig: ClientRig) -> None:
    rig.server.put(Pod, "a")
    reflector = rig.follow()
    rig.server.restore(50)
    rig.server.put(Pod, "b")
    rig.server.cut()  # and at once a watch that stands and is silent
    rig.advance(10)
    assert rig.told == ["all: a"]
    rig.server.say(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"51"}}}\n')
    rig.advance(10)
    rig.server.put(Pod, "c")
    rig.settle()
    assert rig.told == ["all: a", "all: a b", "put c"]
    assert reflector.problem == ""


def test_ignores_events_it_does_not_know_and_says_so_once(
    rig: ClientRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.follow()
    rig.server.say(b'{"type":"SIGHED","object":{}}\n' * 3)
    rig.server.put(Pod, "a")
    rig.settle()
    assert rig.told == ["all:", "put a"]
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
def test_goes_on_when_answers_can_be_read_again(verb: str, garbage: bytes, rig: ClientRig) -> None:
    rig.server.put(Pod, "before")
    rig.server.fault = lambda asked: Garbage(garbage) if asked.verb == verb else None
    rig.follow()
    rig.advance(120)
    rig.server.put(Pod, "meanwhile")
    rig.server.fault = lambda asked: None
    rig.advance(120)
    rig.server.put(Pod, "after")
    rig.settle()
    assert rig.told[-1] == "put after"
    assert any("meanwhile" in told for told in rig.told)
