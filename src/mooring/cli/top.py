"""`mooring top`: what a running scheduler does, and what waits for it, in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mooring.api.requests import CPU, MEMORY
from mooring.cli.live import LiveOptions, LiveScheduler, one_line, shown, table_of
from mooring.cli.sources import reported
from mooring.lens.api import (
    LensQueue,
    LensState,
    PluginTime,
    QueueCounts,
    Rates,
    RecordPage,
    RecordRow,
)

_ZONE: Final = "topology.kubernetes.io/zone"
_ROWS: Final = 10
_SHOWN_PLUGINS: Final = 5


class TopOptions(LiveOptions, frozen=True, kw_only=True):
    """What `mooring top` understands."""


class CountOf(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods have something in common."""

    what: str
    pods: int


class DomainUse(msgspec.Struct, frozen=True, rename="camel"):
    """The nodes of one zone, or all."""

    zone: str
    nodes: int
    cpu: float  # share that is requested
    memory: float


class TopAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The schema of `mooring top -o json`, version 1."""

    version: int = 1
    at: str
    scheduler: str
    leader: bool
    nodes: int
    pods: int
    queue: QueueCounts
    rates: Rates | None
    refused_by: tuple[CountOf, ...]  # plugins
    shapes: tuple[CountOf, ...]
    zones: tuple[DomainUse, ...]
    plugins: tuple[PluginTime, ...]  # that take the most time
    newest: tuple[RecordRow, ...]


@reported
def run(options: TopOptions) -> int:
    """Show it until Ctrl-C, or once."""
    scheduler = LiveScheduler(options)

    def look() -> TopAnswer:
        return answer_of(scheduler.state(), scheduler.queue(), scheduler.records(_ROWS))

    return shown(options, look, rendered)


def answer_of(state: LensState, queue: LensQueue, records: RecordPage | None) -> TopAnswer:
    """What is worth a look."""
    plugins = Counter(plugin for pod in queue.pods for plugin in pod.plugins)
    shapes = Counter(pod.shape for pod in queue.pods)
    return TopAnswer(
        at=state.at,
        scheduler=f"{state.scheduler.name} {state.scheduler.version}".strip(),
        leader=state.scheduler.leader,
        nodes=state.nodes.count,
        pods=sum(state.nodes.pods),
        queue=state.queue,
        rates=state.rates,
        refused_by=tuple(CountOf(*one) for one in plugins.most_common(_ROWS)),
        shapes=tuple(CountOf(*one) for one in shapes.most_common(_ROWS)),
        zones=tuple(_zones(state)),
        plugins=state.plugins,
        newest=() if records is None else records.rows,
    )


def _zones(state: LensState) -> Iterable[DomainUse]:
    """The fullest first."""
    nodes = state.nodes
    label = next((one for one in nodes.labels if one.key == _ZONE), None)
    of_row = ["all"] * nodes.count
    if label is not None:
        of_row = [label.values[code] if code >= 0 else "none" for code in label.codes]
    sums: dict[str, list[int]] = {}
    resources = {one.name: one for one in nodes.resources}
    for row, zone in enumerate(of_row):
        found = sums.setdefault(zone, [0, 0, 0, 0, 0])
        found[0] += 1
        for place, name in ((1, CPU), (3, MEMORY)):
            if name in resources:
                found[place] += resources[name].requested[row]
                found[place + 1] += resources[name].allocatable[row]
    every = [
        DomainUse(zone, count, _share(cpu, cpus), _share(memory, memories))
        for zone, (count, cpu, cpus, memory, memories) in sums.items()
    ]
    return sorted(every, key=lambda one: -max(one.cpu, one.memory))[:_ROWS]


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


# --- the screen -----------------------------------------------------------------------------------


def rendered(found: TopAnswer) -> RenderableType:
    """All of it, for a terminal."""
    parts: list[RenderableType] = [_head(found), Text()]
    counts = {
        name.replace("_", " "): getattr(found.queue, name) for name in QueueCounts.__struct_fields__
    }
    waiting = "  ".join(f"{name} {count:,}" for name, count in counts.items())
    parts += [Text(f"queue: {waiting}"), Text()]
    if found.refused_by:
        parts += [_counts("refused by", found.refused_by), Text()]
    if found.shapes:
        parts += [_counts("waiting, by what they ask for", found.shapes), Text()]
    parts += [_domains(found.zones), Text()]
    if found.plugins:
        parts += [_slowest(found.plugins[:_SHOWN_PLUGINS]), Text()]
    if found.newest:
        parts.append(_decisions(found.newest))
    return Group(*parts)


def _head(found: TopAnswer) -> Text:
    stands_by = "" if found.leader else ", standing by"
    text = f"{found.scheduler}{stands_by}   {found.at[:19]}Z   {found.nodes:,} nodes"
    text += f"   {found.pods:,} pods"
    if found.rates is not None:
        rates = found.rates
        text += f"\n{rates.decisions_per_second:,.1f} decisions/s"
        text += f"   {rates.bound_per_second:,.1f} bound/s"
        text += f"   p50 {rates.p50_us:,.0f} µs   p99 {rates.p99_us:,.0f} µs"
    return Text(text)


def _counts(title: str, counts: Iterable[CountOf]) -> Table:
    table = table_of("pods", last=title, numbers=("pods",))
    for one in counts:
        table.add_row(Text(f"{one.pods:,}"), one_line(one.what))
    return table


def _domains(zones: Iterable[DomainUse]) -> Table:
    numbers = ("nodes", "cpu", "memory")
    table = table_of("zone", *numbers, last="", numbers=numbers)
    for one in zones:
        shares = (f"{one.cpu:.0%}", f"{one.memory:.0%}")
        table.add_row(Text(one.zone), Text(f"{one.nodes:,}"), *map(Text, shares))
    return table


def _slowest(plugins: Iterable[PluginTime]) -> Table:
    numbers = ("of the time", "µs a call")
    table = table_of(*numbers, "point", last="slowest plugins", numbers=numbers)
    for one in plugins:
        cells = (f"{one.share:.0%}", f"{one.mean_us:,.0f}", one.point)
        table.add_row(*map(Text, cells), one_line(one.plugin))
    return table


def _decisions(rows: Iterable[RecordRow]) -> Table:
    table = table_of("time", "pod", "outcome", "µs", last="node or reason", numbers=("µs",))
    for row in rows:
        cells = (row.at[11:19], f"{row.namespace}/{row.pod}", row.outcome, f"{row.took_us:,.0f}")
        table.add_row(*map(one_line, cells), one_line(row.node or row.message))
    return table
