"""The page in a headless browser without GPU: how much is sent, and how long until it is seen.

    python -m bench.page [--nodes 5000] [--pods 50000] [--rounds 5]

Needs a Chromium, see `tests/browser/finding.py`. Times are taken by the page itself: the first
picture from the start of the navigation, redraws as medians. The bounds are 100 kB and the data,
1 s, 10 ms for all cells, 2 ms for 300 changed ones, and 16 ms for a step in a table of all nodes:
of the CPU of its thread, with layout and painting, which other load on the machine does not change.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import closing

from tests.browser.cdp import Chromium, Page
from tests.browser.clusters import cluster
from tests.browser.serving import ServedPage, served_snapshot

from mooring.ui.assets import web_assets

# A redraw is finished when its pixels can be read.
_SCRIPT = """
(async () => {
  const store = await import('/store.js');
  const map = document.querySelector('#node-map');
  const context = map.canvas.getContext('2d');
  const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];
  const timed = (work, times) => median(Array.from({ length: times }, (_, at) => {
    const begun = performance.now();
    work(at);
    return performance.now() - begun;
  }));
  const all = timed(() => map.paint(), 20);
  const nodes = store.cluster.peek().nodes;
  const cpu = nodes.resources.find((one) => one.name === 'cpu');
  const change = (round) => {
    const rows = Array.from({ length: 300 }, (_, at) => (at * 16 + round) % nodes.pods.length);
    const every = (value) => rows.map(() => value);
    const requested = { cpu: rows.map((row) => cpu.allocatable[row] * (round % 10) / 10) };
    const fields = { pods: every(round), unschedulable: every(0), ready: every(1), requested };
    store.applyNodes({ seq: round, rows, ...fields });
  };
  const changed = timed(change, 20);
  let frames = 0;
  const until = performance.now() + 2000;
  while (performance.now() < until) {
    change(frames);
    await new Promise(requestAnimationFrame);
    frames += 1;
  }
  return { all, changed, cells: map.order.length, perSecond: frames / 2 };
})()
"""
_SCROLL = """
(async () => {
  const body = document.querySelector('.grid-body');
  for (let at = 0; at < STEPS; at++) {
    body.scrollTop = at * 320;
    await new Promise(requestAnimationFrame);
  }
})()
"""
_STEPS = 60


def first_picture(browser: Chromium, site: ServedPage) -> tuple[Page, float]:
    """A page, opened as for the first time, and when its map was there."""
    page = browser.page()
    page.goto(site.address())
    page.wait_for("performance.getEntriesByName('mooring-map').length")
    found: float = page.evaluate("performance.getEntriesByName('mooring-map')[0].startTime")
    return page, found


def step_in_table(page: Page) -> float:
    """Milliseconds of CPU for ten more rows, in the thread of the page."""

    def spent() -> float:
        metrics = page.call("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    page.call("Performance.enable", timeDomain="threadTicks")
    before = spent()
    page.evaluate(_SCROLL.replace("STEPS", str(_STEPS)))
    return (spent() - before) * 1000 / _STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    files = sum(len(one.packed) for one in web_assets().values())
    print(f"files of the page, packed                {files / 1000:8.1f} kB")
    snapshot = cluster(options.nodes, options.pods)
    with served_snapshot(snapshot) as site, closing(Chromium()) as browser:
        page, cold = first_picture(browser, site)
        page.wait_for("document.querySelector('.grid-row, td')")
        print(f"sent in all, with the data               {page.transferred / 1000:8.1f} kB")
        print(f"first picture, first time                {cold:8.0f} ms")
        page.close()
        times = []
        for _ in range(options.rounds):
            page, time = first_picture(browser, site)
            times.append(time)
            page.close()
        print(f"first picture, median                    {statistics.median(times):8.0f} ms")
        page, _ = first_picture(browser, site)
        page.evaluate("location.hash = '#/nodes'")
        page.wait_for("document.querySelector('#node-map')?.places")
        found = page.evaluate(_SCRIPT)
        print(f"map of {found['cells']:,} cells, all                {found['all']:8.2f} ms")
        print(f"300 changed cells                        {found['changed']:8.2f} ms")
        print(f"frames a second with 300 changes each    {found['perSecond']:8.0f}")
        page.evaluate("location.hash = '#/nodes?view=table'")
        page.wait_for("document.querySelector('.grid-space .grid-row')")
        print(f"table of all nodes, a step, CPU          {step_in_table(page):8.2f} ms")


if __name__ == "__main__":
    main()
