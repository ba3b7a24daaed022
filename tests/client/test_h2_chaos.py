"""HTTP/2 with everything at once: a moody server, then one that speaks nonsense, and cancelling.

Every request ends, with its own answer or an honest error; nothing is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest
from h2.exceptions import ProtocolError
from tests.client.h2_server import H2Peer
from tests.client.http_server import Peer, Timed, get, post, until
from tests.client.test_h2_trouble import raw, spoken
from tests.client.test_http_chaos import is_over
from tests.client.wires import H2

from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport

REQUESTS = 300
REFUSED_STREAM = 7


class Moody:
    """Answers requests with their own path, in any order, or keeps to the rules in other ways."""

    def __init__(self, dice: random.Random) -> None:
        self.dice: random.Random = dice
        self.is_calm: bool = False
        self.done: Counter[str] = Counter()  # and not refused
        self.ignored: list[int] = []  # done, and never answered

    async def handler(self, peer: Peer) -> None:
        with contextlib.suppress(ProtocolError):  # a client that has left is not to be answered
            await self._attend(spoken(peer))

    async def _attend(self, here: H2Peer) -> None:
        here.begin({3: self.dice.choice([1, 10, 1000])})
        held: dict[int, str] = {}
        while True:
            if not held or here.has_arrived:
                path = (await here.request()).path
                held[here.stream] = path
                if self.dice.random() < 0.7:
                    continue
            stream = self.dice.choice(list(held))
            path = held.pop(stream)
            if stream not in here.resets and not await self._answered(here, stream, path, held):
                return

    async def _answered(self, peer: H2Peer, stream: int, path: str, held: dict[int, str]) -> bool:
        """Whether the connection goes on."""
        mood = 99 if self.is_calm else self.dice.randrange(150)
        if mood == 0:
            self.done.update([path, *held.values()])
            peer.close()
            return False
        if mood == 1:
            self.done.update([path, *held.values()])
            peer.reset()
            return False
        if mood == 2:
            late = sorted([stream, *held])
            done = max(self.ignored, default=0)
            last = self.dice.choice([done, *(at for at in late if at > done)])
            self.done.update(held.get(at, path) for at in late if at <= last)
            peer.h2.close_connection(last_stream_id=last)
            peer.flush()
            await Peer.gone(peer)
            return False
        if mood == 3:
            self.done[path] += 1
            self.ignored.append(stream)
        elif mood < 20:
            peer.h2.reset_stream(stream, REFUSED_STREAM)
        elif mood < 25:
            self.done[path] += 1
            peer.h2.reset_stream(stream, 2)
        else:
            self.done[path] += 1
            await peer.reply(stream, body=path.encode())
        peer.flush()
        return True


@pytest.mark.parametrize("seed", range(6))
def test_every_request_gets_its_own_answer_or_an_honest_error(seed: int) -> None:
    dice = random.Random(seed)
    moody = Moody(dice)
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
        assert not (untouched and moody.done[path])
        # A write is never done twice; a read only after a connection that was used before.
        assert moody.done[path] <= (2 if make is get else 1)

    with Timed() as timed:
        server = timed.enter(H2.serve(moody.handler))
        to = timed.enter(H2.client(server.port))
        timed.do(all_of([ask(to, number) for number in range(REQUESTS)], dice), step=0.1)
        moody.is_calm = True
        timed.do(settled(to), step=0.1)
        timed.do(to.close())
        timed.do(until(lambda: all(is_over(peer) for peer in server.peers), pause=0))
    assert ends["answered"] > 20
    assert ends["failed"]
    assert ends["cancelled"]


class Mad:
    """Answers now and then, and speaks nonsense in between."""

    def __init__(self, dice: random.Random) -> None:
        self.dice: random.Random = dice
        self.is_calm: bool = False

    async def handler(self, peer: Peer) -> None:
        with contextlib.suppress(ProtocolError):
            await self._attend(spoken(peer))

    async def _attend(self, here: H2Peer) -> None:
        if self.dice.random() < 0.1 and not self.is_calm:
            here.writer.write(self.dice.randbytes(200))
        while True:
            await here.request()
            if self.is_calm or self.dice.random() < 0.5:
                await here.reply(here.stream)
                continue
            for _ in range(self.dice.randrange(5)):
                here.writer.write(self._nonsense(here.stream))
            mood = self.dice.randrange(8)
            if mood == 0:
                here.close()
            elif mood == 1:
                here.reset()
            elif mood == 2:
                await Peer.gone(here)
            if mood < 3:
                return

    def _nonsense(self, stream: int) -> bytes:
        dice = self.dice
        size = dice.choice([0, 1, 4, 5, 6, 8, 9, 100, 20_000])
        payload = dice.choice([dice.randbytes(size), bytes(size), b"\x88" * size])
        kind = dice.choice([*range(11), dice.randrange(256)])
        number = dice.choice([0, 1, stream, stream, stream + 1, stream + 2, dice.getrandbits(32)])
        data = raw(kind, dice.choice([0, 1, 4, 5, 8, 0x20, dice.randrange(256)]), number, payload)
        return data[: dice.randrange(len(data))] if dice.random() < 0.1 else data


@pytest.mark.parametrize("seed", range(20))
def test_survives_nonsense(seed: int) -> None:
    dice = random.Random(seed)
    mad = Mad(dice)

    async def ask(to: HttpTransport) -> None:
        timeout = dice.choice([5.0, 60.0])
        request = get(timeout=timeout) if dice.random() < 0.5 else post(timeout=timeout)
        try:
            await to.send(request)
        except (Unreachable, asyncio.CancelledError):
            return

    with Timed() as timed:
        server = timed.enter(H2.serve(mad.handler))
        to = timed.enter(H2.client(server.port))
        timed.do(all_of([ask(to) for _ in range(60)], dice), step=0.1)
        mad.is_calm = True
        timed.do(settled(to), step=0.1)
        timed.do(to.close())
        timed.do(until(lambda: all(is_over(peer) for peer in server.peers), pause=0))


async def all_of(work: list[Coroutine[Any, Any, None]], dice: random.Random) -> None:
    """Until all are done; some of them are cancelled on the way."""
    tasks = []
    for one in work:
        tasks.append(asyncio.create_task(one))
        for _ in range(dice.randrange(3)):
            await asyncio.sleep(0)
        if dice.random() < 0.15:
            dice.choice(tasks[-5:]).cancel()
        if dice.random() < 0.05:
            await asyncio.sleep(dice.random())
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():  # as it is when it never began
            task.result()


async def settled(to: HttpTransport) -> None:
    """Nothing was lost: once the last bad connection is gone, all is well."""
    while True:
        try:
            await asyncio.gather(*(to.send(post(f"/after/{at}", timeout=5)) for at in range(200)))
        except Unreachable:
            continue
        return
