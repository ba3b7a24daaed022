"""Take pictures of the page: `python -m tools.screenshots [FOLDER]`.

Without a folder those of the documentation are taken; with one, every page in dark and light, 1,280
and 800 pixels wide: of a snapshot, and of a scheduler that runs meanwhile. Needs a Chromium, see
`tests/browser/finding.py`.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tests.browser.cdp import Chromium, Page
from tests.browser.clusters import cluster
from tests.browser.live_site import LiveSite
from tests.browser.serving import served_snapshot

from mooring.testing import node, pod

IMAGES = Path(__file__).parent.parent / "docs" / "images"
NODES, PODS = 1500, 15_000
HEIGHT = 860
TALLEST = 2600

PAGES = {
    "overview": ("overview", "lens-map canvas"),
    "nodes": ("nodes?node=general-0001", ".labels-list"),
    "nodes-by-pool": ("nodes?group=pool&by=memory", "lens-map canvas"),
    "table": ("nodes?view=table", ".grid-space .grid-row"),
    "verdict": ("nodes?by=verdict&pod=web%2Frender-0", ".legend li:nth-child(5)"),
    "queue": ("queue", ".grid-space .grid-row"),
    "pod": ("pods/data/train-0", ".remedies"),
    "fits": ("pods/shop/new?matrix=1", "#matrix-text"),
    "timeline": ("timeline", ".empty-state"),
    "what-if": ("what-if?drain=general-00*", "form"),
}
"""By name: the address, and what is there once it is complete."""

LIVE_PAGES = {
    "live-overview": ("overview", "canvas.chart"),
    "live-queue": ("queue", ".grid-space .grid-row"),
    "live-timeline": ("timeline", "canvas.chart"),
    "live-pod": ("pods/batch/train-0", ".summary"),
    "live-past": ("pods/web/web-7?at=8", ".summary"),
}
"""As PAGES, of a running scheduler."""

DOCUMENTED = {"overview": False, "pod": False, "verdict": True, "nodes": True}
"""In the documentation: whether it is the dark one."""

LIVE_DOCUMENTED = ("live-timeline",)

LOOKS = [(dark, width) for dark in (False, True) for width in (1280, 800)]


def take(page: Page, name: str, file: Path, *, whole: bool) -> None:
    """One picture; `whole`: as high as the page is."""
    address, there = (PAGES | LIVE_PAGES)[name]
    width = page.evaluate("innerWidth")
    page.evaluate(f"location.hash = {'#/' + address!r}")
    page.wait_for(f"document.querySelector({there!r}) && !document.querySelector('.working')")
    if name == "what-if":
        page.evaluate("document.querySelector('button[type=submit]').click()")
        page.wait_for("document.querySelector('#what-if-answer .tiles')", 120)
    if name == "nodes":
        page.evaluate("document.querySelector('lens-map').focus()")
    if whole:
        tall = page.evaluate("document.documentElement.scrollHeight")
        page.resize(width, min(max(tall, HEIGHT), TALLEST))
    time.sleep(0.3)  # until it is laid out and painted
    page.screenshot(file)
    page.resize(width, HEIGHT)
    print(file)


def opened(browser: Chromium, address: str, *, width: int = 1280, dark: bool) -> Page:
    """The page at this address, once there is something on it."""
    page = browser.page(width=width, height=HEIGHT, dark=dark)
    page.goto(address)
    page.wait_for("document.querySelector('.tile')")
    return page


def busy_minute(site: LiveSite) -> None:
    """Pods that find a node, wait for one, or evict others for it; nodes that come and go."""
    rng = random.Random(1)
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    site.apply({**urgent, "metadata": {"name": "urgent"}})
    for namespace in ("shop", "web", "batch"):
        site.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    number = 0
    for turn in range(40):
        for _ in range(rng.choice((1, 3, 4, 12))):
            cpu = rng.choice(("250m", "500m", "1", "2"))
            site.apply(pod(f"web-{number}", namespace=("shop", "web")[number % 2], cpu=cpu))
            number += 1
        if turn % 8 == 3:
            site.apply(pod(f"train-{turn // 8}", namespace="batch", cpu=64, memory="64Gi"))
        if turn in (25, 30, 35):
            spec = {"priorityClassName": "urgent"}
            site.apply(pod(f"urgent-{turn}", namespace="shop", cpu=15, spec=spec))
        if turn in (10, 20):
            site.apply(node(f"late-{turn}", cpu=16, zone="b"))
            site.apply(node(f"node-{turn:02d}", cpu=8, zone="abc"[turn % 3], unschedulable=True))
        time.sleep(0.3)
    site.apply(pod("held", namespace="batch", cpu=1, gates=["example.com/quota"]))
    time.sleep(2)


def take_live(browser: Chromium, given: Path | None) -> None:
    """Pages of a scheduler; they are open while it decides, so that charts have a past."""
    machines = [node(f"node-{n:02d}", cpu=(8, 16)[n % 2], zone="abc"[n % 3]) for n in range(32)]
    looks = [(False, 1280)] if given is None else LOOKS
    with (
        tempfile.TemporaryDirectory() as journal,
        closing(LiveSite(Path(journal), machines)) as site,
    ):
        pages = [opened(browser, site.address(), width=width, dark=dark) for dark, width in looks]
        busy_minute(site)
        if given is None:
            for name in LIVE_DOCUMENTED:
                take(pages[0], name, IMAGES / f"ui-{name.removeprefix('live-')}.png", whole=False)
        else:
            for page, look in zip(pages, looks, strict=True):
                take_all(page, LIVE_PAGES, given, *look)


def take_all(page: Page, names: Iterable[str], folder: Path, dark: bool, width: int) -> None:
    """Every one of these pages, in one look; closes the page."""
    for name in names:
        take(page, name, folder / f"{name}-{width}-{'dark' if dark else 'light'}.png", whole=True)
    page.close()


def main() -> None:
    """All pictures."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
    with closing(Chromium()) as browser:
        with served_snapshot(cluster(NODES, PODS)) as site:
            if given is None:
                for name, dark in DOCUMENTED.items():
                    page = opened(browser, site.address(), dark=dark)
                    take(page, name, IMAGES / f"ui-{name}.png", whole=False)
            else:
                for dark, width in LOOKS:
                    page = opened(browser, site.address(), width=width, dark=dark)
                    take_all(page, PAGES, given, dark, width)
        take_live(browser, given)


if __name__ == "__main__":
    main()
