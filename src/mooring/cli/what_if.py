"""`mooring what-if`: what changes of a cluster would do to its pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import structs
from rich.console import Console
from rich.text import Text

from mooring.api import core
from mooring.cli.imagined import (
    ROWS,
    SweepOptions,
    load_all,
    more,
    names,
    plural,
    print_answers,
    read_applied,
    read_config,
    show_sides,
    table,
    tables,
)
from mooring.cli.sources import reported
from mooring.cli.workers import carried_out
from mooring.errors import ConfigError, Problem, UsageError
from mooring.lens.reading import read_snapshot
from mooring.lens.snapshot import Snapshot
from mooring.simulator.answers import Move, Pending, WhatIfAnswer
from mooring.simulator.changes import ClusterChanges
from mooring.simulator.imagine import Run, search_paths
from mooring.simulator.questions import matching
from mooring.simulator.waiting import Refused
from mooring.simulator.what_if import what_if
from mooring.simulator.workloads import parse_scaling


class WhatIfOptions(SweepOptions, frozen=True, kw_only=True):
    """What `mooring what-if` understands."""

    drain: Sequence[str]
    cordon: Sequence[str]
    remove_nodes: Sequence[str]
    add_nodes: str
    like: str
    scale: Sequence[str]
    apply: Sequence[str]


class _Variant(msgspec.Struct, frozen=True):
    """One answer to be given."""

    name: str  # of the snapshot
    snapshot: Snapshot
    before: Run
    after: Run
    words: tuple[str, ...]


@reported
def run(options: WhatIfOptions) -> int:
    """Print what would happen; the exit code."""
    variants = list(_variants(options))
    # Variants of one snapshot and seed have the same "before".
    jobs: list[tuple[Snapshot, Run]] = []
    places: dict[tuple[int, int], int] = {}
    for variant in variants:
        key = (id(variant.snapshot), variant.before.seed)
        if key not in places:
            places[key] = len(jobs)
            jobs.append((variant.snapshot, variant.before))
    first = len(jobs)
    jobs += [(variant.snapshot, variant.after) for variant in variants]
    found = carried_out(jobs, processes_wanted=options.jobs, dask=options.dask)
    answers = [
        what_if(
            variant.snapshot,
            variant.after,
            found[places[id(variant.snapshot), variant.before.seed]],
            found[first + index],
            name=variant.name,
            changes=variant.words,
        )
        for index, variant in enumerate(variants)
    ]
    if options.output == "table" and len(answers) > 1:
        with tables() as console:
            _show_many(console, answers)
    else:
        print_answers(answers, options.output, _show)
    return 0


# --- from flags to runs --------------------------------------------------------------------------


def _variants(options: WhatIfOptions) -> Iterator[_Variant]:
    counts = _counts(options.add_nodes)
    base = Run(
        plugins=tuple(options.plugin),
        paths=search_paths(*options.configs),
        reschedule=options.reschedule,
    )
    configs = [(file, read_config(file, options.plugin)) for file in options.configs] or [("", "")]
    applied = read_applied(options.apply)
    scale = tuple(map(parse_scaling, options.scale))
    for name, snapshot in load_all(options, options.also):
        changes = ClusterChanges(
            applied=applied,
            scale=scale,
            like=_like(options.like, snapshot),
            cordon=matching(options.cordon, snapshot),
            drain=matching(options.drain, snapshot),
            remove_nodes=matching(options.remove_nodes, snapshot),
        )
        for file, text in configs:
            for count in counts:
                for seed in options.seed:
                    before = structs.replace(base, seed=seed)
                    after = structs.replace(
                        before,
                        config=text,
                        config_name=file,
                        changes=structs.replace(changes, add_nodes=count),
                    )
                    words = tuple(_words(options, after))
                    yield _Variant(name, snapshot, before, after, words)


def _counts(text: str) -> list[int]:
    if not text:
        return [0]
    found = re.fullmatch(r"(\d{1,6})(?:\.\.(\d{1,6}))?", text)
    if found is None:
        problem = f"expected a number, or two such as 0..5, got {text!r}"
        raise UsageError([Problem("--add-nodes", problem)])
    first = int(found[1])
    return list(range(first, int(found[2] or first) + 1))


def _like(text: str, snapshot: Snapshot) -> core.Node | None:
    if not text:
        return None
    for node in snapshot.cluster.nodes:
        if node.metadata.name == text:
            return node
    if not Path(text).exists():
        raise ConfigError([Problem("--like", f"there is no node and no file {text}")])
    nodes = read_snapshot(Path(text)).cluster.nodes
    if len(nodes) != 1:
        raise ConfigError([Problem(text, f"expected one Node, found {len(nodes)}")])
    return nodes[0]


def _words(options: WhatIfOptions, run: Run) -> Iterator[str]:
    changes = run.changes
    for verb, nodes in (
        ("cordon", changes.cordon),
        ("drain", changes.drain),
        ("remove", changes.remove_nodes),
    ):
        if nodes:
            yield f"{verb} {names(nodes)}"
    if options.add_nodes:
        yield f"add {plural(changes.add_nodes, 'node')} like {options.like}"
    yield from (f"scale {text}" for text in options.scale)
    yield from (f"apply {file}" for file in options.apply)
    if run.config_name:
        yield f"configuration {run.config_name}"
    if options.reschedule:
        yield "all pods placed anew"


# --- tables --------------------------------------------------------------------------------------


def _show(console: Console, answer: WhatIfAnswer) -> None:
    title = "; ".join(answer.changes) or "no changes"
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(_summary(answer))
    console.print()
    _show_moves(console, answer)
    _show_pending(console, answer)
    for breach in answer.budgets:
        text = f"budget {breach.budget} allows {plural(breach.allowed, 'eviction')}, not"
        console.print(Text(f"{text} {breach.evicted:,}: it forbids {names(breach.pods)}", "red"))
    if answer.unmanaged:
        pods = names(answer.unmanaged)
        text = f"no controller would make these again, although they are counted here: {pods}"
        console.print(Text(text, "yellow"), soft_wrap=True)
    if answer.preempted:
        evicted = plural(len(answer.preempted), "pod")
        console.print(Text(f"preemption evicts {evicted}: {names(answer.preempted)}", "yellow"))
    if answer.budgets or answer.unmanaged or answer.preempted:
        console.print()
    if answer.before is not None and answer.after is not None:
        show_sides(console, ("before", "after"), (answer.before, answer.after))


def _summary(answer: WhatIfAnswer) -> str:
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (len(answer.moved), "moved"),
            (len(answer.placed), "newly placed"),
            (len(answer.pending), "newly pending"),
            (len(answer.gone), "gone"),
            (answer.still_waiting, "wait as before"),
        )
        if count
    ]
    return f"pods: {', '.join(parts)}" if parts else "no pod is placed otherwise"


def _show_moves(console: Console, answer: WhatIfAnswer) -> None:
    for title, moves in (("moved", answer.moved), ("newly placed", answer.placed)):
        if not moves:
            continue
        has_sources = any(move.from_ for move in moves)
        shown = table(title, "from", "to") if has_sources else table(title, "to")
        for move in moves[:ROWS]:
            shown.add_row(move.pod, *((_source(move),) if has_sources else ()), move.to)
        console.print(shown)
        console.print(more(len(moves), ROWS))


def _source(move: Move) -> str:
    return f"no node (without this, {move.from_})" if move.waits and move.from_ else move.from_


def _show_pending(console: Console, answer: WhatIfAnswer) -> None:
    if not answer.pending:
        return
    groups: dict[tuple[object, ...], list[Pending]] = {}
    for pending in answer.pending:
        groups.setdefault((pending.message, pending.refused), []).append(pending)
    shown = table("newly pending", "why")
    for group in list(groups.values())[:ROWS]:
        shown.add_row(names([one.pod for one in group]), _why(group[0]))
    console.print(shown)
    console.print(more(len(groups), ROWS))


def _why(pending: Pending) -> str:
    if not pending.refused:
        return pending.message
    return "\n".join(map(why_refused, pending.refused))


def why_refused(refused: Refused) -> str:
    """One line of a table: how many nodes, why, and by how much."""
    text = f"{plural(refused.nodes, 'node')}: {', '.join(refused.reasons)}"
    short = [f"{one.short} {one.resource} on {one.node}" for one in refused.shortages[:3]]
    if short:
        rest = ", …" if refused.nodes > len(short) else ""
        text += f"; short by {', '.join(short)}{rest}"
    return text


def _show_many(console: Console, answers: Sequence[WhatIfAnswer]) -> None:
    """A sweep: one line for each run; what all have in common stands above."""
    common = [one for one in answers[0].changes if all(one in other.changes for other in answers)]
    if common:
        console.print(Text("; ".join(common), style="bold"), soft_wrap=True)
        console.print()
    snapshots = len({one.snapshot for one in answers}) > 1
    seeds = len({one.seed for one in answers}) > 1
    numbers = ("moved", "placed", "pending", "waiting", "cpu", "imbalance")
    columns = [*(("snapshot",) if snapshots else ()), "if", *(("seed",) if seeds else ())]
    shown = table(*columns, *numbers, right=("seed", *numbers))
    for answer in answers:
        after = answer.after
        assert after is not None
        cpu = next((one for one in after.resources if one.resource == "cpu"), None)
        shown.add_row(
            *((answer.snapshot,) if snapshots else ()),
            "; ".join(one for one in answer.changes if one not in common) or "-",
            *((str(answer.seed),) if seeds else ()),
            *(f"{len(one):,}" for one in (answer.moved, answer.placed, answer.pending)),
            f"{after.waiting:,}",
            f"{cpu.utilisation * 100:.1f} %" if cpu else "",
            f"{cpu.imbalance * 100:.1f} %" if cpu else "",
        )
    console.print(shown)
    for note in dict.fromkeys(note for answer in answers for note in answer.notes):
        console.print(Text(f"note: {note}", style="yellow"))
