"""The picture of a benchmark: two rows of bars for each workload, written by hand as SVG.

Colours stand in the attributes for light pages; a style sheet replaces them on dark ones. The
picture brings its own background, so it can be read wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from bench.versus.raw import NAMES, SCHEDULERS, Run, Setup
from bench.versus.summary import Cell, Spread, cell
from bench.versus.workloads import WORKLOADS

_WIDTH = 900
_LABELS = 275  # of the column with the names of the workloads
_PANEL = 285  # width of each panel, with room for a number after its longest bar
_NUMBER = 50
_TOP = 92  # where the first workload begins
_ROW, _BAR = 36, 12
_LIGHT = {"mooring": "#0969da", "kube": "#9aa4af"}
_STYLE = """
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117; stroke: #30363d; }
      .text { fill: #e6edf3; }
      .faint { fill: #9198a1; }
      .line { stroke: #30363d; }
      .mooring { fill: #4493f8; }
      .kube { fill: #656c76; }
    }
"""

_Measure = Callable[[Cell], Spread | None]


def chart(setup: Setup, runs: Sequence[Run]) -> str:
    """An SVG document."""
    height = _TOP + _ROW * len(setup.workloads) + 16
    title = f"{setup.nodes:,} nodes, {setup.pods:,} pods, median of {setup.rounds}"
    first, second = _LABELS, _LABELS + _PANEL + 25
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        f' width="{_WIDTH}" height="{height}" role="img"'
        ' font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<title>mooring and kube-scheduler: {title}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}"'
        ' rx="8" fill="#ffffff" stroke="#d1d9e0"/>',
        _text(20, 32, title, size=15, weight=600),
        *_legend(setup.schedulers),
        _text(first, 76, "pods per second: more is better", faint=True),
        _text(second, 76, "CPU milliseconds per pod: less is better", faint=True),
    ]
    for number, name in enumerate(setup.workloads):
        middle = _TOP + _ROW * number + _ROW / 2
        parts.append(_text(_LABELS - 12, middle + 4, WORKLOADS[name].title, end=True))
    parts += _panel(first, setup, runs, lambda each: each.pods_per_second, "{:,.0f}")
    parts += _panel(second, setup, runs, lambda each: each.cpu_per_pod, "{:.2f}")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(left: int, setup: Setup, runs: Sequence[Run], measure: _Measure, form: str) -> list[str]:
    found = {
        (name, scheduler): measure(cell(runs, name, scheduler))
        for name in setup.workloads
        for scheduler in setup.schedulers
    }
    longest = max((each.median for each in found.values() if each is not None), default=0.0) or 1.0
    bottom = _TOP + _ROW * len(setup.workloads)
    parts = [f'<path class="line" d="M{left} {_TOP - 4}V{bottom}" stroke="#d1d9e0"/>']
    for number, name in enumerate(setup.workloads):
        pair = len(setup.schedulers)
        top = _TOP + _ROW * number + (_ROW - _BAR * pair) / 2
        for place, scheduler in enumerate(setup.schedulers):
            y = top + _BAR * place
            spread = found[name, scheduler]
            if spread is None:
                parts.append(_text(left + 6, y + 9.5, "did not finish", size=10, faint=True))
                continue
            width = max((_PANEL - _NUMBER) * spread.median / longest, 1.0)
            parts.append(
                f'<rect class="{scheduler}" x="{left}" y="{y:g}" width="{width:.1f}"'
                f' height="{_BAR - 1}" fill="{_LIGHT[scheduler]}"/>'
            )
            number_ = form.format(spread.median)
            parts.append(_text(left + width + 5, y + 9.5, number_, size=10, faint=True))
    return parts


def _legend(schedulers: Sequence[str]) -> list[str]:
    parts: list[str] = []
    left = _WIDTH - 270
    for scheduler in (each for each in SCHEDULERS if each in schedulers):
        parts.append(
            f'<rect class="{scheduler}" x="{left}" y="22" width="12" height="12"'
            f' fill="{_LIGHT[scheduler]}"/>'
        )
        parts.append(_text(left + 18, 32, NAMES[scheduler]))
        left += 110
    return parts


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 12,
    weight: int = 400,
    end: bool = False,
    faint: bool = False,
) -> str:
    kind, colour = ("faint", "#59636e") if faint else ("text", "#1f2328")
    anchor = ' text-anchor="end"' if end else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:g}" font-size="{size}" font-weight="{weight}"'
        f' fill="{colour}"{anchor}>{escape(text)}</text>'
    )
