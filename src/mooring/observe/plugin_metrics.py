"""Metrics that plugins make with `prometheus_client`, beside those of the process.

If a plugin has imported that package, what its default registry holds is part of /metrics. Names of
our own metrics, and those of the package about Python and the process, are left out.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

log = logging.getLogger(__name__)

_OF_THE_PACKAGE: Final = ("python_", "process_")


class PluginMetrics:
    """Reads the default registry of `prometheus_client`, if some code has imported it.

    `names` gives the names that are taken.
    """

    def __init__(self, names: Callable[[], Collection[str]]) -> None:
        self._names = names
        self._failed = ""  # logged once

    def text(self) -> str:
        """In Prometheus' text format; empty if there are none. Never raises."""
        package = sys.modules.get("prometheus_client")
        if package is None:
            return ""
        try:
            text: str = package.generate_latest(_Allowed(package.REGISTRY, self._names())).decode()
        except Exception as error:  # a collector is code of a plugin
            if self._failed != (said := repr(error)):
                self._failed = said
                log.warning("metrics of plugins cannot be read", extra={"error": said})
            return ""
        return text


class _Allowed:
    """A registry without some names, as `generate_latest` needs it."""

    def __init__(self, registry: Any, taken: Collection[str]) -> None:
        self._registry = registry
        self._taken = taken

    def collect(self) -> Iterator[Any]:
        for family in self._registry.collect():
            names = (family.name, f"{family.name}_total")
            if family.name.startswith(_OF_THE_PACKAGE) or any(
                name in self._taken for name in names
            ):
                continue
            yield family
