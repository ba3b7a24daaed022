"""The page of a running scheduler for tests: an embedded cluster on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.lens.sight import WHOLE, Sight
from mooring.lens.worker import LensWorker
from mooring.ui.access import Denial
from mooring.ui.lens import LensPages
from mooring.ui.page_server import PageServer, served


class _SeenBy:
    """The pages for a reader with some rights."""

    def __init__(self, pages: LensPages, sight: Sight) -> None:
        self._pages = pages
        self._sight = sight

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        return await self._pages.respond(request, self._sight)


class LiveSite:
    """An embedded cluster with a scheduler and its page, on a thread of its own."""

    def __init__(
        self, folder: Path, machines: Sequence[Any], sights: Sequence[Sight] = (WHOLE,)
    ) -> None:
        self._folder = folder
        self._machines = machines
        self._sights = sights
        self._servers: dict[Sight, PageServer] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        self._thread.start()
        assert self._ready.wait(60)

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        async with EmbeddedCluster() as cluster:
            self._cluster = cluster
            cluster.apply(*self._machines)
            worker = LensWorker("mooring.cli.lens_worker")
            running = await run_scheduler(
                cluster, record_size=10_000, worker=worker, journal=self._folder
            )
            pages = LensPages(running.lens)
            async with AsyncExitStack() as stack:
                for sight in self._sights:
                    backend = _SeenBy(pages, sight)
                    self._servers[sight] = await stack.enter_async_context(served(backend))
                self._ready.set()
                await self._stop.wait()
            await running.stop()

    def address(self, sight: Sight = WHOLE) -> str:
        return self._servers[sight].new_address()

    def apply(self, *objects: Any) -> None:
        """Create or change objects, as `EmbeddedCluster.apply` does."""

        async def called() -> None:
            self._cluster.apply(*objects)

        asyncio.run_coroutine_threadsafe(called(), self._loop).result(30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()
