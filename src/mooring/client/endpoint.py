"""The address of an API server with credentials and TLS: what a transport is built from.

Made by `kubeconfig` and `incluster`, used by `http.HttpTransport`. Tokens and certificates rotate
while the process runs, so credentials are asked for every request and TLS for every connection;
credentials first, because an exec plugin may hand out the client certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec

Headers = tuple[tuple[str, str], ...]
"""Names and values; a name may come more than once (groups to impersonate)."""


class Credentials(Protocol):
    """Authentication by headers."""

    async def headers(self) -> Headers:
        """What to add to a request; cheap, asked for every one. Raises `Unreachable`."""
        ...

    async def renew(self) -> bool:
        """Look again, after a 401 or a TLS failure; whether something may have changed.

        True also when it changed a moment ago: the request that failed may be older than that.
        """
        ...


class Tls(Protocol):
    """How to speak TLS to the server."""

    def context(self) -> ssl.SSLContext:
        """The context for the next connection; another object once the files have changed.

        Cheap: files are looked at once a second or so. A connection made with an earlier object
        has the identity of that time.
        """
        ...


class Endpoint(msgspec.Struct, frozen=True):
    """One API server."""

    host: str  # a name or an address; IPv6 without brackets
    port: int
    prefix: str = ""  # of every path, without a slash at the end: "/k8s/clusters/c-1"
    tls: Tls | None = None  # None: plain HTTP
    server_name: str = ""  # what the certificate must say instead of the host
    proxy: str = ""  # URL of the proxy to go through; may hold a password
    credentials: Credentials | None = None

    @property
    def url(self) -> str:
        """Its address, for messages."""
        scheme = "http" if self.tls is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{self.prefix}"

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Endpoint({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # Both ways of printing, because msgspec writes both and would show the password.
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return list({**fields, "proxy": self.proxy.rpartition("@")[2]}.items())


class Address(msgspec.Struct, frozen=True):
    """What the URL of a server says."""

    secure: bool
    host: str
    port: int
    prefix: str


_PORTS: Final[Mapping[str, int]] = {"https": 443, "http": 80}
_EXPECTED: Final = "expected a URL such as https://10.0.0.1:6443"


def parse_server(url: str) -> Address:
    """Take the URL of an API server apart; ValueError says what was expected.

    The text of the error does not repeat the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{_EXPECTED}: {error}") from error
    if parts.scheme not in _PORTS or not parts.netloc:
        # "example.com:6443" parses as the scheme "example.com", so both mistakes look alike.
        raise ValueError(f"{_EXPECTED}, found no http:// or https:// in front of a host")
    if not parts.hostname:
        raise ValueError(f"{_EXPECTED}, found no host")
    if "@" in parts.netloc:
        raise ValueError(f"{_EXPECTED}, found a user name in it: credentials belong to a user")
    if port == 0:
        raise ValueError(f"{_EXPECTED}, found port 0")
    return Address(
        secure=parts.scheme == "https",
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        prefix=parts.path.rstrip("/"),
    )
