"""Credentials: on every request, looked at again after a 401, and then tried once more."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.http_server import Peer, answer, client, get, post, serve, until

from mooring.client.endpoint import Headers
from mooring.client.errors import Unreachable


class Token:
    """A bearer token; renewing takes the next one, if there is one."""

    def __init__(self, *tokens: str, slow: bool = False) -> None:
        self.tokens: list[str] = list(tokens)
        self.renewals: int = 0
        self._slow = slow

    async def headers(self) -> Headers:
        return (("authorization", f"Bearer {self.tokens[0]}"),)

    async def renew(self) -> bool:
        self.renewals += 1
        if self._slow:
            await asyncio.sleep(0.001)
        if len(self.tokens) > 1:
            del self.tokens[0]
            return True
        return False


async def only_good(peer: Peer) -> None:
    """401 for everybody but who says "good"."""
    while True:
        request = await peer.request()
        known = request.headers.get("authorization") == "Bearer good"
        await peer.send(answer(b"welcome") if known else answer(b"who?", 401))


async def test_shows_its_credentials_and_follows_their_change() -> None:
    token = Token("good", "better")
    async with serve(only_good) as server, client(server.port, credentials=token) as to:
        await to.send(get())
        await to.send(post())
        await token.renew()
        await to.send(post())
        shown = [request.headers["authorization"] for request in server.requests]
        assert shown[:3] == ["Bearer good", "Bearer good", "Bearer better"]


async def test_sends_a_name_as_often_as_it_comes() -> None:
    class Impersonated(Token):
        async def headers(self) -> Headers:
            return (("impersonate-group", "a"), ("impersonate-group", "b"))

    async with (
        serve(only_good) as server,
        client(server.port, credentials=Impersonated()) as to,
    ):
        await to.send(get())
        assert server.requests[0].headers["impersonate-group"] == "a, b"


@pytest.mark.parametrize("bad", ["x\r\nX-Admin: yes", "x\n", "x\0", "☃"])
async def test_refuses_credentials_that_would_end_a_line_early(bad: str) -> None:
    async with serve(only_good) as server, client(server.port, credentials=Token(bad)) as to:
        with pytest.raises(ValueError, match="authorization") as found:
            await to.send(get())
        assert "X-Admin" not in str(found.value)  # a secret is not shown


async def test_renews_after_a_401_and_sends_again() -> None:
    token = Token("old", "good")
    asked: list[str] = []
    async with serve(only_good) as server, client(server.port, credentials=token) as to:
        found = await to.send(post(), lambda: asked.append("fence"))
        assert (found.status, found.body) == (200, b"welcome")
        assert token.renewals == 1
        assert asked == ["fence", "fence"]
        assert [len(peer.requests) for peer in server.peers] == [2]  # nothing wrong with it


async def test_renews_only_once_and_only_if_there_is_something_new() -> None:
    for tokens, tries in ((("old", "older", "good"), 2), (("old",), 1)):
        token = Token(*tokens)
        async with serve(only_good) as server, client(server.port, credentials=token) as to:
            assert (await to.send(post())).status == 401
            assert token.renewals == 1
            assert len(server.requests) == tries


async def test_renews_once_for_many_that_are_refused_together() -> None:
    token = Token("old", "good", "never", slow=True)
    async with serve(only_good) as server, client(server.port, credentials=token) as to:
        found = await asyncio.gather(*(to.send(post()) for _ in range(20)))
        assert {one.status for one in found} == {200}
        assert token.renewals == 1


async def test_a_401_without_credentials_is_an_answer() -> None:
    async with serve(only_good) as server, client(server.port) as to:
        assert (await to.send(post())).status == 401
        async with to.stream(get()) as stream:
            assert stream.status == 401


async def test_renews_for_a_stream_too() -> None:
    token = Token("old", "good")
    async with serve(only_good) as server, client(server.port, credentials=token) as to:
        async with to.stream(get()) as stream:
            assert stream.status == 200
            assert await stream.read() == b"welcome"
        assert token.renewals == 1
        await until(lambda: all(peer.reader.at_eof() for peer in server.peers))


async def test_gives_the_401_back_when_renewing_takes_too_long() -> None:
    class Stuck(Token):
        async def renew(self) -> bool:
            await asyncio.get_running_loop().create_future()
            raise AssertionError("nothing comes of it")

    async with serve(only_good) as server, client(server.port, credentials=Stuck("old")) as to:
        assert (await to.send(post(timeout=0.05))).status == 401


async def test_passes_on_that_credentials_cannot_be_had() -> None:
    class Failing(Token):
        async def headers(self) -> Headers:
            raise Unreachable("the plugin failed", sent=False)

    async with serve(only_good) as server, client(server.port, credentials=Failing()) as to:
        with pytest.raises(Unreachable, match="the plugin failed"):
            await to.send(post())
        assert not server.peers
