"""A running scheduler in a real browser: what it decides is seen as it happens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.browser.cdp import Chromium, Page
from tests.browser.serving import COMPLETE

from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.lens.sight import WHOLE, Sight
from mooring.lens.worker import LensWorker
from mooring.testing import node, pod
from mooring.ui.access import Denial
from mooring.ui.lens import LensPages
from mooring.ui.page_server import PageServer, served

NODES = 24


OF_ONE_NAMESPACE = Sight(nodes=False, pods=False, namespace="default")
OF_NODES = Sight(pods=False)


class _SeenBy:
    """The pages for a reader with some rights."""

    def __init__(self, pages: LensPages, sight: Sight) -> None:
        self._pages = pages
        self._sight = sight

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        return await self._pages.respond(request, self._sight)


class LiveSite:
    """An embedded cluster with a scheduler and its page, on a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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
            machines = [node(f"n{i:02d}", cpu=8, zone="abc"[i % 3]).api for i in range(NODES)]
            cluster.apply(*machines)
            worker = LensWorker("mooring.cli.lens_worker")
            running = await run_scheduler(
                cluster, record_size=100, worker=worker, journal=self._folder
            )
            pages = LensPages(running.lens)
            async with AsyncExitStack() as stack:
                for sight in (WHOLE, OF_ONE_NAMESPACE, OF_NODES):
                    backend = _SeenBy(pages, sight)
                    self._servers[sight] = await stack.enter_async_context(served(backend))
                self._ready.set()
                await self._stop.wait()
            await running.stop()

    def address(self, sight: Sight = WHOLE) -> str:
        return self._servers[sight].new_address()

    def create(self, name: str, cpu: str) -> None:
        self._call(lambda: self._cluster.apply(pod(name, namespace="default", cpu=cpu).api))

    def add_node(self, name: str, cpu: str, **options: Any) -> None:
        self._call(lambda: self._cluster.apply(node(name, cpu=cpu, **options).api))

    def _call(self, work: Callable[[], object]) -> None:
        async def called() -> None:
            work()

        asyncio.run_coroutine_threadsafe(called(), self._loop).result(30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    running = LiveSite(tmp_path_factory.mktemp("journal"))
    yield running
    running.close()


def go(page: Page, path: str) -> None:
    """Go to another page of the site, and wait until it is shown."""
    page.evaluate("document.querySelector('main').firstElementChild.dataset.before = ''")
    page.evaluate(f"location.hash = '#/{path}'")
    page.wait_for(f"!document.querySelector('[data-before]') && {COMPLETE}")


def test_what_a_scheduler_decides_is_seen_as_it_happens(browser: Chromium, site: LiveSite) -> None:
    page = browser.page()
    page.goto(site.address())
    page.wait_for("document.querySelector('.status.live')")
    go(page, "nodes")
    empty = page.evaluate("document.querySelector('#node-map').model.colors[0]")
    full = "document.querySelector('#node-map').model.colors"
    assert page.evaluate(f"{full}.every((one) => one === {empty})")

    for number in range(3):
        site.create(f"web-{number}", "8")
    page.wait_for(f"{full}.filter((one) => one !== {empty}).length === 3")
    filled = page.evaluate(f"{full}.findIndex((one) => one !== {empty})")
    pixel = f"""((map) => {{
      const place = map.places[{filled}];
      const corner = map.pitch - 4;  // the first pods of a large cell are dots at its top
      const [x, y] = [map.xs[place] + corner, map.ys[place] + corner];
      return new Uint32Array(map.context.getImageData(x, y, 1, 1).data.buffer)[0];
    }})(document.querySelector('#node-map'))"""
    assert page.evaluate(pixel) == page.evaluate(f"{full}[{filled}]")

    site.create("giant", "64")
    go(page, "timeline")
    page.wait_for("document.querySelectorAll('.grid-space .grid-row').length === 4")
    shown = page.text("main")
    assert shown.count("scheduled") >= 3
    assert "unschedulable" in shown

    go(page, "queue")
    page.wait_for("document.querySelector('.grid-space').innerText.includes('default/giant')")
    page.evaluate("document.querySelector('.grid-body').focus()")
    page.press("Enter")
    page.wait_for("document.querySelector('h1').innerText === 'default/giant'")
    page.wait_for("document.querySelector('main').innerText.includes('1 attempt')")
    assert "NodeResourcesFit" in page.text("main")

    go(page, "overview")
    page.wait_for("document.querySelector('canvas.chart')")
    assert "Decisions" in page.text(".tiles")

    # An attempt that was made before there was a node large enough, and the pod as it is now.
    site.add_node("large", "64")
    page.wait_for("document.querySelector('.tiles').innerText.includes('25')")
    go(page, "timeline")
    page.wait_for("document.querySelectorAll('.grid-space .grid-row').length === 5")
    assert "as it was at the attempt" in page.text("main")
    page.wait_for("document.querySelector('main').innerText.includes('added')")
    site.add_node("n00", "8", unschedulable=True)
    page.wait_for("document.querySelector('main').innerText.includes('cordoned')")
    go(page, "pods/default/giant?at=4")
    page.wait_for("document.querySelector('main').innerText.includes('no node of 24')")
    assert "decided again from the journal" in page.text("main")
    page.evaluate(
        "[...document.querySelectorAll('a')].find((a) => a.innerText === 'As it is now').click()"
    )
    page.wait_for("document.querySelector('main').innerText.includes('On large')")
    page.close()


def opened(browser: Chromium, site: LiveSite, sight: Sight) -> Page:
    site.create("never", "512")
    page = browser.page()
    page.goto(site.address(sight))
    page.wait_for("document.querySelector('.status.live')")
    page.wait_for("document.querySelector('.tiles').innerText.includes('unschedulable')")
    return page


def test_a_reader_of_one_namespace_sees_its_pods(browser: Chromium, site: LiveSite) -> None:
    page = opened(browser, site, OF_ONE_NAMESPACE)
    assert "Only pods of the namespace default have names here" in page.text("main")
    go(page, "nodes")
    page.evaluate("document.querySelector('#node-map').focus()")
    page.press("Enter")
    assert page.evaluate("!document.querySelector('.panel')")  # there is no name to ask for
    assert "verdict on a pod" not in page.text("#choose-colour-by")
    go(page, "pods/default/never")
    page.wait_for("document.querySelector('main').innerText.includes('Insufficient cpu')")
    assert page.text(".summary").endswith("nodes are feasible")
    for text in ("What would make it fit", "Every node", "such as", "n00"):
        assert text not in page.text("main")
    go(page, "what-if")
    assert "This needs the whole cluster" in page.text("main")
    assert page.evaluate("!document.querySelector('.failed')")
    assert not page.problems
    page.close()


def test_a_reader_of_nodes_sees_no_pod(browser: Chromium, site: LiveSite) -> None:
    page = opened(browser, site, OF_NODES)
    assert "You may not list pods, so they are only counted" in page.text("main")
    for hash_, text in {
        "queue": "Names of pods are hidden",
        "timeline": "You may not list pods",
    }.items():
        go(page, hash_)
        assert text in page.text("main")
    go(page, "nodes?node=n00")
    assert "of 16 GiB" in page.text(".panel")
    assert "default" not in page.text("main")
    assert page.evaluate("!document.querySelector('.failed')")
    go(page, "pods/default/never")
    assert "You may not see this" in page.text(".failed")
    page.close()
