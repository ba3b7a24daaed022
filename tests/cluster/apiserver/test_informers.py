"""Informers converge to the server's state, whatever is written and however often they are cut off.

The same over sockets: `test_informers_over_sockets.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.cluster.apiserver.flaky_informers import (
    APPS,
    NODES,
    FlakyTransport,
    InformerMirror,
    RandomWrites,
    random_mirror,
)
from tests.cluster.apiserver.in_process_server import InProcessServer

from mooring.simulator.clock import VirtualLoop

NAMES = tuple(f"p{number}" for number in range(12))


class Room:
    """A loop, a server that is written to, and informers that follow it over a bad wire."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.server = InProcessServer()
        self.writes = RandomWrites(self.server)
        self.mirrors: list[tuple[InformerMirror, FlakyTransport]] = []

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()

    def follow(self, labels: str = "", fields: str = "", page_size: int = 5) -> None:
        transport = FlakyTransport(self.server.server)
        self._add(InformerMirror(self.server, transport, labels, fields, page_size), transport)

    def follow_something(self, rng: random.Random) -> None:
        transport = FlakyTransport(self.server.server)
        self._add(random_mirror(self.server, transport, rng), transport)

    def _add(self, mirror: InformerMirror, transport: FlakyTransport) -> None:
        self.mirrors.append((mirror, transport))
        self.loop.create_task(mirror.informer.run())

    def calm_down(self) -> None:
        """Restore the connections; after a while all informers are up to date."""
        for _, transport in self.mirrors:
            transport.losses = 0
        self.loop.advance(60)
        for mirror, _ in self.mirrors:
            mirror.assert_true()


class FollowedServer(RuleBasedStateMachine):
    """A server that is written to, and informers that follow it over a bad wire."""

    def __init__(self) -> None:
        super().__init__()
        self.room = Room()

    @initialize(names=st.sets(st.sampled_from(NAMES)), page_size=st.integers(1, 7))
    def begin(self, names: set[str], page_size: int) -> None:
        for name in sorted(names):
            self.room.writes.put(name, "x")
        self.room.follow(page_size=page_size)
        self.room.follow(labels="app in (x,y)", page_size=page_size)
        self.room.follow(fields="spec.nodeName=")

    @rule(name=st.sampled_from(NAMES), app=st.sampled_from(APPS))
    def put(self, name: str, app: str) -> None:
        self.room.writes.put(name, app)

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from(NODES))
    def bind(self, name: str, node: str) -> None:
        self.room.writes.bind(name, node)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.room.writes.delete(name)

    @rule(name=st.sampled_from(NAMES))
    def make_anew(self, name: str) -> None:
        self.room.writes.delete(name)
        self.room.writes.put(name, "x")

    @rule(seconds=st.sampled_from([0, 0.3, 2, 70, 650]))
    def wait(self, seconds: float) -> None:
        self.room.loop.advance(seconds)

    @rule(index=st.integers(0, 2), losses=st.integers(0, 3))
    def lose(self, index: int, losses: int) -> None:
        _, transport = self.room.mirrors[index]
        transport.losses = losses
        transport.cut()

    @rule()
    def compact(self) -> None:
        self.room.server.store.compact()

    @rule()
    def calm_down(self) -> None:
        self.room.calm_down()

    def teardown(self) -> None:
        try:
            self.room.calm_down()
        finally:
            self.room.close()


TestFollowedServer = FollowedServer.TestCase
TestFollowedServer.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.fixture
def room() -> Iterator[Room]:
    made = Room()
    yield made
    made.close()


def test_twenty_clients_with_selectors_end_up_with_what_there_is(room: Room) -> None:
    rng = random.Random(11)
    room.writes.make_namespaces()
    for _ in range(20):
        room.follow_something(rng)
    for step in range(3_000):
        room.writes.anything(rng)
        if rng.random() < 0.02:
            _, transport = rng.choice(room.mirrors)
            transport.losses = rng.randrange(3)
            transport.cut()
        if step % 1_000 == 999:
            room.server.store.compact()
        if rng.random() < 0.3:
            room.loop.advance(rng.choice([0, 0, 0.5, 20]))
    room.loop.advance(60)
    room.calm_down()
