"""What there is to see, besides health."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.observe import exposition
from mooring.observe.component import ComponentMetrics

JSON: Final = "application/json"


class Page(msgspec.Struct, frozen=True):
    """A complete answer."""

    body: bytes
    content_type: str


def metrics_page(metrics: ComponentMetrics, version: str) -> Callable[[], Page]:
    """`/metrics`: everything that is counted, for Prometheus."""
    metrics.build_info.labels(version, platform.python_version()).set(1)
    shown = exposition.Exposition(metrics)
    return lambda: Page(shown.render().encode(errors="backslashreplace"), exposition.CONTENT_TYPE)


def config_page(document: Callable[[], Any]) -> Callable[[], Page]:
    """`/configz`: the configuration that is in force, as plain data without secrets."""
    return lambda: Page(msgspec.json.encode({"componentconfig": document()}), JSON)


def version_page(version: str) -> Callable[[], Page]:
    """`/version`: what is running, under the keys of Kubernetes' version information."""
    about = {
        "gitVersion": f"v{version}",
        "compiler": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{sys.platform}/{platform.machine()}",
    }
    page = Page(msgspec.json.encode(about), JSON)
    return lambda: page
