"""Both ways in which requests travel, for tests of what must not depend on it."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest
from tests.client.certificates import Authority, server_context
from tests.client.http_server import Handler, Server, client, serve

from mooring.client.http import HttpTransport
from mooring.client.tls import Pem, build_context

CA = Authority()
SERVER = CA.server("localhost", "127.0.0.1")


class Trusting:
    """TLS that believes in one authority."""

    def __init__(self) -> None:
        self._context = build_context(Pem("ca", data=CA.pem))

    def context(self) -> ssl.SSLContext:
        return self._context


@dataclass(frozen=True)
class Wire:
    """A server and its client, that speak one protocol."""

    protocol: str

    def serve(self, handler: Handler) -> AbstractAsyncContextManager[Server]:
        if self.protocol == "http/1.1":
            return serve(handler)
        return serve(handler, tls=server_context(SERVER, protocols=[self.protocol]))

    def client(self, port: int, **options: Any) -> AbstractAsyncContextManager[HttpTransport]:
        tls = None if self.protocol == "http/1.1" else Trusting()
        return client(port, tls=tls, **options)


PLAIN = Wire("http/1.1")
H2 = Wire("h2")
both = pytest.mark.parametrize("wire", [PLAIN, H2], ids=lambda wire: str(wire.protocol))
