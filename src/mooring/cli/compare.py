"""`mooring compare`: several configurations on the same pods."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs
from rich.console import Console
from rich.text import Text

from mooring.cli.imagined import (
    ROWS,
    SweepOptions,
    load_all,
    more,
    print_answers,
    read_config,
    show_sides,
    table,
)
from mooring.cli.sources import reported
from mooring.cli.workers import carried_out
from mooring.lens.snapshot import Snapshot
from mooring.simulator.answers import ComparisonAnswer
from mooring.simulator.compare import CLOSER, closer, compare, differing
from mooring.simulator.imagine import Run, RunOutcome, search_paths
from mooring.simulator.sweeps import Job


class CompareOptions(SweepOptions, frozen=True, kw_only=True):
    """What `mooring compare` understands."""


class _Pair(msgspec.Struct, frozen=True):
    """Two runs to be compared, and the places of their outcomes."""

    name: str
    snapshot: Snapshot
    runs: tuple[Run, Run]
    places: tuple[int, int]


@reported
def run(options: CompareOptions) -> int:
    """Print what differs; the exit code."""
    jobs, pairs = _plan(options)
    found = carried_out(jobs, processes_wanted=options.jobs, dask=options.dask)
    again = _look_closer(options, pairs, found)
    answers = [
        compare(
            pair.snapshot,
            pair.runs,
            (found[pair.places[0]], found[pair.places[1]]),
            (again[2 * index].watched, again[2 * index + 1].watched),
            name=pair.name,
        )
        for index, pair in enumerate(pairs)
    ]
    print_answers(answers, options.output, _show)
    return 0


def _plan(options: CompareOptions) -> tuple[list[Job], list[_Pair]]:
    files = list(options.configs)
    texts = [(file, read_config(file, options.plugin)) for file in files]
    if len(texts) == 1:
        texts.insert(0, ("as it is", ""))
    base = Run(
        plugins=tuple(options.plugin),
        paths=search_paths(*files),
        reschedule=options.reschedule,
    )
    jobs: list[Job] = []
    pairs: list[_Pair] = []
    for name, snapshot in load_all(options, options.also):
        for seed in options.seed:
            runs = [
                structs.replace(base, config=text, config_name=file, seed=seed)
                for file, text in texts
            ]
            first = len(jobs)
            jobs += [(snapshot, one) for one in runs]
            pairs += [
                _Pair(name, snapshot, (runs[0], other), (first, first + place))
                for place, other in enumerate(runs[1:], start=1)
            ]
    return jobs, pairs


def _look_closer(
    options: CompareOptions, pairs: Sequence[_Pair], found: Sequence[RunOutcome]
) -> list[RunOutcome]:
    """The runs of every pair again, watching the pods that differ; none, if none does."""
    jobs: list[Job] = []
    for pair in pairs:
        pods = differing(found[pair.places[0]], found[pair.places[1]])
        jobs += [(pair.snapshot, closer(one, pods)) for one in pair.runs]
    wanted = [index for index, (_, one) in enumerate(jobs) if one.watched]
    again = carried_out(
        [jobs[index] for index in wanted], processes_wanted=options.jobs, dask=options.dask
    )
    by_index = dict(zip(wanted, again, strict=True))
    nothing = found[0]
    return [by_index.get(index, nothing) for index in range(len(jobs))]


def _show(console: Console, answer: ComparisonAnswer) -> None:
    count = len(answer.differences)
    titles = _titles(answer)
    start = f"{titles[0]} and {titles[1]}"
    pods = f"{answer.placed:,} pods placed under both"
    text = f"{count:,} of {pods} differ" if count else f"no difference; {pods}"
    console.print(Text(f"{start}: {text}", style="bold"), soft_wrap=True)
    if answer.snapshot or answer.seed:
        console.print(Text(f"{answer.snapshot}, seed {answer.seed}", style="dim"), soft_wrap=True)
    console.print()
    if count:
        shown = table("pod", *titles, "made by")
        for one in answer.differences[:ROWS]:
            why = f"{one.plugin}\n{one.why}" if one.why else one.plugin
            shown.add_row(one.pod, one.first or "waits", one.second or "waits", why)
        console.print(shown)
        console.print(more(count, ROWS))
        plugins = table("plugin", "differences", right=("differences",))
        for plugin, made in answer.by_plugin.items():
            plugins.add_row(plugin, f"{made:,}")
        console.print(plugins)
        if count > CLOSER:
            console.print(f"Looked at closer: the first {CLOSER:,}.")
        console.print()
    if answer.first is not None and answer.second is not None:
        show_sides(console, titles, (answer.first, answer.second))


def _titles(answer: ComparisonAnswer) -> tuple[str, str]:
    first, second = answer.first_config or "default", answer.second_config or "default"
    short = [name.rpartition("/")[2] for name in (first, second)]
    return (short[0], short[1]) if short[0] != short[1] else (first, second)
