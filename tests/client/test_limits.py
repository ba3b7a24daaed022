"""A server that sends without end costs bounded memory, and what it said is a failure."""

from __future__ import annotations

import gzip
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

ROOM = 64 * 1024  # KiB that the process may grow by
MEGABYTE = b"x" * 1_000_000
ENDLESS = 400  # megabytes

# Follows pods until there are some, or a problem; prints by how many KiB the peak has grown, the
# number of pods and the problem.
CLIENT = """
import asyncio, json, logging, resource, sys
from mooring.api.core import Pod
from mooring.client.client import ApiClient
from mooring.client.endpoint import Endpoint
from mooring.client.http import HttpTransport
from mooring.client.watch import Reflector

class Sink:
    pods = 0
    def replace(self, objects, unread): self.pods = len(objects)
    def put(self, value): self.pods += 1
    put_unread = remove = put

async def main(port, seconds):
    transport = HttpTransport(Endpoint(host="127.0.0.1", port=port), user_agent="test")
    sink = Sink()
    reflector = Reflector(ApiClient(transport), Pod, sink)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    running = asyncio.create_task(reflector.run())
    for _ in range(int(seconds * 10)):
        await asyncio.sleep(0.1)
        if reflector.problem or sink.pods:
            break
    running.cancel()
    await asyncio.wait([running])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([grown, sink.pods, reflector.problem]))

logging.basicConfig(level=logging.INFO)
asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
"""

Answer = Callable[[str], Iterator[bytes]]
"""What the server sends for a request line."""

EMPTY_LIST = b'{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}'


def counted(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def endless(status: str = "200 OK", part: bytes = MEGABYTE) -> Iterator[bytes]:
    yield f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    for _ in range(ENDLESS):
        yield b"%x\r\n%s\r\n" % (len(part), part)


def watch_only(answer: Callable[[], Iterator[bytes]]) -> Answer:
    def serve(line: str) -> Iterator[bytes]:
        return answer() if "watch=true" in line else iter([counted(EMPTY_LIST)])

    return serve


def packed(line: str) -> Iterator[bytes]:
    bomb = gzip.compress(b" " * 1_000_000) * 700
    yield counted(bomb, headers="Content-Encoding: gzip\r\n")


def unknown_types() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for number in range(20_000):
        event = b'{"type":"T%d%s","object":{}}\n' % (number, b"y" * 1_000)
        yield b"%x\r\n%s\r\n" % (len(event), event)


@contextmanager
def server(answer: Answer) -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            head = b""
            while True:
                while b"\r\n\r\n" not in head:
                    if not (data := peer.recv(65_536)):
                        return
                    head += data
                line, _, head = head.partition(b"\r\n\r\n")
                for part in answer(line.split(b"\r\n")[0].decode()):
                    peer.sendall(part)

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listening.accept()
                threading.Thread(target=serve, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()


def follow(answer: Answer, seconds: float = 30.0) -> tuple[int, int, str, str]:
    """Growth in KiB, number of pods, problem and log of a client of such a server."""
    with server(answer) as port:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, str(port), str(seconds)],
            capture_output=True,
            text=True,
            check=True,
        )
    grown, pods, problem = json.loads(done.stdout)
    return grown, pods, problem, done.stderr


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda line: endless(), "cannot list pods: .*the answer is longer than"),
        (packed, "cannot list pods: .*the answer is longer than"),
        (lambda line: endless("500 Oops"), "cannot list pods: .*the answer is longer than"),
        (watch_only(endless), "cannot watch pods: an event is longer than"),
        (watch_only(lambda: endless("500 Oops")), "cannot watch pods: xxx"),
    ],
    ids=["list", "packed list", "failed list", "watch", "failed watch"],
)
def test_a_server_that_sends_without_end_costs_bounded_memory(answer: Answer, why: str) -> None:
    grown, _, problem, log = follow(answer)
    assert grown < ROOM
    assert re.search(why, problem), problem
    assert len(log) < 20_000


def test_a_long_message_of_a_failure_is_cut() -> None:
    status = json.dumps({"kind": "Status", "code": 403, "message": "no! " * 10_000}).encode()
    grown, _, problem, log = follow(lambda line: iter([counted(status, "403 Forbidden")]))
    assert problem.startswith("cannot list pods: no! no! ")
    assert len(problem) < 5_000
    assert len(log) < 20_000
    assert grown < ROOM


def test_unknown_event_types_are_logged_a_few_times() -> None:
    grown, pods, _, log = follow(watch_only(unknown_types), 3.0)
    assert pods == 0
    assert log.count("events of an unknown type are ignored") == 8
    assert grown < ROOM


def test_pages_of_large_objects_are_listed_in_smaller_ones() -> None:
    asked: list[int] = []
    annotation = "x" * 1_000_000

    def serve(line: str) -> Iterator[bytes]:
        if "watch=true" in line:
            yield from endless(part=b"\n")
            return
        query = dict(part.split("=") for part in line.split(" ")[1].split("?")[1].split("&"))
        limit, first = int(query["limit"]), int(query.get("continue", "0"))
        asked.append(limit)
        names = range(first, min(first + limit, 40))
        items = [
            {"metadata": {"name": f"p{i}", "namespace": "d", "annotations": {"a": annotation}}}
            for i in names
        ]
        token = str(names.stop) if names.stop < 40 else ""
        meta = {"resourceVersion": "7", "continue": token}
        yield counted(json.dumps({"metadata": meta, "items": items}).encode())

    grown, pods, problem, _ = follow(serve)
    assert (pods, problem) == (40, "")
    assert asked == [500, 62, 7, 8, 8, 8, 8, 8]
    assert grown < ROOM + 40 * 1024  # the pods are kept
