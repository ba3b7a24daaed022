"""Metrics in Prometheus' text format 0.0.4, with numbers as Go writes them.

A sample has the same text as from kube-scheduler, down to `le="1e-05"` and the order of the labels,
so that recorded series continue. Families without a child are listed as well, so that every name
can be found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Final

from mooring.observe.family import AnyFamily, Histogram, MetricsRegistry, MetricValue
from mooring.observe.plugin_metrics import PluginMetrics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_Labels = tuple[str, ...]


class Exposition:
    """Renders the families of a registry.

    All text before the numbers stays the same from scrape to scrape, and is kept.
    """

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry
        self._texts: dict[tuple[str, _Labels], tuple[str, ...]] = {}
        self._of_plugins = PluginMetrics(lambda: {family.name for family in registry})

    def render(self) -> str:
        """All families by name, each with its children by their labels; then those of plugins."""
        self._registry.refresh()
        lines: list[str] = []
        for family in self._registry:
            lines += _header(family)
            order = _by_name(family)
            children: list[tuple[_Labels, Histogram | MetricValue]] = [*family]
            children.sort(key=lambda found: tuple(found[0][place] for place in order))
            for labels, child in children:
                key = (family.name, labels)
                texts = self._texts.get(key)
                if texts is None:
                    texts = self._texts[key] = tuple(_series(family, labels, child))
                lines += map(str.__add__, texts, map(number, _numbers(child)))
        lines.append(self._of_plugins.text())
        return "\n".join(lines)


def number(value: float) -> str:
    """A number as Go prints it: the fewest digits that identify it, in exponents from 1e+06 on."""
    value = float(value)
    if value.is_integer() and abs(value) < 1_000_000:
        return str(int(value))
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa.removesuffix('.0')}e{exponent}"
    if abs(value) < 1_000_000:
        return text
    sign, digits = ("-", text[1:]) if value < 0 else ("", text)
    whole, _, fraction = digits.partition(".")
    first, rest = whole[0], (whole[1:] + fraction).rstrip("0")
    return f"{sign}{first}{'.' if rest else ''}{rest}e+{len(whole) - 1:02}"


def _header(family: AnyFamily) -> tuple[str, str]:
    text = f"[{family.stability}] {family.help}" if family.stability else family.help
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {family.name} {text}", f"# TYPE {family.name} {family.kind}"


def _by_name(family: AnyFamily) -> list[int]:
    """The places of the labels in the alphabetical order of their names."""
    names = family.label_names
    return sorted(range(len(names)), key=names.__getitem__)


def _series(family: AnyFamily, labels: _Labels, child: Histogram | MetricValue) -> Iterator[str]:
    """The text before each of `_numbers`."""
    pairs = [
        f'{family.label_names[place]}="{_escaped(labels[place])}"' for place in _by_name(family)
    ]
    if isinstance(child, MetricValue):
        yield f"{family.name}{_braced(pairs)} "
        return
    for bound in (*child.bounds, math.inf):
        le = f'le="{number(bound)}"'
        yield f"{family.name}_bucket{_braced([*pairs, le])} "
    yield f"{family.name}_sum{_braced(pairs)} "
    yield f"{family.name}_count{_braced(pairs)} "


def _numbers(child: Histogram | MetricValue) -> Iterable[float]:
    """A value; or the cumulative bucket counts, the sum and the count."""
    if isinstance(child, MetricValue):
        return (child.value,)
    running = list(itertools.accumulate(child.counts))
    return (*running, child.total, running[-1])


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
