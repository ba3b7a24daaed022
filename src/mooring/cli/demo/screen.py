"""Output of the demo: the story, and on a terminal the live cluster below it."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from typing import Final, NamedTuple

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from mooring.api.wellknown import ZONE
from mooring.cli.demo import plugin
from mooring.scheduler.attempts import Attempt
from mooring.scheduler.scheduler import Scheduler

_REFRESH: Final = 0.1  # seconds
_DECISIONS: Final = 6  # shown at a time
_WIDTH: Final = 16  # of a bar
_LABELS: Final = {ZONE: "zone", "price": "price"}  # columns, where nodes have them
_READING: Final = 1.2  # seconds to read a chapter


class _Decided(NamedTuple):
    """An attempt, and how many equal ones it stands for."""

    attempt: Attempt
    times: int = 1

    def is_like(self, other: Attempt) -> bool:
        """Whether both are refused pods of one ReplicaSet."""
        mine, theirs = self.attempt, other
        if mine.decision.node_name or theirs.decision.node_name:
            return False
        return mine.pod.name.rpartition("-")[0] == theirs.pod.name.rpartition("-")[0] != ""


class Screen:
    """Prints the story; with `is_live`, shows nodes, queue and last decisions as they change."""

    def __init__(self, console: Console, *, is_live: bool) -> None:
        self._console = console
        self.is_live: bool = is_live
        self._scheduler: Scheduler | None = None
        self._decisions: deque[_Decided] = deque(maxlen=_DECISIONS)
        self._chapters = 0

    def introduce(self) -> None:
        source = inspect.getsource(plugin.PreferSpot).rstrip()
        # On a narrow terminal lines are broken, not cut.
        code = Syntax(
            source, "python", theme="ansi_dark", background_color="default", word_wrap=True
        )
        self._console.print(Panel(code, title="a placement rule of our own", border_style="cyan"))

    def chapter(self, title: str, subtitle: str) -> None:
        self._chapters += 1
        tail = f" [dim]· {subtitle}[/]" if subtitle else ""
        self._console.print(f"\n[bold cyan]{self._chapters}. {title}[/]{tail}")

    def say(self, text: str) -> None:
        self._console.print(Padding(text, (0, 0, 0, 3)))

    def decided(self, attempt: Attempt) -> None:
        """Called for every attempt; consecutive refusals of one ReplicaSet share a line."""
        last = self._decisions[-1] if self._decisions else None
        if last is not None and last.is_like(attempt):
            self._decisions[-1] = _Decided(attempt, last.times + 1)
        else:
            self._decisions.append(_Decided(attempt))

    async def pause(self) -> None:
        """Leave time to read; a log needs no pause."""
        if self.is_live:
            await asyncio.sleep(_READING)

    async def show(self, scheduler: Scheduler) -> None:
        """Keep the live part current until cancelled; without a terminal there is none."""
        self._scheduler = scheduler
        if not self.is_live:
            return
        with Live(self._view(), console=self._console, auto_refresh=False) as live:
            while True:
                live.update(self._view(), refresh=True)
                await asyncio.sleep(_REFRESH)

    def print_view(self) -> None:
        """The cluster as it is, once; the live part shows it anyway."""
        if not self.is_live:
            self._console.print(self._view())

    # --- pictures ------------------------------------------------------------------------------

    def _view(self) -> Group:
        return Group(Text(""), self._nodes(), self._queue(), self._last_decisions())

    def _nodes(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        nodes = list(self._scheduler.cache.nodes) if self._scheduler is not None else []
        keys = [key for key in _LABELS if any(key in node.labels for node in nodes)]
        for title in ("node", *(_LABELS[key] for key in keys), "pods", "cpu"):
            table.add_column(title)
        for node in sorted(nodes, key=lambda node: node.name):
            used, total = node.requested("cpu"), max(node.allocatable("cpu"), 1)
            table.add_row(
                node.name,
                *(node.labels.get(key, "") for key in keys),
                str(node.pod_count),
                _bar(used / total).append(f" {used / 1000:g} of {total / 1000:g}"),
            )
        return table

    def _queue(self) -> Text:
        if self._scheduler is None:
            return Text("")
        metrics = self._scheduler.metrics
        metrics.refresh()
        counts = {name: int(child.value) for (name,), child in metrics.pending_pods}
        shown = "  ".join(f"{name} {count}" for name, count in counts.items())
        return Text(f"queue: {shown}", style="dim")

    def _last_decisions(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for attempt, times in self._decisions:
            decision = attempt.decision
            where = decision.node_name or "nowhere"
            style = "green" if decision.node_name else "yellow"
            feasible = f"{len(decision.rows)} of {decision.evaluated} nodes fit"
            if times > 1:
                feasible += f", {times} pods"
            table.add_row(
                Text(attempt.pod.name), Text(f"→ {where}", style=style), Text(feasible, style="dim")
            )
        return table


def _bar(share: float) -> Text:
    full = min(round(share * _WIDTH), _WIDTH)
    style = "green" if share < 0.75 else "yellow" if share < 1 else "red"
    return Text.assemble(("█" * full, style), ("░" * (_WIDTH - full), "dim"))
