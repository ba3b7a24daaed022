"""Everything at once: many requests, a moody server, cancelling. Nobody gets another's answer."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from tests.certificates import Authority, server_context
from tests.client.http_server import (
    CHUNKED_HEAD,
    LAST_CHUNK,
    Peer,
    Timed,
    answer,
    chunk,
    client,
    get,
    post,
    serve,
    until,
)
from tests.client.test_http_tls import Contexts, trusting

from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport

CA = Authority()
SERVER = CA.server("127.0.0.1")
REQUESTS = 300


class RandomlyFailingServer:
    """Answers each request with its own path, or misbehaves."""

    def __init__(self, dice: random.Random) -> None:
        self.dice: random.Random = dice
        self.is_calm: bool = False
        self.seen: Counter[str] = Counter()

    async def handler(self, peer: Peer) -> None:
        while True:
            path = (await peer.request()).path
            self.seen[path] += 1
            for _ in range(self.dice.randrange(4)):
                await asyncio.sleep(0)
            if not await self._answered(peer, path.encode()):
                return

    async def _answered(self, peer: Peer, body: bytes) -> bool:
        """Whether the connection goes on."""
        mood = 13 if self.is_calm else self.dice.randrange(14)
        if mood == 0:
            peer.close()
        elif mood == 1:
            peer.reset()
        elif mood == 2:
            await peer.send(answer(body)[: -self.dice.randrange(1, 40)])
            peer.close()
        elif mood == 3:
            await peer.send(b"\x00garbage")
        elif mood == 4:
            await peer.send(answer(body, connection="close"))
            peer.close()
        elif mood == 5:
            await peer.send(answer(body))
            peer.close()
        elif mood == 6:
            await peer.send(answer(body) + answer(b"somebody else's", 408))
        elif mood == 7:
            await peer.gone()
        elif mood == 8:
            await peer.send(CHUNKED_HEAD, *(chunk(body[at : at + 1]) for at in range(len(body))))
            await peer.send(LAST_CHUNK)
            return True
        else:
            await peer.send(answer(body))
            return True
        return False


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_request_gets_its_own_answer_or_an_honest_error(seed: int, secure: bool) -> None:
    dice = random.Random(seed)
    moody = RandomlyFailingServer(dice)
    ends: Counter[str] = Counter()

    async def ask(to: HttpTransport, number: int) -> None:
        make = get if dice.random() < 0.5 else post
        path = f"/{make.__name__}/{number}"
        untouched = False  # or so we are told
        try:
            found = await to.send(make(path, timeout=dice.choice([5.0, 60.0])))
        except Unreachable as error:
            ends["failed"] += 1
            untouched = not error.sent and make is post
        except asyncio.CancelledError:
            ends["cancelled"] += 1
        else:
            ends["answered"] += 1
            assert found.body == path.encode()
            assert moody.seen[path] >= 1
        assert not (untouched and moody.seen[path])
        # A write is never repeated; a read only after a connection that was used before.
        assert moody.seen[path] <= (2 if make is get else 1)

    async def ask_all(to: HttpTransport) -> None:
        tasks = [asyncio.create_task(ask(to, number)) for number in range(REQUESTS)]
        for task in dice.sample(tasks, 40):
            for _ in range(dice.randrange(6)):
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():  # as it is when it never began
                task.result()

    async def ask_as_many_as_may(to: HttpTransport) -> None:
        await asyncio.gather(*(to.send(post(f"/after/{at}")) for at in range(8)))

    with Timed() as timed:
        context = server_context(SERVER) if secure else None
        server = timed.enter(serve(moody.handler, tls=context))
        tls = Contexts(trusting(CA)) if secure else None
        to = timed.enter(client(server.port, tls=tls, max_connections=8))
        timed.do(ask_all(to), step=0.1)
        moody.is_calm = True
        timed.do(ask_as_many_as_may(to))  # no place was lost
        timed.do(to.close())
        timed.do(until(lambda: all(is_over(peer) for peer in server.peers), pause=0))
    assert ends["answered"] > 20
    assert ends["failed"]
    assert ends["cancelled"]


def is_over(peer: Peer) -> bool:
    return peer.reader.at_eof() or peer.writer.is_closing()
