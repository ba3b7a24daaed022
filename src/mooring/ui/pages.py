"""The pages besides health: metrics, configuration, version."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.observe import exposition
from mooring.observe.component import ComponentMetrics

JSON: Final = "application/json"
HEADERS: Final = {
    "Cache-Control": "no-cache, private",
    "Server": "mooring",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer."""


class HttpPage(msgspec.Struct, frozen=True):
    """A complete answer."""

    body: bytes
    content_type: str


def metrics_page(metrics: ComponentMetrics, version: str) -> Callable[[], HttpPage]:
    """`/metrics`, for Prometheus."""
    metrics.build_info.labels(version, platform.python_version()).set(1)
    shown = exposition.Exposition(metrics)
    return lambda: HttpPage(
        shown.render().encode(errors="backslashreplace"), exposition.CONTENT_TYPE
    )


def config_page(document: Callable[[], Any]) -> Callable[[], HttpPage]:
    """`/configz`: the effective configuration, as plain data without secrets."""
    return lambda: HttpPage(msgspec.json.encode({"componentconfig": document()}), JSON)


def version_page(version: str) -> Callable[[], HttpPage]:
    """`/version`, with the keys of Kubernetes' version information."""
    about = {
        "gitVersion": f"v{version}",
        "compiler": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{sys.platform}/{platform.machine()}",
    }
    page = HttpPage(msgspec.json.encode(about), JSON)
    return lambda: page
