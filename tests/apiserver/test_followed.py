"""Whatever is written and however often the wire breaks: informers end up with what there is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.apiserver.both import Object, pod
from tests.apiserver.desk import NAMESPACES, PODS, Desk

from mooring.api.codec import decode
from mooring.api.core import Pod
from mooring.apiserver.fields import parse_fields
from mooring.apiserver.label_queries import parse_labels
from mooring.apiserver.options import Chosen
from mooring.apiserver.server import ApiServer
from mooring.apiserver.transport import LocalStream, LocalTransport
from mooring.client.client import ApiClient
from mooring.client.errors import Unreachable
from mooring.client.informer import Informer
from mooring.client.transport import Answer, Fence, Request, Stream
from mooring.simulator.clock import VirtualLoop

NAMES = tuple(f"p{number}" for number in range(12))
APPS = ("x", "y", "z")
NODES = ("", "n1", "n2")


class FlakyTransport(LocalTransport):
    """Loses requests and breaks streams as it is told."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.losses = 0  # of the next requests

    async def send(self, request: Request, fence: Fence | None = None) -> Answer:
        self._lose()
        return await super().send(request, fence)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self._lose()
        async with super().stream(request) as stream:
            yield stream

    def cut(self) -> None:
        for stream in tuple(self._streams):
            assert isinstance(stream, LocalStream)
            stream.cut()

    def _lose(self) -> None:
        if self.losses:
            self.losses -= 1
            raise Unreachable("connection reset by peer", sent=True)


class Follower:
    """An informer with selectors, and a mirror of what its handlers heard."""

    def __init__(self, room: Room, labels: str = "", fields: str = "", page_size: int = 5) -> None:
        self.transport = FlakyTransport(room.desk.server)
        self.heard: dict[str, Pod] = {}
        self.wrong: list[str] = []  # raised, it would only be logged
        self._chosen = Chosen("", parse_labels(labels), parse_fields(PODS, fields))
        self._desk = room.desk
        self.informer: Informer[Pod] = Informer(
            ApiClient(self.transport),
            Pod,
            on_put=self._put,
            on_remove=self._remove,
            labels=labels,
            fields=fields,
            page_size=page_size,
            rng=random.Random(5),
        )
        room.loop.create_task(self.informer.run())

    def _put(self, value: Pod) -> None:
        known = self.heard.get(value.key)
        if known is not None and known.uid != value.uid:
            self.wrong.append(f"the end of {value.key} was not told")
        self.heard[value.key] = value

    def _remove(self, value: Pod) -> None:
        if self.heard.pop(value.key, None) != value:
            self.wrong.append(f"the end of {value.key} was told with a state nobody heard of")

    def assert_true(self) -> None:
        items = [item for item in self._desk.store.list(PODS) if self._chosen.has(item)]
        there = {value.key: value for value in (decode(item.raw, Pod) for item in items)}
        assert {value.key: value for value in self.informer} == there
        assert self.heard == there
        assert (self.wrong, self.informer.problem) == ([], "")


class Room:
    """A loop, a server, and things to do to its pods."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.desk = Desk()

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()

    def put(self, name: str, app: str, namespace: str = "default") -> None:
        if self.desk.store.get(PODS, namespace, name) is None:
            self.desk.verbs.create(PODS, pod(name, labels={"app": app}), namespace=namespace)
        else:
            self.modify(
                namespace, name, lambda value: value["metadata"].update(labels={"app": app})
            )

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        item = self.desk.store.get(PODS, namespace, name)
        if item is not None and not item.fields["spec.nodeName"]:
            binding = {"metadata": {"name": name}, "target": {"name": node}}
            self.desk.verbs.bind(namespace, name, binding)

    def delete(self, name: str, namespace: str = "default") -> None:
        if self.desk.store.get(PODS, namespace, name) is not None:
            self.desk.verbs.delete(PODS, namespace, name, grace=0)

    def modify(self, namespace: str, name: str, change: Callable[[Object], Any]) -> None:
        def changed(value: Object) -> Object:
            change(value)
            return value

        self.desk.verbs.modify(PODS, namespace, name, changed)


class FollowedServer(RuleBasedStateMachine):
    """A server that is written to, and informers that follow it over a bad wire."""

    def __init__(self) -> None:
        super().__init__()
        self.room = Room()

    @initialize(names=st.sets(st.sampled_from(NAMES)), page_size=st.integers(1, 7))
    def begin(self, names: set[str], page_size: int) -> None:
        for name in sorted(names):
            self.room.put(name, "x")
        self.followers = [
            Follower(self.room, page_size=page_size),
            Follower(self.room, labels="app in (x,y)", page_size=page_size),
            Follower(self.room, fields="spec.nodeName="),
        ]

    @rule(name=st.sampled_from(NAMES), app=st.sampled_from(APPS))
    def put(self, name: str, app: str) -> None:
        self.room.put(name, app)

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from(NODES[1:]))
    def bind(self, name: str, node: str) -> None:
        self.room.bind(name, node)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.room.delete(name)

    @rule(name=st.sampled_from(NAMES))
    def make_anew(self, name: str) -> None:
        self.room.delete(name)
        self.room.put(name, "x")

    @rule(seconds=st.sampled_from([0, 0.3, 2, 70, 650]))
    def wait(self, seconds: float) -> None:
        self.room.loop.advance(seconds)

    @rule(index=st.integers(0, 2), losses=st.integers(0, 3))
    def lose(self, index: int, losses: int) -> None:
        self.followers[index].transport.losses = losses
        self.followers[index].transport.cut()

    @rule()
    def compact(self) -> None:
        self.room.desk.store.compact()

    @rule()
    def calm_down(self) -> None:
        for follower in self.followers:
            follower.transport.losses = 0
        self.room.loop.advance(60)
        for follower in self.followers:
            follower.assert_true()

    def teardown(self) -> None:
        try:
            if hasattr(self, "followers"):
                self.calm_down()
        finally:
            self.room.close()


TestFollowedServer = FollowedServer.TestCase
TestFollowedServer.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_twenty_clients_with_selectors_end_up_with_what_there_is() -> None:
    room, dice = Room(), random.Random(11)
    try:
        for namespace in ("one", "two"):
            room.desk.create(NAMESPACES, namespace)
        followers = [
            Follower(
                room,
                labels=dice.choice(
                    ["", "app=x", "app!=x", "app in (x,y)", "!none", "app notin (z)"]
                ),
                fields=dice.choice(["", "spec.nodeName=", "spec.nodeName!=", "metadata.name!=p3"]),
                page_size=dice.choice([1, 7, 500]),
            )
            for _ in range(20)
        ]
        for step in range(3_000):
            name, namespace = f"p{dice.randrange(60)}", dice.choice(["default", "one", "two"])
            match dice.randrange(10):
                case 0 | 1:
                    room.delete(name, namespace)
                case 2 | 3:
                    room.bind(name, dice.choice(NODES[1:]), namespace)
                case _:
                    room.put(name, dice.choice(APPS), namespace)
            if dice.random() < 0.02:
                follower = dice.choice(followers)
                follower.transport.losses = dice.randrange(3)
                follower.transport.cut()
            if step % 1_000 == 999:
                room.desk.store.compact()
            if dice.random() < 0.3:
                room.loop.advance(dice.choice([0, 0, 0.5, 20]))
        room.loop.advance(120)
        for follower in followers:
            follower.assert_true()
    finally:
        room.close()
