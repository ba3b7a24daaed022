"""`mooring capacity`: how many more pods fit, where, and what keeps others off."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.imagined import (
    ROWS,
    more,
    names,
    plural,
    print_answers,
    read_config,
    read_shapes,
    table,
)
from mooring.cli.progress import progress
from mooring.cli.sources import SourceOptions, load, reported
from mooring.cli.what_if import why_refused
from mooring.errors import Problem, UsageError
from mooring.simulator.answers import CapacityAnswer
from mooring.simulator.capacity import Demand, capacity
from mooring.simulator.imagine import Run, search_paths


class CapacityOptions(SourceOptions, frozen=True, kw_only=True):
    """What `mooring capacity` understands."""

    pods: Sequence[str]
    mix: str
    max: int | None
    no_gains: bool
    configs: Sequence[str]
    plugin: Sequence[str]
    seed: int
    output: str


@reported
def run(options: CapacityOptions) -> int:
    """Print how many more fit; the exit code."""
    if len(options.configs) > 1:
        raise UsageError([Problem("--config", "expected one configuration, got several")])
    shapes, templates = read_shapes(options.pods)
    demand = Demand(
        shapes=shapes,
        templates=templates,
        mix=_mix(options.mix, len(shapes)),
        most=options.max,
        gains=not options.no_gains,
    )
    file = options.configs[0] if options.configs else ""
    asked = Run(
        config=read_config(file, options.plugin) if file else "",
        config_name=file,
        plugins=tuple(options.plugin),
        paths=search_paths(*options.configs),
        seed=options.seed,
    )
    snapshot = load(options, quiet=True)
    with progress() as shown:
        answer = capacity(snapshot, demand, asked, name=options.source, on_bound=shown.placed)
    print_answers([answer], options.output, _show)
    return 0


def _mix(text: str, count: int) -> tuple[int, ...]:
    if not text:
        return (1,) * count
    parts = text.split(":")
    if len(parts) != count or not all(part.isdecimal() and int(part) > 0 for part in parts):
        expected = f"expected {count} numbers such as {':'.join(['1'] * count)}"
        raise UsageError([Problem("--mix", f"{expected}, one for each pod, got {text!r}")])
    return tuple(map(int, parts))


def _show(console: Console, answer: CapacityAnswer) -> None:
    shapes = answer.pods
    end = ", which is the limit that was asked for" if answer.limited else ""
    verb = "fits" if answer.total == 1 else "fit"
    title = f"{plural(answer.total, 'more pod')} {verb} on {plural(len(answer.nodes), 'node')}{end}"
    console.print(Text(title, style="bold"), soft_wrap=True)
    if len(shapes) > 1:
        counts = ", ".join(f"{shape.count:,} of {shape.name}" for shape in shapes)
        console.print(f"{counts}; then {answer.refused_pod or 'none'} does not fit")
    console.print()
    _show_nodes(console, answer)
    if answer.bottlenecks:
        shown = table("what keeps another pod off", "nodes", right=("nodes",))
        for why, count in answer.bottlenecks.items():
            shown.add_row(why, f"{count:,} of {len(answer.nodes):,}")
        console.print(shown)
        console.print()
    for one in answer.refused[:3]:
        if one.shortages:
            console.print(Text(why_refused(one), style="dim"), soft_wrap=True)
    if answer.gains:
        shown = table("one more on every node", "more pods", right=("more pods",))
        for gain in answer.gains:
            amount = gain.unit if gain.unit != "1" else "1"
            shown.add_row(f"{gain.resource} {amount}", f"{gain.pods:,}")
        console.print()
        console.print(shown)


def _show_nodes(console: Console, answer: CapacityAnswer) -> None:
    """Nodes with equal numbers are one row."""
    by_count: dict[int, list[str]] = {}
    for node, count in answer.nodes.items():
        by_count.setdefault(count, []).append(node)
    shown = table("pods on each", "nodes", "", right=("pods on each", "nodes"))
    for count in sorted(by_count, reverse=True)[:ROWS]:
        found = by_count[count]
        shown.add_row(f"{count:,}", f"{len(found):,}", names(found))
    console.print(shown)
    console.print(more(len(by_count), ROWS))
