"""The same as `test_informers.py` over HTTPS, on wires that are cut in the middle of anything.

MOORING_FUZZ_WRITES says how many random writes there are (20,000 take some 15 s), and
MOORING_FUZZ_SEED is the seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from tests.cluster.apiserver.in_process_server import InProcessServer
from tests.cluster.apiserver.informer_mirrors import InformerMirror, RandomWrites, random_mirror

from mooring.client.endpoint import Endpoint
from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.cluster.apiserver.http import HttpServer
from mooring.cluster.apiserver.transport import LocalTransport

WRITES = int(os.environ.get("MOORING_FUZZ_WRITES", "2500"))
SEED = int(os.environ.get("MOORING_FUZZ_SEED", "11"))
CLIENTS = 20
OVER_SOCKETS = 12  # of the clients; the others are in the same process
PATIENCE = 120.0  # seconds until all informers are up to date


class Wire:
    """Passes bytes between clients and a server, and may cut the connections that there are."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts: int = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side or the wire ends it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        ends = {writer, far_writer}
        self._writers |= ends
        try:
            there = asyncio.create_task(_pass_on(reader, far_writer))
            back = asyncio.create_task(_pass_on(far_reader, writer))
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            there.cancel()
            back.cancel()
            await asyncio.wait({there, back})
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()
            self._tasks.discard(task)

    def cut(self, rng: random.Random) -> None:
        """Some of the connections, without a goodbye."""
        for writer in list(self._writers):
            if rng.random() < 0.1:
                writer.transport.abort()
                self.cuts += 1

    async def close(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(set(self._tasks))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def bad_wire(to: Endpoint) -> AsyncIterator[tuple[Wire, Endpoint]]:
    """A wire to a server, and the server's endpoint as it is seen through it."""
    wire = Wire(to.port)
    listener = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    try:
        port = listener.sockets[0].getsockname()[1]
        yield wire, msgspec.structs.replace(to, port=port)
    finally:
        listener.close()
        await wire.close()
        await listener.wait_closed()


def test_twenty_clients_with_selectors_end_up_with_what_there_is(tmp_path: Path) -> None:
    asyncio.run(_follow(tmp_path))


async def _follow(folder: Path) -> None:
    server, rng = InProcessServer(), random.Random(SEED)
    writes = RandomWrites(server)
    writes.make_namespaces()
    async with AsyncExitStack() as stack:
        http = HttpServer(server.server)
        await http.start()
        stack.push_async_callback(http.close)
        http.kubeconfig(folder / "kubeconfig")
        endpoint = load_kubeconfig(str(folder / "kubeconfig"))
        wire, endpoint = await stack.enter_async_context(bad_wire(endpoint))
        mirrors = []
        for number in range(CLIENTS):
            over_socket = number < OVER_SOCKETS
            transport = (
                HttpTransport(endpoint, user_agent="test")
                if over_socket
                else LocalTransport(server.server)
            )
            stack.push_async_callback(transport.close)
            mirrors.append(random_mirror(server, transport, rng))
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(mirror.informer.run()) for mirror in mirrors]
            await _write(writes, wire, rng)
            await _until_all_know(mirrors)
            for task in running:
                task.cancel()
        for mirror in mirrors:
            mirror.assert_true()
        assert wire.cuts > 0


async def _write(writes: RandomWrites, wire: Wire, rng: random.Random) -> None:
    """Everything, in bursts of all sizes, with cuts and compactions in between."""
    store = writes.server.store
    end = store.version + WRITES
    while store.version < end:
        writes.anything(rng)  # may find nothing to do
        if rng.random() < 0.005:
            wire.cut(rng)
        if rng.random() < 0.001:
            store.compact()
        if rng.random() < 0.2:
            await asyncio.sleep(rng.choice([0, 0, 0.001, 0.005]))


async def _until_all_know(mirrors: list[InformerMirror]) -> None:
    async with asyncio.timeout(PATIENCE):
        waiting = list(mirrors)
        while waiting:
            await asyncio.sleep(0.02)
            waiting = [each for each in waiting if each.informer.problem or not each.is_true()]
