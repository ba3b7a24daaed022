"""Every metric of the dashboard and of the alerts is one that a scheduler shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.observe.parse_exposition import read

from mooring.observe.metrics import Metrics
from mooring.observe.process import add_process_metrics
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox
from mooring.ui.pages import metrics_page

FOLDER = Path(__file__).parents[2] / "deploy" / "observability"
_NAME = re.compile(r"\b(?:scheduler|mooring|leader|rest_client|process)_[a-z_]+\b")


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture(scope="module")
def scraped() -> set[str]:
    """Names on a scrape of a scheduler that has scheduled, series of histograms too."""
    metrics = Metrics()
    add_process_metrics(metrics)
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.apply(node("a"), pod("web"))
        running = sandbox.start_scheduler()
        sandbox.advance(1)
        texts = [
            metrics_page(one, "1")().body.decode() for one in (metrics, running.scheduler.metrics)
        ]
    found: set[str] = set()
    for text in texts:
        for name, family in read(text).items():
            found |= {name, *(f"{name}{end}" for end in ("_bucket", "_sum", "_count"))}
            assert family is not None
    return found


def expressions() -> dict[str, str]:
    found = {
        f"{panel['title']}, {target['refId']}": target["expr"]
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    }
    return found | {rule["alert"]: rule["expr"] for rule in rules()}


def test_every_metric_is_on_a_live_scrape(scraped: set[str]) -> None:
    found = expressions()
    assert len(found) > 25
    for title, text in found.items():
        names = set(_NAME.findall(text))
        assert names, title
        assert names <= scraped, (title, names - scraped)


def test_panels_do_not_overlap_and_have_a_number_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))


def test_alerts_say_what_is_the_matter() -> None:
    for rule in rules():
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
