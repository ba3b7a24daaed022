"""Callers that are wrong, slow, many or rude, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket

import msgspec
import pytest
from tests.extender.in_process_server import Reply, Served, about, serve

import mooring.extender.serving.app
import mooring.framework as fw
from mooring.extender import Extender
from mooring.testing import node, pod


def everywhere() -> Extender:
    extender = Extender()

    @extender.filter
    def anywhere(pod: fw.Pod, node: fw.Node) -> bool:
        return True

    @extender.prioritize
    def alike(pod: fw.Pod, node: fw.Node) -> int:
        return 5

    return extender


ASKED = msgspec.json.encode(about(pod("web"), ["a"]))


async def speak(served: Served, said: bytes) -> bytes:
    """Say something over a connection of one's own; everything that is heard until its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.app.port)
    writer.write(said)
    heard = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            heard += piece
    writer.close()
    return heard


# --- requests that make no sense -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[]", "object"),
        (b'{"NodeNames":["a"]}', "Pod is missing"),
        (b'{"Pod":{},"NodeNames":[1]}', "$.NodeNames[0]"),
        (b'{"Pod":{},"Nodes":{"items":[{}]},"NodeNames":null}', "metadata"),
        (b'{"Pod":' + b"[" * 100_000, "can't be read"),
        (b"\xff\xfe", "JSON"),
    ],
    ids=["half", "nothing", "array", "no pod", "a number", "a bare node", "deep", "no text"],
)
async def test_says_what_is_wrong_with_a_request_where_the_scheduler_looks(
    body: bytes, why: str
) -> None:
    async with serve(everywhere()) as served:
        answer = await served.post("/filter", body)
        assert answer.status == 200  # of any other code a scheduler shows nothing but the code
        assert why in answer.json["Error"]
        assert answer.json["Error"].startswith("the request can't be read")
        answer = await served.post("/prioritize", body)
        assert answer.status == 400
        assert why in answer.json["Error"]
        assert (await served.post("/filter", ASKED)).json["NodeNames"] == ["a"]


async def test_answers_other_paths_and_methods_as_http_does() -> None:
    async with serve(everywhere()) as served:
        for path in ("/", "/filter/", "/x", "//filter"):
            reply = await served.post(path, ASKED)
            assert reply.status == 404
            assert "this extender serves /filter, /prioritize" in reply.json["Error"]
        unserved = await served.post("/preempt", ASKED)
        assert unserved.status == 404
        assert unserved.json["Error"] == "this extender does not serve /preempt"
        for method in ("GET", "PUT", "DELETE"):
            reply = await served.request(method, "/filter")
            assert (reply.status, reply.headers["Allow"]) == (405, "POST")
        reply = await served.request("POST", "/metrics")
        assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
        packed = await served.request("POST", "/filter", ASKED, {"Content-Encoding": "gzip"})
        assert packed.status == 415


# --- requests that are too large -----------------------------------------------------------------


async def test_refuses_a_large_body_without_reading_it() -> None:
    async with serve(everywhere(), max_body_bytes=1000) as served:
        head = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n"
        heard = await speak(served, head + b"{")
        assert heard.startswith(b"HTTP/1.1 413 ")
        assert b"larger than 1000 bytes (--max-body-bytes)" in heard
        assert b"Connection: close" in heard
        chunk = b"%x\r\n%b\r\n" % (600, b" " * 600)
        head = b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await speak(served, head + 2 * chunk)).startswith(b"HTTP/1.1 413 ")
        assert (await served.post("/filter", ASKED)).status == 200


async def test_refuses_more_large_bodies_than_fit_into_memory() -> None:
    async with serve(everywhere(), max_body_bytes=1000) as served:
        head = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        waiting = [await asyncio.open_connection("127.0.0.1", served.app.port) for _ in range(5)]
        answers = [asyncio.create_task(reader.read(100)) for reader, _ in waiting]
        for _, writer in waiting:
            writer.write(head + 900 * b" ")
        done, others = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        assert [answer.result()[:12] for answer in done] == [b"HTTP/1.1 503"]
        for task in others:
            task.cancel()
        for _, writer in waiting:
            writer.close()


# --- callers that are slow or many ---------------------------------------------------------------


async def test_cuts_off_who_does_not_come_to_the_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mooring.extender.serving.app, "HEADER_SECONDS", 0.1)
    monkeypatch.setattr(mooring.extender.serving.app, "BODY_SECONDS", 0.1)
    async with serve(everywhere()) as served:
        assert await speak(served, b"") == b""
        assert await speak(served, b"POST /filter HTTP/1.1\r\nHost: x\r\nX-Slow: ") == b""
        head = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
        assert (await speak(served, head)).startswith(b"HTTP/1.1 408 ")
        assert (await served.post("/filter", ASKED)).status == 200


async def test_keeps_a_connection_for_the_next_request() -> None:
    async with serve(everywhere()) as served:
        for _ in range(5):
            assert (await served.post("/filter", ASKED)).status == 200
        page = (await served.request("GET", "/metrics")).text
        assert "mooring_extender_connections 1\n" in page
        assert 'mooring_extender_request_duration_seconds_count{code="200",verb="filter"} 5' in page


async def test_an_idle_connection_makes_room_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mooring.extender.serving.app, "MAX_CONNECTIONS", 3)
    async with serve(everywhere()) as served:
        idle = [await asyncio.open_connection("127.0.0.1", served.app.port) for _ in range(9)]
        assert (await served.post("/filter", ASKED)).status == 200
        assert await idle[0][0].read() == b""
        for _, writer in idle:
            writer.close()


async def test_survives_who_leaves_in_the_middle_of_it() -> None:
    async with serve(everywhere()) as served:
        for said in (b"POST", b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", served.app.port)) as one:
                one.sendall(said)
        assert (await served.post("/filter", ASKED)).status == 200


# --- health, and the end -------------------------------------------------------------------------


async def test_is_healthy_at_once_and_ready_once_it_knows_the_cluster() -> None:
    async with serve(everywhere(), objects=[node("a")]) as served:
        assert (await served.request("GET", "/healthz")).text == "ok"
        await served.app.cluster.informers.wait_synced()
        assert (await served.request("GET", "/readyz")).status == 200
        for informer in served.app.cluster.informers:
            informer.synced.clear()
        reply = await served.request("GET", "/readyz")
        assert (reply.status, reply.text) == (503, "still listing nodes, pods")
        answer = await served.post("/filter", ASKED)
        told = "the extender is not ready: still listing nodes, pods"
        assert answer.json["Error"] == told


async def test_answers_requests_under_way_before_it_stops() -> None:
    extender = Extender()
    begun, go = asyncio.Event(), asyncio.Event()

    @extender.filter
    async def slow(pod: fw.Pod, node: fw.Node) -> bool:
        begun.set()
        await go.wait()
        return True

    async with serve(extender) as served:
        asking = asyncio.create_task(served.post("/filter", ASKED))
        await begun.wait()
        served.app.stop()
        for _ in range(1000):
            if not await is_let_in(served.app.port):
                break
        go.set()
        reply: Reply = await asking
        assert reply.json["NodeNames"] == ["a"]


async def is_let_in(port: int) -> bool:
    def connect() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.connect()
        except OSError:
            return False
        finally:
            connection.close()
        return True

    return await asyncio.to_thread(connect)
