"""Our own client on the wire that is none."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from tests.cluster.apiserver.in_process_server import PODS, ServerOnALoop

from mooring.api.core import Binding, ConfigMap, Namespace, Pod
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.client.client import ApiClient
from mooring.client.errors import (
    ConflictError,
    Fenced,
    Forbidden,
    NotFound,
    StatusError,
    TooManyRequests,
    Unreachable,
)
from mooring.client.informer import Informer
from mooring.client.transport import Request
from mooring.cluster.apiserver.transport import LocalTransport

T = TypeVar("T")


class Room(ServerOnALoop):
    """A server, a client of it, and a loop for both."""

    def __init__(self) -> None:
        super().__init__()
        self.transport = LocalTransport(self.server.server)
        self.client = ApiClient(self.transport)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        task = self.loop.create_task(work)
        self.loop.settle()
        return task.result()


@pytest.fixture
def room() -> Iterator[Room]:
    with Room() as room:
        yield room


def config(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))


def test_creates_reads_and_deletes(room: Room) -> None:
    made = room.run(room.client.create(config("a")))
    assert made.uid
    assert room.run(room.client.get(ConfigMap, "a", "default")) == made
    page = room.run(room.client.list_page(ConfigMap, "default"))
    assert (len(page.items), page.resource_version) == (1, str(room.server.store.version))
    room.run(room.client.delete(ConfigMap, "a", "default", uid=made.uid))
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        room.run(room.client.get(ConfigMap, "a", "default"))


def test_refusals_come_as_typed_errors(room: Room) -> None:
    room.run(room.client.create(config("a")))
    with pytest.raises(ConflictError) as caught:
        room.run(room.client.create(config("a")))
    assert caught.value.reason == "AlreadyExists"
    assert caught.value.details == {"name": "a", "kind": "configmaps"}
    with pytest.raises(Forbidden):
        room.run(room.client.delete(Namespace, "default"))


def test_binds_and_patches(room: Room) -> None:
    room.server.create(PODS, "p")
    meta = ObjectMeta(name="p", namespace="default")
    target = ObjectReference(kind="Node", name="n1")
    room.run(room.client.bind(Binding(metadata=meta, target=target)))
    change = {"status": {"phase": "Running"}}
    seen = room.run(room.client.patch(Pod, "p", "default", change, subresource="status"))
    assert (seen.spec.node_name, seen.status.phase) == ("n1", "Running")


def test_names_that_need_escapes_arrive(room: Room) -> None:
    request = Request(method="GET", path="/api/v1/namespaces/default/pods/a%20b?x=%2F")
    answer = room.run(room.transport.send(request))
    assert b'pods \\"a b\\" not found' in answer.body


def test_says_when_to_come_again(room: Room) -> None:
    version = room.server.store.version + 1
    request = Request(method="GET", path=f"/api/v1/pods?resourceVersion={version}")
    answer = room.run(room.transport.send(request))
    assert (answer.status, answer.headers) == (504, {"retry-after": "1"})


# --- the fence ---------------------------------------------------------------------------------


def test_asks_the_fence_in_the_moment_of_writing(room: Room) -> None:
    is_leader = True

    def fence() -> None:
        if not is_leader:
            raise Fenced("not the leader any more")

    client = ApiClient(room.transport, fence=lambda: fence)
    task = room.loop.create_task(client.create(config("a")))
    is_leader = False  # after the call has begun, before it reaches the server
    room.loop.settle()
    with pytest.raises(Fenced):
        task.result()
    assert room.server.names(PODS) == []


def test_lets_others_have_a_turn_before_each_request(room: Room) -> None:
    order: list[str] = []

    async def ask(name: str) -> None:
        for number in range(2):
            order.append(f"{name}{number}")
            await room.client.create(config(f"{name}{number}"))

    room.loop.create_task(ask("a"))
    room.loop.create_task(ask("b"))
    room.loop.settle()
    assert order == ["a0", "b0", "a1", "b1"]


# --- streams -----------------------------------------------------------------------------------


async def read(client: ApiClient, told: list[bytes]) -> None:
    async with client.watch(Pod, version="", seconds=60) as stream:
        told.extend([chunk async for chunk in stream.chunks()])


def test_a_stream_ends_when_its_time_is_up(room: Room) -> None:
    told: list[bytes] = []
    task = room.loop.create_task(read(room.client, told))
    room.loop.settle()
    room.server.create(PODS, "p")
    room.loop.settle()
    room.loop.advance(61)
    assert task.done()
    assert task.exception() is None
    assert b'"ADDED"' in b"".join(told)


def test_a_stream_that_is_refused_says_why(room: Room) -> None:
    async def watch() -> None:
        async with room.client.watch(Pod, version="abc", seconds=60):
            pass

    with pytest.raises(StatusError, match="invalid syntax"):
        room.run(watch())


def test_who_leaves_a_stream_is_forgotten(room: Room) -> None:
    task = room.loop.create_task(read(room.client, []))
    room.loop.settle()
    assert room.server.store._subscriptions["pods"]
    task.cancel()
    room.loop.settle()
    assert room.server.store._subscriptions["pods"] == set()


def test_closing_breaks_streams_and_refuses_requests(room: Room) -> None:
    task = room.loop.create_task(read(room.client, []))
    room.loop.settle()
    room.run(room.transport.close())
    room.loop.settle()
    with pytest.raises(Unreachable) as cut:
        task.result()
    assert cut.value.sent
    with pytest.raises(Unreachable) as late:
        room.run(room.client.create(config("a")))
    assert not late.value.sent


def test_a_watch_is_no_answer_that_ends(room: Room) -> None:
    with pytest.raises(ValueError, match="got a watch"):
        room.run(room.transport.send(Request(method="GET", path="/api/v1/pods?watch=1")))


def test_waits_and_asks_again_when_the_server_has_no_time(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, refusals = room.server.verbs.create, 2

    def busy(*arguments: Any, **options: Any) -> Any:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise TooManyRequests("busy", code=429, reason="TooManyRequests", retry_after=3)
        return create(*arguments, **options)

    monkeypatch.setattr(room.server.verbs, "create", busy)
    task = room.loop.create_task(room.client.create(config("a")))
    room.loop.advance(5)
    assert not task.done()
    room.loop.advance(2)
    assert task.result().uid


def test_an_informer_follows(room: Room) -> None:
    seen: dict[str, str] = {}

    def forget(value: Pod) -> None:
        del seen[value.name]

    informer = Informer(
        room.client,
        Pod,
        on_put=lambda value: seen.__setitem__(value.name, value.spec.node_name),
        on_remove=forget,
        page_size=2,
        rng=random.Random(3),
    )
    for name in "abc":
        room.server.create(PODS, name)
    room.loop.create_task(informer.run())
    room.loop.settle()
    assert seen == {"a": "", "b": "", "c": ""}
    room.server.verbs.bind("default", "b", {"metadata": {"name": "b"}, "target": {"name": "n"}})
    room.server.verbs.delete(PODS, "default", "a")
    room.loop.settle()
    assert seen == {"b": "n", "c": ""}
    room.loop.advance(3600)  # watches end and begin again
    room.server.create(PODS, "d")
    room.loop.settle()
    assert (set(seen), informer.reflector.lists) == ({"b", "c", "d"}, 1)
