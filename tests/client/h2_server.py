"""A server's side of HTTP/2 by the `h2` package, with the face of a `Peer`.

Handlers are written once, in bytes of HTTP/1.1: what they send is said over again in HTTP/2, as
far as it goes. What is no HTTP/1.1 goes out as it is. The requests of a connection come one after
the other; a handler that wants several at a time asks for several and answers with `reply`.
"""

from __future__ import annotations

import asyncio
from collections import deque

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from h2.settings import SettingCodes
from tests.client.http_server import Peer, Received


class H2Peer(Peer):
    """One connection that chose HTTP/2."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(number, reader, writer)
        config = h2.config.H2Configuration(client_side=False, header_encoding="latin-1")
        self.h2: h2.connection.H2Connection = h2.connection.H2Connection(config)
        self.stream: int = 0  # of the request that was taken last
        self.resets: dict[int, int] = {}  # codes of streams that the client gave up
        self.pings: int = 0  # that we sent and that were answered
        self._arriving: dict[int, tuple[list[tuple[str, str]], bytearray]] = {}
        self._arrived: deque[tuple[int, Received]] = deque()
        self._answer = b""  # as far as it is not said yet
        self._left: int | None = None  # bytes of the body to come; None before its head
        self._begun = False

    def begin(self, settings: dict[int, int] | None = None) -> None:
        """Say hello; with these settings, if any."""
        self._begun = True
        self.h2.initiate_connection()
        if settings is not None:
            self.h2.update_settings({SettingCodes(name): value for name, value in settings.items()})
        self.flush()

    async def request(self) -> Received:
        while not self._arrived:
            await self.pull()
        self.stream, received = self._arrived.popleft()
        self._answer, self._left = b"", None
        self.requests.append(received)
        return received

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self._answer += part
            if self._left is None and not _may_be_http(self._answer):
                self.flush()
                await super().send(part)
                continue
            await self._say()
            await self.writer.drain()
            await asyncio.sleep(0)

    async def reply(self, stream: int, status: int = 200, body: bytes = b"{}") -> None:
        """A whole answer on any stream."""
        headers = [(":status", str(status)), ("content-length", str(len(body)))]
        self.h2.send_headers(stream, headers, end_stream=not body)
        if body:
            await self._send_body(stream, body, is_end=True)
        self.flush()

    async def gone(self) -> None:
        try:
            while True:
                await self.pull()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except h2.exceptions.ProtocolError:  # we have said farewell
            await super().gone()

    async def pull(self) -> None:
        """Take what comes next from the client."""
        if not self._begun:
            self.begin()
        data = await self.reader.read(65536)
        if not data:
            raise asyncio.IncompleteReadError(b"", None)
        for event in self.h2.receive_data(data):
            self._take(event)
        self.flush()

    @property
    def has_arrived(self) -> bool:
        """Whether `request` would not have to wait."""
        return bool(self._arrived)

    def arriving(self, stream: int) -> int:
        """How much of the body of an unfinished request is there, in bytes."""
        return len(self._arriving[stream][1]) if stream in self._arriving else 0

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())

    # --- inside ----------------------------------------------------------------------------------

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            assert event.stream_id is not None
            headers = [(str(name), str(value)) for name, value in event.headers or ()]
            self._arriving[event.stream_id] = (headers, bytearray())
        elif isinstance(event, h2.events.DataReceived):
            assert event.stream_id is not None
            self._arriving[event.stream_id][1].extend(event.data or b"")
            self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            assert event.stream_id is not None
            headers, body = self._arriving.pop(event.stream_id)
            self._arrived.append((event.stream_id, _received(headers, bytes(body))))
        elif isinstance(event, h2.events.StreamReset):
            assert event.stream_id is not None
            self.resets[event.stream_id] = int(event.error_code or 0)
            self._arriving.pop(event.stream_id, None)
        elif isinstance(event, h2.events.PingAckReceived):
            self.pings += 1

    async def _say(self) -> None:
        while self._left is None and b"\r\n\r\n" in self._answer:
            head, _, self._answer = self._answer.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            status = first.split(" ")[1]
            fields = [(":status", status)]
            fields += [
                (name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)
            ]
            if status.startswith("1"):
                self.h2.send_headers(self.stream, fields)
                continue
            fields = [field for field in fields if field[0] != "connection"]
            self._left = int(dict(fields).get("content-length", "0"))
            self.h2.send_headers(self.stream, fields, end_stream=not self._left)
        if self._left:
            body, self._answer = self._answer[: self._left], self._answer[self._left :]
            self._left -= len(body)
            await self._send_body(self.stream, body, is_end=not self._left)
        self.flush()

    async def _send_body(self, stream: int, body: bytes, *, is_end: bool) -> None:
        view = memoryview(body)
        while view:
            room = self.h2.local_flow_control_window(stream)
            size = min(room, len(view), self.h2.max_outbound_frame_size)
            if size:
                part, view = view[:size], view[size:]
                self.h2.send_data(stream, bytes(part), end_stream=is_end and not view)
            else:
                self.flush()
                await self.pull()


def _may_be_http(data: bytes) -> bool:
    return data.startswith(b"HTTP/1.") or b"HTTP/1.".startswith(data)


def _received(fields: list[tuple[str, str]], body: bytes) -> Received:
    """As if it had come in HTTP/1.1."""
    headers: dict[str, str] = {}
    for name, value in fields:
        name = "host" if name == ":authority" else name
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    method, path = headers.pop(":method"), headers.pop(":path")
    assert headers.pop(":scheme") == "https"
    return Received(method, path, headers, body)
