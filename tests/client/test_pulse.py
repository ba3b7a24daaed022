"""A server that falls silent without a word, and one that merely has nothing to say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import pytest
from tests.client.memory_server import Hang
from tests.client.stage import Stage

from mooring.api.core import Pod
from mooring.client.client import ApiClient
from mooring.client.errors import Unreachable
from mooring.client.pulse import Pulse
from mooring.client.transport import Answer, Fence, Request, Stream
from mooring.client.watch import Reflector
from mooring.simulator.clock import VirtualLoop


class Wire:
    """Fulfils `Transport`: answers, refuses or swallows whatever comes."""

    def __init__(self) -> None:
        self.mood: str = "answers"
        self.asked: list[str] = []

    async def send(self, request: Request, fence: Fence | None = None) -> Answer:
        self.asked.append(f"{request.method} {request.path}")
        if self.mood == "refuses":
            raise Unreachable("connection refused", sent=False)
        if self.mood == "swallows":
            await asyncio.sleep(request.timeout)
            raise Unreachable("no answer", sent=True)
        return Answer(403 if self.mood == "forbids" else 200, {}, b"{}")

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None: ...


class Ear:
    """A listener that heard the server `every` seconds, or never."""

    def __init__(self, loop: VirtualLoop, every: float | None) -> None:
        self.doubts: list[str] = []
        self._loop = loop
        self._every = every

    @property
    def last_contact(self) -> float | None:
        now = self._loop.time()
        return None if self._every is None else now - now % self._every

    def doubt(self, why: str) -> None:
        self.doubts.append(why)


@contextmanager
def running(wire: Wire, *every: float | None) -> Iterator[tuple[VirtualLoop, list[Ear]]]:
    loop = VirtualLoop()
    ears = [Ear(loop, seconds) for seconds in every]
    task = loop.create_task(Pulse(ApiClient(wire), ears).run())
    try:
        yield loop, ears
    finally:
        task.cancel()
        loop.settle()
        loop.close()


def test_asks_nothing_while_somebody_hears_something() -> None:
    wire = Wire()
    with running(wire, None, 10.0) as (loop, ears):
        loop.advance(600)
    assert wire.asked == []
    assert [ear.doubts for ear in ears] == [[], []]


@pytest.mark.parametrize("mood", ["answers", "forbids", "refuses"])
def test_takes_any_answer_for_a_sign_of_life(mood: str) -> None:
    wire = Wire()
    wire.mood = mood
    with running(wire, None, None) as (loop, ears):
        loop.advance(61)
    assert wire.asked == ["GET /version"] * 4
    assert [ear.doubts for ear in ears] == [[], []]


def test_doubts_all_who_heard_nothing_once_a_question_is_swallowed() -> None:
    wire = Wire()
    wire.mood = "swallows"
    with running(wire, None, 1000.0) as (loop, ears):
        loop.advance(40)
        heard = [list(ear.doubts) for ear in ears]
    words = "the server gave no sign of life within 8 s"
    assert heard == [[words], [words]]


def test_spares_who_was_heard_while_the_question_was_under_way() -> None:
    wire = Wire()
    wire.mood = "swallows"
    with running(wire, None, 34.0) as (loop, ears):  # the question is of 30 s
        loop.advance(40)
        heard = [len(ear.doubts) for ear in ears]
    assert heard == [1, 0]


async def doubting(reflector: Reflector[Pod]) -> None:
    reflector.doubt("no sign of life")


def test_a_doubted_watch_is_resumed_and_a_problem_until_it_stands() -> None:
    with Stage() as stage:
        stage.server.put(Pod, "a")
        reflector = stage.follow()
        stage.advance(5)
        stage.server.silence()
        stage.server.put(Pod, "b")
        stage.server.fail("watch", Hang())
        stage.start(doubting(reflector))
        stage.advance(1)
        assert reflector.problem == "cannot watch pods: no sign of life"
        assert stage.told == ["all: a"]
        stage.advance(60)
        assert reflector.problem == ""
        assert stage.told == ["all: a", "put b"]
        assert reflector.lists == 1
