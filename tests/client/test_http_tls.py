"""TLS: who is believed, what happens on rotation, and a shape of failure that names its cause."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from tests.certificates import Authority, Pair, server_context
from tests.client.http_server import (
    Handler,
    Peer,
    always,
    answer,
    client,
    get,
    picky,
    post,
    serve,
    until,
)
from tests.event_loop import run

from mooring.client.endpoint import Headers
from mooring.client.errors import Unreachable
from mooring.client.tls import Identity, Pem, build_context

CA = Authority()
OTHER_CA = Authority("other-ca")
SERVER = CA.server("localhost", "127.0.0.1")
ALICE = CA.client("alice")
MALLORY = OTHER_CA.client("mallory")


def trusting(authority: Authority, identity: Pair | None = None) -> ssl.SSLContext:
    shown = None
    if identity is not None:
        shown = Identity(
            Pem("certificate", data=identity.certificate), Pem("key", data=identity.key)
        )
    return build_context(Pem("ca", data=authority.pem), shown)


class Contexts:
    """TLS that changes when it is told to; renewing takes the next context."""

    def __init__(self, *contexts: ssl.SSLContext) -> None:
        self._left = list(contexts)
        self.renewals: int = 0

    def context(self) -> ssl.SSLContext:
        return self._left[0]

    async def headers(self) -> Headers:
        return ()

    async def renew(self) -> bool:
        self.renewals += 1
        return self.rotate()

    def rotate(self) -> bool:
        if len(self._left) > 1:
            del self._left[0]
            return True
        return False


async def test_carries_requests_over_tls_and_uses_connections_again() -> None:
    large = bytes(range(256)) * 20_000  # bytes, 5 MB: many records, more than buffers hold

    async def handler(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(answer(request.body))

    tls = Contexts(trusting(CA))
    async with (
        serve(handler, tls=server_context(SERVER)) as server,
        client(server.port, tls=tls) as to,
    ):
        assert (await to.send(post(body=b"small"))).body == b"small"
        assert (await to.send(post(body=large))).body == large
        found = await asyncio.gather(*(to.send(post(body=b"%d" % n)) for n in range(100)))
        assert [one.body for one in found] == [b"%d" % n for n in range(100)]
        assert len(server.peers) == 32


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_speaks_both_versions_that_are_in_use(version: ssl.TLSVersion) -> None:
    context = server_context(SERVER)
    context.minimum_version = context.maximum_version = version
    async with (
        serve(always(answer()), tls=context) as server,
        client(server.port, tls=Contexts(trusting(CA))) as to,
    ):
        for _ in range(3):
            assert (await to.send(post())).status == 200
        assert len(server.peers) == 1


async def test_refuses_a_server_it_cannot_verify() -> None:
    tls = Contexts(trusting(OTHER_CA))
    async with (
        serve(always(answer()), tls=server_context(SERVER)) as server,
        client(server.port, tls=tls, credentials=tls) as to,
    ):
        with pytest.raises(Unreachable, match="certificate verify failed: ") as found:
            await to.send(post())
        assert not found.value.sent
        assert tls.renewals == 1
        assert not server.requests


@pytest.mark.parametrize(
    ("host", "server_name", "said"),
    [
        ("127.0.0.1", "", ""),
        ("localhost", "", ""),
        ("127.0.0.1", "localhost", ""),
        ("127.0.0.1", "elsewhere", "certificate is not valid for 'elsewhere'"),
    ],
)
def test_verifies_the_name_of_the_server(host: str, server_name: str, said: str) -> None:
    async def scenario() -> None:
        tls = Contexts(trusting(CA))
        async with (
            serve(always(answer()), tls=server_context(SERVER)) as server,
            client(server.port, host=host, server_name=server_name, tls=tls) as to,
        ):
            if not said:
                assert (await to.send(get())).status == 200
                return
            with pytest.raises(Unreachable, match=said):
                await to.send(get())

    run(scenario())


@pytest.mark.parametrize("streaming", [False, True])
async def test_tries_again_with_a_renewed_context(streaming: bool) -> None:
    tls = Contexts(trusting(OTHER_CA), trusting(CA))
    async with (
        serve(always(answer()), tls=server_context(SERVER)) as server,
        client(server.port, tls=tls, credentials=tls) as to,
    ):
        if streaming:
            async with to.stream(get()) as stream:
                assert await stream.read() == b"{}"
        else:
            assert (await to.send(post())).status == 200
        assert tls.renewals == 1
        assert len(server.requests) == 1


async def test_takes_a_context_that_has_changed_by_itself() -> None:
    tls = Contexts(trusting(OTHER_CA), trusting(CA))

    class ChangesLate:
        asked = 0

        def context(self) -> ssl.SSLContext:
            self.asked += 1
            if self.asked == 3:  # after the first try has begun
                tls.rotate()
            return tls.context()

    async with (
        serve(always(answer()), tls=server_context(SERVER)) as server,
        client(server.port, tls=ChangesLate()) as to,
    ):
        assert (await to.send(post())).status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_shows_another_certificate_when_the_server_refuses_the_first(
    version: ssl.TLSVersion,
) -> None:
    # With TLS 1.3 we learn of it only after the request was written.
    tls = Contexts(trusting(CA, MALLORY), trusting(CA, ALICE))
    context = server_context(SERVER, clients=CA)
    context.maximum_version = version
    async with (
        serve(picky(context, answer())) as server,
        client(server.port, tls=tls, credentials=tls) as to,
    ):
        assert (await to.send(post())).status == 200
        assert tls.renewals == 1
        assert len(server.peers) == 2


async def test_knows_that_a_refused_certificate_means_nothing_was_done() -> None:
    tls = Contexts(trusting(CA, MALLORY))
    async with (
        serve(picky(server_context(SERVER, clients=CA), answer())) as server,
        client(server.port, tls=tls) as to,
    ):
        with pytest.raises(Unreachable, match=r"TLS failed: .*unknown ca") as found:
            await to.send(post())
        assert not found.value.sent


async def test_opens_new_connections_after_certificates_have_changed() -> None:
    tls = Contexts(trusting(CA), trusting(CA))
    async with (
        serve(always(answer()), tls=server_context(SERVER)) as server,
        client(server.port, tls=tls) as to,
    ):
        await asyncio.gather(to.send(get()), to.send(get()))
        assert len(server.peers) == 2
        tls.rotate()
        await to.send(post())
        await until(lambda: all(peer.reader.at_eof() for peer in server.peers[:2]))
        await to.send(post())
        assert [len(peer.requests) for peer in server.peers] == [1, 1, 2]


async def test_closes_a_connection_that_was_in_use_when_certificates_changed() -> None:
    tls = Contexts(trusting(CA), trusting(CA))
    free = asyncio.Event()

    async def handler(peer: Peer) -> None:
        while True:
            if (await peer.request()).path == "/slow":
                await free.wait()
            await peer.send(answer())

    async with (
        serve(handler, tls=server_context(SERVER)) as server,
        client(server.port, tls=tls) as to,
    ):
        slow = asyncio.create_task(to.send(get("/slow")))
        await until(lambda: bool(server.requests))
        tls.rotate()
        await to.send(get("/quick"))
        free.set()
        assert (await slow).status == 200
        await until(lambda: server.peers[0].reader.at_eof())
        assert not server.peers[1].reader.at_eof()


async def assert_unsent(handler: Handler, words: str) -> None:
    async with (
        serve(handler) as server,
        client(server.port, tls=Contexts(trusting(CA))) as to,
    ):
        with pytest.raises(Unreachable, match=words) as found:
            await to.send(post())
        assert not found.value.sent


async def test_names_a_server_that_does_not_speak_tls() -> None:
    async def handler(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.gone()

    await assert_unsent(handler, "TLS failed: wrong version number")


async def test_names_a_server_that_hangs_up_during_the_handshake() -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1000)
        peer.close()

    await assert_unsent(handler, "during the TLS handshake")


async def test_gives_up_on_a_handshake_that_takes_too_long() -> None:
    async def handler(peer: Peer) -> None:
        await peer.gone()

    async with (
        serve(handler) as server,
        client(server.port, tls=Contexts(trusting(CA)), connect_timeout=0.05) as to,
    ):
        with pytest.raises(Unreachable, match=r"no connection within 0\.05s") as found:
            await to.send(post())
        assert not found.value.sent
        await until(lambda: server.peers[0].reader.at_eof())


async def test_says_when_certificates_cannot_be_read() -> None:
    class Unreadable:
        def context(self) -> ssl.SSLContext:
            raise PermissionError(13, "Permission denied", "ca.crt")

    async with client(1, tls=Unreadable()) as to:
        with pytest.raises(Unreachable, match="permission denied") as found:
            await to.send(post())
        assert not found.value.sent


async def test_says_goodbye_properly() -> None:
    """Without it, a server could not tell the end of a connection from an attack on it."""
    ends: list[bytes] = []

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        ends.append(await peer.reader.read())

    async with serve(handler, tls=server_context(SERVER)) as server:
        async with client(server.port, tls=Contexts(trusting(CA))) as to:
            await to.send(get())
        await until(lambda: bool(ends))
    assert ends == [b""]
