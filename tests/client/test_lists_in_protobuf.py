"""Lists in protobuf, as far as the server has them, page by page."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from tests.api.go_protobuf import encode, encode_list, enveloped, field
from tests.client.client_rig import ClientRig, Recorded
from tests.client.http_server import Handler, Peer, answer, client, serve, until

from mooring.api.core import Namespace, Pod
from mooring.api.meta import Object
from mooring.client.client import ApiClient
from mooring.client.raw_objects import RawObjects
from mooring.client.watch import Reflector

PROTOBUF = "application/vnd.kubernetes.protobuf"


def named(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name, "namespace": "d", "uid": name}} for name in names]


def pages(*bodies: bytes, status: int = 200) -> Handler:
    """Answers lists with these bodies, the last one again and again; watches have no events."""

    async def handler(peer: Peer) -> None:
        number = 0
        while True:
            request = await peer.request()
            if "watch=true" in request.path:
                await peer.gone()
            await peer.send(answer(bodies[min(number, len(bodies) - 1)], status))
            number += 1

    return handler


async def follow(
    handler: Handler, kind: type[Object] = Pod, **options: Any
) -> tuple[list[str], Reflector[Any], list[Any]]:
    """What a sink is told of the first list, or the problem; and the requests."""
    sink: Recorded[Any] = Recorded()
    async with serve(handler) as server, client(server.port) as to:
        reflector = Reflector(ApiClient(to), kind, sink, **options)
        task = asyncio.create_task(reflector.run())
        await until(lambda: bool(sink.told or reflector.problem))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return sink.told, reflector, server.requests


async def test_asks_for_protobuf_and_reads_it() -> None:
    first = encode_list("Pod", named("a", "b"), "5", "more")
    told, reflector, requests = await follow(pages(first, encode_list("Pod", named("c"), "5")))
    assert told == ["all: a b c"]
    assert (reflector.problem, reflector.undecodable) == ("", 0)
    for request in requests[:2]:
        assert request.headers["accept"] == f"{PROTOBUF}, application/json"
        assert "accept-encoding" not in request.headers
    assert parse_qs(urlsplit(requests[1].path).query)["continue"] == ["more"]


async def test_reads_json_from_a_server_that_has_no_protobuf() -> None:
    body = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": named("a")})
    told, _, _ = await follow(pages(body))
    assert told == ["all: a"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [(Namespace, {}), (Pod, {"on_read": RawObjects[Pod]().put})],
    ids=["another kind", "JSON is kept"],
)
async def test_asks_for_json_otherwise(kind: type[Object], options: dict[str, Any]) -> None:
    body = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": []})
    _, _, requests = await follow(pages(body), kind, **options)
    assert requests[0].headers["accept"] == "application/json"
    assert requests[0].headers["accept-encoding"] == "gzip"


async def test_what_cannot_be_read_is_asked_for_in_json() -> None:
    quantity = field(2, field(32, field(1, b"cpu") + field(2, field(1, b"lots"))))
    items = [field(2, encode("Pod", named("a")[0])), field(2, quantity)]
    in_json = {
        "metadata": {"resourceVersion": "5"},
        "items": [*named("a"), {**named("b")[0], "spec": {"overhead": {"cpu": "lots"}}}],
    }
    broken = enveloped("PodList", field(1, field(2, b"5")) + b"".join(items))
    told, reflector, requests = await follow(pages(broken, msgspec.json.encode(in_json)))
    assert told == ["all: a b?"]
    assert reflector.undecodable == 1
    assert requests[1].headers["accept"] == "application/json"


async def test_says_what_the_server_refuses() -> None:
    status = field(3, b"pods is forbidden") + field(4, b"Forbidden") + field(6, 403)
    _, reflector, _ = await follow(pages(enveloped("Status", status), status=403))
    assert reflector.problem == "cannot list pods: pods is forbidden"


async def test_a_list_that_is_cut_is_asked_for_in_json() -> None:
    whole = encode_list("Pod", named("a", "b"), "5")
    in_json = {"metadata": {"resourceVersion": "5"}, "items": named("a", "b")}
    told, reflector, requests = await follow(pages(whole[:-9], msgspec.json.encode(in_json)))
    assert (told, reflector.problem) == (["all: a b"], "")
    assert requests[1].headers["accept"] == "application/json"


def test_the_next_page_is_requested_before_this_one_is_read(rig: ClientRig) -> None:
    for number in range(6):
        rig.server.put(Pod, f"p{number}")
    asked: list[int] = []
    sink: Recorded[Pod] = Recorded()
    reflector = Reflector(
        rig.client,
        Pod,
        sink,
        page_size=2,
        on_read=lambda value, raw: asked.append(len(rig.server.asked)),
    )
    rig.start(reflector.run())
    assert asked == [2, 2, 3, 3, 3, 3]


def test_pages_grow_until_they_are_long(rig: ClientRig) -> None:
    for number in range(1_200):
        rig.server.put(Pod, f"p{number:04d}")
    sink: Recorded[Pod] = Recorded()
    rig.start(Reflector(rig.client, Pod, sink).run())
    limits = [asked.query.get("limit") for asked in rig.server.asked if asked.verb == "list"]
    assert limits == ["500", "10000"]
