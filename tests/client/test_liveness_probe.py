"""A server that falls silent without a word, and one that merely has nothing to say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.client.client_rig import ClientRig
from tests.faulty_transport import Fault, FaultyServer, Hang, Refuse, Vanish
from tests.loop_rig import LoopRig

from mooring.api.core import Pod
from mooring.client.client import ApiClient
from mooring.client.liveness_probe import LivenessProbe
from mooring.client.watch import Reflector
from mooring.simulator.clock import VirtualLoop


class FakeListener:
    """A listener that heard the server `every` seconds, or never."""

    def __init__(self, loop: VirtualLoop, every: float | None) -> None:
        self.doubts: list[str] = []
        self._loop = loop
        self._every = every

    @property
    def last_contact(self) -> float | None:
        now = self._loop.time()
        return None if self._every is None else now - now % self._every

    def restart_watch(self, why: str) -> None:
        self.doubts.append(why)


@contextmanager
def running(
    server: FaultyServer, *every: float | None
) -> Iterator[tuple[VirtualLoop, list[FakeListener]]]:
    with LoopRig() as rig:
        listeners = [FakeListener(rig.loop, seconds) for seconds in every]
        rig.loop.create_task(LivenessProbe(ApiClient(server), listeners).run())
        yield rig.loop, listeners


def test_asks_nothing_while_somebody_hears_something() -> None:
    server = FaultyServer()
    with running(server, None, 10.0) as (loop, listeners):
        loop.advance(600)
    assert server.lines == []
    assert [listener.doubts for listener in listeners] == [[], []]


@pytest.mark.parametrize("fault", [None, Refuse(403, "Forbidden"), Vanish(sent=False)])
def test_takes_any_answer_for_a_sign_of_life(fault: Fault | None) -> None:
    server = FaultyServer()
    server.fault = lambda asked: fault
    with running(server, None, None) as (loop, listeners):
        loop.advance(61)
    assert server.lines == ["GET version"] * 4
    assert [listener.doubts for listener in listeners] == [[], []]


def test_doubts_all_who_heard_nothing_once_a_question_is_swallowed() -> None:
    server = FaultyServer()
    server.fault = lambda asked: Hang()
    with running(server, None, 1000.0) as (loop, listeners):
        loop.advance(40)
        heard = [list(listener.doubts) for listener in listeners]
    words = "the server did not answer within 8 s"
    assert heard == [[words], [words]]


def test_spares_who_was_heard_while_the_question_was_under_way() -> None:
    server = FaultyServer()
    server.fault = lambda asked: Hang()
    with running(server, None, 34.0) as (loop, listeners):  # the question is of 30 s
        loop.advance(40)
        heard = [len(listener.doubts) for listener in listeners]
    assert heard == [1, 0]


async def doubting(reflector: Reflector[Pod]) -> None:
    reflector.restart_watch("no sign of life")


def test_a_doubted_watch_is_resumed_and_a_problem_until_it_stands() -> None:
    with ClientRig() as rig:
        rig.server.put(Pod, "a")
        reflector = rig.follow()
        rig.advance(5)
        rig.server.silence()
        rig.server.put(Pod, "b")
        rig.server.fail("watch", Hang())
        rig.start(doubting(reflector))
        rig.advance(1)
        assert reflector.problem == "cannot watch pods: no sign of life"
        assert rig.told == ["all: a"]
        rig.advance(60)
        assert reflector.problem == ""
        assert rig.told == ["all: a", "all: a b"]  # the server was away for long
        assert reflector.lists == 2
