"""A running scheduler in a real browser: what it decides is seen as it happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.browser.cdp import Chromium, Page
from tests.browser.live_site import LiveSite
from tests.browser.serving import COMPLETE, nameless_controls

from mooring.lens.sight import WHOLE, Sight
from mooring.testing import node, pod

NODES = 24
OF_ONE_NAMESPACE = Sight(nodes=False, pods=False, namespace="default")
OF_NODES = Sight(pods=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    machines = [node(f"n{i:02d}", cpu=8, zone="abc"[i % 3]) for i in range(NODES)]
    sights = (WHOLE, OF_ONE_NAMESPACE, OF_NODES)
    running = LiveSite(tmp_path_factory.mktemp("journal"), machines, sights)
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
        site.apply(pod(f"web-{number}", cpu=8))
    page.wait_for(f"{full}.filter((one) => one !== {empty}).length === 3")
    filled = page.evaluate(f"{full}.findIndex((one) => one !== {empty})")
    pixel = f"""((map) => {{
      const place = map.places[{filled}];
      const corner = map.pitch - 4;  // the first pods of a large cell are dots at its top
      const [x, y] = [map.xs[place] + corner, map.ys[place] + corner];
      return new Uint32Array(map.context.getImageData(x, y, 1, 1).data.buffer)[0];
    }})(document.querySelector('#node-map'))"""
    assert page.evaluate(pixel) == page.evaluate(f"{full}[{filled}]")

    site.apply(pod("giant", cpu=64))
    go(page, "timeline")
    page.wait_for("document.querySelectorAll('.grid-space .grid-row').length === 4")
    shown = page.text("main")
    assert shown.count("scheduled") >= 3
    assert "unschedulable" in shown
    assert not nameless_controls(page)
    while not page.evaluate("document.activeElement.classList.contains('chart')"):
        page.press("Tab")
    page.press("ArrowLeft")  # the first of twenty spans, without the last attempt
    rows = "document.querySelectorAll('.grid-space .grid-row').length"
    page.wait_for(f"{rows} > 0 && {rows} < 4")
    page.press("Escape")
    page.wait_for(f"{rows} === 4")

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
    site.apply(node("large", cpu=64))
    page.wait_for("document.querySelector('.tiles').innerText.includes('25')")
    go(page, "timeline")
    page.wait_for("document.querySelectorAll('.grid-space .grid-row').length === 5")
    assert "as it was at the attempt" in page.text("main")
    page.wait_for("document.querySelector('main').innerText.includes('added')")
    site.apply(node("n00", cpu=8, unschedulable=True))
    page.wait_for("document.querySelector('main').innerText.includes('cordoned')")
    # Beside a new node, for which everything is loaded anew.
    site.apply(node("n01", cpu=8, unschedulable=True), node("larger", cpu=64))
    changes = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)"
    page.wait_for(f"{changes}.some((one) => /n01\\s+cordoned/.test(one))")
    go(page, "pods/default/giant?at=4")
    page.wait_for("document.querySelector('main').innerText.includes('no node of 24')")
    assert "decided again from the journal" in page.text("main")
    page.evaluate(
        "[...document.querySelectorAll('a')].find((a) => a.innerText === 'As it is now').click()"
    )
    page.wait_for("document.querySelector('main').innerText.includes('On large')")
    page.close()


def opened(browser: Chromium, site: LiveSite, sight: Sight) -> Page:
    site.apply(pod("never", cpu=512))
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
