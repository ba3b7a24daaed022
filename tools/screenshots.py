"""Take pictures of the page: `python -m tools.screenshots [FOLDER]`.

Without a folder those of the documentation are taken; with one, every page in dark and light, 1,280
and 800 pixels wide. Needs a Chromium, see `tests/browser/finding.py`.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from tests.browser.cdp import Chromium, Page
from tests.browser.clusters import cluster
from tests.browser.serving import served_snapshot

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

DOCUMENTED = {"overview": False, "pod": False, "verdict": True, "nodes": True}
"""In the documentation: whether it is the dark one."""


def take(page: Page, name: str, file: Path, *, whole: bool) -> None:
    """One picture; `whole`: as high as the page is."""
    address, there = PAGES[name]
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


def main() -> None:
    """All pictures."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with served_snapshot(cluster(NODES, PODS)) as site, closing(Chromium()) as browser:
        if given is None:
            for name, dark in DOCUMENTED.items():
                page = browser.page(height=HEIGHT, dark=dark)
                page.goto(site.address())
                page.wait_for("document.querySelector('.tile')")
                take(page, name, IMAGES / f"ui-{name}.png", whole=False)
            return
        given.mkdir(parents=True, exist_ok=True)
        for dark in (False, True):
            for width in (1280, 800):
                page = browser.page(width=width, height=HEIGHT, dark=dark)
                page.goto(site.address())
                page.wait_for("document.querySelector('.tile')")
                for name in PAGES:
                    kind = "dark" if dark else "light"
                    take(page, name, given / f"{name}-{width}-{kind}.png", whole=True)
                page.close()


if __name__ == "__main__":
    main()
