"""Who may ask, when the extender has certificates."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from tests.extender.in_process_server import Served, serve

from mooring.client.certificates import Authority, Pair
from mooring.extender import Extender
from mooring.framework import Node, Pod
from mooring.testing import pod
from mooring.ui.serving_tls import ServingTls

extender = Extender()


@extender.filter
def anywhere(pod: Pod, node: Node) -> bool:
    return True


class Files:
    """Certificates on disk, as a Secret mounts them."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder
        self.servers: Authority = Authority("servers")
        self.clients: Authority = Authority("clients")
        (folder / "clients.crt").write_bytes(self.clients.certificate)
        self.renew()

    def renew(self) -> None:
        self._write("serving", self.servers.server())

    def tls(self, **options: str) -> ServingTls:
        names = {"cert_file": "serving.crt", "key_file": "serving.key", **options}
        return ServingTls(**{key: str(self.folder / name) for key, name in names.items()})

    def context(self, client: str = "") -> ssl.SSLContext:
        """How a client sees it, with a certificate of that name or without any."""
        context = ssl.create_default_context(cadata=self.servers.certificate.decode())
        if client:
            self._write("client", self.clients.client(client))
            context.load_cert_chain(self.folder / "client.crt", self.folder / "client.key")
        return context

    def _write(self, name: str, pair: Pair) -> None:
        (self.folder / f"{name}.crt").write_bytes(pair.certificate)
        (self.folder / f"{name}.key").write_bytes(pair.key)


@pytest.mark.parametrize(
    ("client", "names", "code"),
    [
        ("", (), 401),
        ("system:kube-scheduler", (), 200),
        ("system:kube-scheduler", ("system:kube-scheduler",), 200),
        ("system:node:a", ("system:kube-scheduler",), 403),
    ],
)
async def test_asks_for_a_client_certificate_except_for_health(
    tmp_path: Path, client: str, names: tuple[str, ...], code: int
) -> None:
    files = Files(tmp_path)
    async with serve(
        extender,
        tls=files.tls(client_ca_file="clients.crt"),
        context=files.context(client),
        certified=True,
        client_names=names,
    ) as served:
        for path in ("/filter", "/metrics"):
            reply = await (
                served.post(path, {"Pod": {}, "NodeNames": []})
                if path == "/filter"
                else served.request("GET", path)
            )
            assert reply.status == code
            served.close()  # who is refused is not kept
        assert (await served.request("GET", "/healthz")).status == 200
        assert (await served.request("GET", "/readyz")).status == 200


async def test_does_not_believe_a_certificate_of_somebody_else(tmp_path: Path) -> None:
    files = Files(tmp_path)
    tls = files.tls(client_ca_file="clients.crt")
    files.clients = Authority("strangers")
    async with serve(extender, tls=tls, context=files.context("me"), certified=True) as served:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await served.filter(pod("web"), ["a"])


async def test_serves_a_renewed_certificate_to_the_next_connection(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with serve(extender, tls=files.tls(), context=files.context()) as served:
        before = await asyncio.to_thread(shown, served)
        assert await asyncio.to_thread(shown, served) == before
        files.renew()
        assert await asyncio.to_thread(shown, served) != before
        assert (await served.filter(pod("web"), ["a"]))["NodeNames"] == ["a"]


def shown(served: Served) -> bytes | None:
    """The certificate that a new connection gets."""
    connection = served.connection()
    try:
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        return connection.sock.getpeercert(binary_form=True)
    finally:
        connection.close()
