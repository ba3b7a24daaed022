"""A served page for tests: the server of `mooring ui` in this process, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from tests.browser.cdp import Page

from mooring.lens.explainer import Explainer
from mooring.lens.offline import OfflineLens
from mooring.lens.snapshot import Snapshot
from mooring.simulator.questions import Imagination
from mooring.ui.file_lens import FileLens
from mooring.ui.page_server import Backend, PageServer

COMPLETE = (
    "document.querySelector('main h1') && !document.querySelector('.working') &&"
    " [...document.querySelectorAll('lens-map')].every((map) => !map.offsetParent || map.places)"
)
"""In the page: everything is loaded, and maps are drawn."""


CONTROLS = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "listbox",
    "option",
    "checkbox",
    "spinbutton",
    "grid",
    "table",
    "columnheader",
    "img",
    "image",
    "dialog",
    "group",
    "toolbar",
    "navigation",
    "DisclosureTriangle",
}
"""Roles of what is operated, or is not text."""


def nameless_controls(page: Page) -> list[dict[str, str]]:
    """What has no name in the accessibility tree, and needs one."""
    return [one for one in page.tree() if one["role"] in CONTROLS and not one["name"].strip()]


class ServedPage:
    """A running server; `address()` opens the page once."""

    def __init__(self, server: PageServer, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.port = port
        self._loop = loop

    def address(self) -> str:
        return self.server.new_address()

    def call(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run something on the loop of the server."""

        async def wrapped() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(wrapped(), self._loop).result(30)


@contextmanager
def served(backend: Backend) -> Iterator[ServedPage]:
    """The page with answers of `backend`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = PageServer(backend)
    try:
        port = asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
        yield ServedPage(server, port, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def served_snapshot(snapshot: Snapshot) -> Iterator[ServedPage]:
    """As `mooring ui FILE`."""
    backend = FileLens(offline(snapshot), Imagination(snapshot, "test.snap"))
    try:
        with served(backend) as page:
            page.call(backend.warm_up)
            yield page
    finally:
        backend.close()


def offline(snapshot: Snapshot, source: Literal["cluster", "file"] = "file") -> OfflineLens:
    return OfflineLens(snapshot, Explainer(snapshot), source=source)
