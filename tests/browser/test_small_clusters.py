"""Names that bite, questions that are asked, and the page in one file, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec import structs
from tests.browser.cdp import Chromium, Page
from tests.browser.clusters import EMOJI, HOSTILE, LONG, RIGHT_TO_LEFT, hostile
from tests.browser.serving import COMPLETE, ServedPage, offline, served, served_snapshot

from mooring.errors import ConfigError, Problem
from mooring.lens.offline import OfflineLens
from mooring.lens.reading import read_snapshot
from mooring.lens.snapshot import Snapshot
from mooring.simulator.questions import Imagination
from mooring.ui.file_lens import FileLens
from mooring.ui.one_file import one_file

CLUSTER = Path(__file__).parents[2] / "docs" / "howto" / "cluster.yaml"
_FOREIGN = (
    "document.querySelectorAll('main :is(img, script, svg, b, i:not(.labels i), iframe)').length"
)


@pytest.fixture(scope="module")
def site() -> Iterator[ServedPage]:
    with served_snapshot(read_snapshot(CLUSTER)) as running:
        yield running


def opened(browser: Chromium, address: str, path: str = "overview") -> Page:
    page = browser.page()
    page.goto(address)
    page.wait_for("document.querySelector('.tile')")
    go(page, path)
    return page


def go(page: Page, path: str) -> None:
    page.evaluate(f"location.hash = {json.dumps('#/' + path)}")
    page.wait_for(COMPLETE)


def click(page: Page, script: str) -> None:
    page.wait_for(script)
    page.evaluate(f"({script}).click()")


def test_hostile_names_stay_text(browser: Chromium) -> None:
    namespace = "<svg onload=alert(2)>"
    pod = f"pods/{quote(namespace, safe='')}/{quote(HOSTILE, safe='')}"
    with served_snapshot(hostile()) as site:
        page = opened(browser, site.address())
        page.evaluate("window.alert = () => { window.wasAlerted = true; }")
        shown = {
            "overview": [HOSTILE],
            "nodes?group=pool": [HOSTILE],
            "nodes?view=table": [HOSTILE, RIGHT_TO_LEFT, LONG, "<i>x</i>"],
            f"nodes?node={quote(HOSTILE, safe='')}": [HOSTILE, "<b>zone</b>"],
            f"nodes?node={LONG}": [f"{LONG}/{LONG}"],
            "queue": [f"{namespace}/{HOSTILE}", f"shop/{EMOJI}"],
            pod: [f"{namespace}/{HOSTILE}"],
            f"pods/shop/{quote(EMOJI)}": [EMOJI],
        }
        for path, names in shown.items():
            go(page, path)
            text = page.evaluate("document.querySelector('main').textContent")
            for name in names:
                assert name in text, path
            assert page.evaluate(_FOREIGN) == 0, path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.press("/")
        page.write("<img")
        page.wait_for("document.querySelectorAll('#found li').length >= 2")
        assert HOSTILE in page.evaluate("document.querySelector('#found').textContent")
        assert page.evaluate("document.querySelectorAll('#found img').length") == 0
        # Isolated, a right-to-left name cannot turn what stands beside it.
        go(page, "queue")
        isolated = "getComputedStyle(document.querySelector('.grid-row bdi')).unicodeBidi"
        assert page.evaluate(isolated) == "isolate"
        assert not page.evaluate("window.wasAlerted")
        assert not page.problems
        page.close()


def test_a_remedy_is_tried(browser: Chromium, site: ServedPage) -> None:
    page = opened(browser, site.address(), "pods/shop/web")
    page.wait_for("document.querySelectorAll('.remedies > li').length >= 4")
    for text, node in (("tolerate pool=gpu:NoSchedule", "gpu-1"), ("uncordon spare-1", "spare-1")):
        click(page, f"document.querySelector('[aria-label=\"Try: {text}\"]')")
        page.wait_for(
            f"[...document.querySelectorAll('.tried')].some((one) => one.innerText"
            f".includes('would go to {node}'))"
        )
    assert not page.problems
    page.close()


def test_what_would_happen_if_a_node_is_drained(browser: Chromium, site: ServedPage) -> None:
    page = opened(browser, site.address(), "what-if")
    while page.evaluate("document.activeElement.id") != "drain":  # by keyboard alone
        page.press("Tab")
    page.write("small-*")
    page.press("Enter")
    page.wait_for("document.querySelector('#what-if-answer .tiles')")
    answer = page.text("#what-if-answer")
    assert "drain small-1 and small-2" in answer
    assert "shop/db" in answer
    assert "newly pending" in answer.lower()
    rows = page.evaluate(
        "[...document.querySelectorAll('.grid-space .grid-row')].map(r => r.innerText)"
    )
    (waits,) = (row for row in rows if row.startswith("shop/api"))
    assert waits.split("\n")[1:4] == ["keeps waiting", "\N{EN DASH}", "\N{EN DASH}"]
    assert "else on small-" in waits
    page.wait_for("document.querySelector('#change-map').places")
    assert not page.problems
    page.close()


def test_a_question_that_cannot_be_is_refused_in_words(browser: Chromium, site: ServedPage) -> None:
    page = opened(browser, site.address(), "what-if?drain=nowhere")
    click(page, "document.querySelector('button[type=submit]')")
    page.wait_for("document.querySelector('#what-if-answer [role=alert]')")
    assert "nowhere" in page.text("#what-if-answer")
    page.close()


def test_how_many_more_fit(browser: Chromium, site: ServedPage) -> None:
    page = opened(browser, site.address(), "what-if")
    click(page, "document.querySelectorAll('button[type=submit]')[1]")
    page.wait_for("document.querySelector('#capacity-answer .summary')")
    assert "3 more pods fit on 2 nodes" in page.text("#capacity-answer")
    assert not page.problems
    page.close()


def test_the_verdict_on_a_pod_colours_the_map(browser: Chromium, site: ServedPage) -> None:
    page = opened(browser, site.address(), "nodes?by=verdict&pod=shop%2Fweb")
    page.wait_for("document.querySelector('.legend').innerText.includes('Insufficient cpu: 2')")
    assert "fits: 0" in page.text(".legend")
    colors = "new Set(document.querySelector('#node-map').model.colors).size"
    assert page.evaluate(colors) == 3  # cpu, taint, cordoned
    page.close()


def test_filters_are_in_the_address(browser: Chromium, site: ServedPage) -> None:
    page = opened(browser, site.address(), "queue?q=web")
    assert page.evaluate("document.querySelectorAll('.grid-space .grid-row').length") == 1
    page.evaluate("document.getElementById('queue-text').focus()")
    page.press("Backspace", "Backspace", "Backspace")
    page.wait_for("document.querySelectorAll('.grid-space .grid-row').length === 2")
    assert page.evaluate("location.hash") == "#/queue"
    page.close()


def test_a_cluster_is_read_again(browser: Chromium) -> None:
    snapshot = read_snapshot(CLUSTER)
    small = structs.replace(
        snapshot, cluster=structs.replace(snapshot.cluster, nodes=snapshot.cluster.nodes[:2])
    )
    answers: list[ConfigError | Snapshot] = [ConfigError([Problem("server", "gone")]), small]

    def read_again() -> tuple[OfflineLens, Imagination]:
        answer = answers.pop(0)
        if isinstance(answer, ConfigError):
            raise answer
        return offline(answer, "cluster"), Imagination(answer)

    backend = FileLens(offline(snapshot, "cluster"), Imagination(snapshot), read_again)
    with served(backend) as site:
        page = opened(browser, site.address())
        again = "[...document.querySelectorAll('header button')]"
        again += ".find((one) => one.innerText === 'Read again')"
        click(page, again)
        page.wait_for("document.querySelector('.banner')?.innerText.includes('gone')")
        click(page, again)
        page.wait_for("document.querySelector('.tile strong').innerText === '2'")
        assert page.text(".banner") == ""
        page.close()
    backend.close()


def test_a_page_in_one_file_needs_no_server(browser: Chromium, tmp_path: Path) -> None:
    file = tmp_path / "cluster.html"
    file.write_bytes(one_file(offline(read_snapshot(CLUSTER))))
    page = opened(browser, file.as_uri(), "pods/shop/web")
    assert "tolerate pool=gpu:NoSchedule" in page.text(".remedies")
    assert not page.evaluate("document.querySelector('.remedies button')")
    buttons = "[...document.querySelectorAll('button')]"
    click(page, f"{buttons}.find((one) => one.innerText.startsWith('Show every'))")
    page.wait_for("document.querySelector('[aria-label=\"Every node and plugin\"]')")
    go(page, "nodes?node=small-1")
    page.wait_for("document.querySelector('.labels-list')")
    assert "shop/db" in page.text(".panel")
    go(page, "pods/shop/db")
    assert "not in it" in page.text("main")
    go(page, "what-if")
    assert "Not in this file" in page.text("main")
    assert page.requests == [file.as_uri()]
    assert not page.problems
    # Scripts that were put into it do not run: the policy names one by its hash.
    hurt = tmp_path / "hurt.html"
    hurt.write_bytes(
        file.read_bytes().replace(b"</body>", b"<script>document.title = 'hurt'</script></body>")
    )
    other = opened(browser, hurt.as_uri())
    assert other.evaluate("document.title") != "hurt"
    assert any("Content Security Policy" in one for one in other.problems)
    page.close()
    other.close()
