"""Receivers of a connection: the exchange of a request and its response, and the TLS handshake.

Each has a future and no task, so that a request costs no more than its bytes.
"""

from __future__ import annotations

import asyncio
import ssl

from mooring.client._connection import Connection
from mooring.client._failures import Broken, describe_error, is_certificate_error
from mooring.client._http1 import Malformed, ResponseParser, TooLong
from mooring.client._tls_layer import TlsLayer
from mooring.client.transport import MAX_ANSWER


class Exchange:
    """A request and its response: `future` is done when the response is complete."""

    __slots__ = ("_connection", "_timeout", "future", "parser")

    def __init__(
        self,
        connection: Connection,
        loop: asyncio.AbstractEventLoop,
        method: str,
        timeout: float,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        self.parser: ResponseParser = ResponseParser(method, max_answer)
        self.future: asyncio.Future[None] = loop.create_future()
        self._connection = connection
        self._timeout = timeout  # seconds; only to be named, the deadline is given to `begin`

    def begin(self, payload: bytes, deadline: float) -> asyncio.Future[None]:
        connection = self._connection
        connection.reusable = False
        connection.attach(self)
        connection.expire_at(deadline)
        connection.write(payload)
        return self.future

    def received(self, data: bytes) -> None:
        parser = self.parser
        try:
            parser.feed(data)
        except Malformed as error:
            self._connection.fail(Broken(str(error), too_long=isinstance(error, TooLong)))
            return
        if parser.done:
            self._connection.detach(reusable=parser.keep_alive and not parser.surplus)
            if not self.future.done():
                self.future.set_result(None)

    def ended(self, clean: bool) -> None:
        try:
            self.parser.eof(clean=clean)
        except Malformed as error:
            self.broken(Broken(str(error)))
            return
        if not self.future.done():
            self.future.set_result(None)

    def broken(self, why: Broken) -> None:
        if not self.future.done():
            self.future.set_exception(why)

    def expired(self) -> None:
        self._connection.fail(Broken(f"no answer within {self._timeout:g}s", expired=True))


class Handshake:
    """A TLS handshake: `future` is done when everything goes through the new layer."""

    def __init__(
        self, connection: Connection, loop: asyncio.AbstractEventLoop, layer: TlsLayer
    ) -> None:
        self.future: asyncio.Future[None] = loop.create_future()
        self._connection = connection
        self._layer = layer

    def begin(self) -> asyncio.Future[None]:
        self._connection.attach(self)
        self.received(b"")
        return self.future

    def received(self, data: bytes) -> None:
        connection, layer = self._connection, self._layer
        try:
            finished = layer.handshake(data)
        except ssl.SSLError as error:
            self._flush()  # tell the server why, before it is gone
            connection.fail(Broken(describe_error(error), untrusted=is_certificate_error(error)))
            return
        self._flush()
        if finished:
            connection.detach(reusable=True)
            connection.add_layer(layer)
            if not self.future.done():
                self.future.set_result(None)

    def ended(self, clean: bool) -> None:
        self.broken(Broken("the server closed the connection during the TLS handshake"))

    def broken(self, why: Broken) -> None:
        if not self.future.done():
            self.future.set_exception(why)

    def expired(self) -> None:
        self._connection.fail(Broken("the TLS handshake took too long", expired=True))

    def _flush(self) -> None:
        pending_output = self._layer.pending_output()
        if pending_output:
            self._connection.write(pending_output)
