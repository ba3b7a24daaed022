"""What `what-if`, `capacity` and `compare` have in common: manifests, configurations, output."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import yaml
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mooring import config as cfg
from mooring.api import core
from mooring.api.resource import ResourceClaimTemplate
from mooring.cli.config import read_configuration, registry_with
from mooring.cli.sources import SourceOptions, load, tell
from mooring.errors import ConfigError, Problem
from mooring.lens.reading import read_manifests
from mooring.lens.snapshot import ClusterState, MissingKind, Snapshot
from mooring.simulator.answers import Answer, Side
from mooring.simulator.workloads import is_workload, pods_of, template_of

ROWS: Final = 20  # of a table; all of them are in the data

A = TypeVar("A", bound=Answer)


class SweepOptions(SourceOptions, frozen=True, kw_only=True):
    """The flags of a command with a run for each cluster, configuration and seed."""

    configs: Sequence[str]
    plugin: Sequence[str]
    reschedule: bool
    also: Sequence[str]
    seed: Sequence[int]
    jobs: int
    dask: str
    output: str


# --- what is read --------------------------------------------------------------------------------


def load_all(options: SourceOptions, also: Sequence[str]) -> list[tuple[str, Snapshot]]:
    """All clusters of a command line, with their names."""
    sources = [options.source, *also]
    return [
        (one, load(msgspec.structs.replace(options, source=one), quiet=True)) for one in sources
    ]


def read_config(file: str, plugins: Sequence[str]) -> str:
    """The text of a configuration of any version, as v1; it may use these `--plugin`s."""
    return cfg.to_v1_yaml(read_configuration(file, registry_with(plugins)))


def read_applied(files: Sequence[str]) -> ClusterState:
    """The objects of manifests; workloads count as their pods."""
    found: dict[str, list[object]] = {}
    for file in files:
        snapshot, others = read_manifests(Path(file))
        tell(snapshot)
        for field in snapshot.cluster.__struct_fields__:
            found.setdefault(field, []).extend(getattr(snapshot.cluster, field))
        for document in others:
            if is_workload(document):
                found.setdefault("pods", []).extend(pods_of(document, file))
            else:
                print(f"{file}: not used: {document.get('kind')}", file=sys.stderr)
    return ClusterState(**{field: tuple(values) for field, values in found.items()})  # type: ignore[arg-type]  # by field


def read_shapes(
    files: Sequence[str],
) -> tuple[tuple[core.Pod, ...], tuple[ResourceClaimTemplate, ...]]:
    """The pods of manifests, one of each workload; and templates of claims beside them."""
    shapes: list[core.Pod] = []
    templates: list[ResourceClaimTemplate] = []
    for file in files:
        snapshot, others = read_manifests(Path(file))
        templates += snapshot.cluster.resourceclaimtemplates
        found = [*snapshot.cluster.pods]
        found += [template_of(one, file) for one in others if is_workload(one)]
        if not found:
            raise ConfigError([Problem(file, "expected a Pod, or a workload with a template")])
        shapes += found
    return tuple(shapes), tuple(templates)


# --- what is printed -----------------------------------------------------------------------------


def print_answers(answers: Sequence[A], output: str, show: Callable[[Console, A], None]) -> None:
    """As tables or as data; several answers are a list."""
    if output == "table":
        with tables() as console:
            for number, answer in enumerate(answers):
                if number:
                    console.rule(style="dim")
                show(console, answer)
                show_weaknesses(console, answer)
        return
    data = msgspec.to_builtins(answers[0] if len(answers) == 1 else list(answers))
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n")
    else:
        yaml.safe_dump(data, sys.stdout, sort_keys=False, allow_unicode=True)


@contextmanager
def tables() -> Iterator[Console]:
    """What is printed on it goes to standard output, without blanks at the ends of lines."""
    console = Console(highlight=False)
    with console.capture() as printed:
        yield console
    sys.stdout.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))


def show_weaknesses(console: Console, answer: Answer) -> None:
    """What the answer does not take into account."""
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="yellow"))
    if answer.missing:
        console.print(Text(f"could not be read: {missing_kinds(answer.missing)}", style="yellow"))


def missing_kinds(missing: Sequence[MissingKind]) -> str:
    return ", ".join(one.resource for one in missing)


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A plain table; `right` are the columns of numbers."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        is_number = column in right
        found.add_column(column, justify="right" if is_number else "left", overflow="fold")
    return found


def more(count: int, shown: int) -> str:
    """What stands below a table that is cut."""
    return f"… and {count - shown:,} more; all of them with -o json" if count > shown else ""


def names(found: Sequence[str], most: int = 3) -> str:
    """The first of many names."""
    rest = len(found) - most
    return ", ".join(found[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def plural(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def show_sides(console: Console, titles: tuple[str, str], sides: tuple[Side, Side]) -> None:
    """Both sides of a comparison in figures."""
    shown = table("", *titles, right=titles)
    first, second = sides
    for label, values in (
        ("nodes", (first.nodes, second.nodes)),
        ("pods", (first.pods, second.pods)),
        ("waiting", (first.waiting, second.waiting)),
        ("preempted", (first.preempted, second.preempted)),
    ):
        if label == "preempted" and not any(values):
            continue
        shown.add_row(label, *(f"{value:,}" for value in values))
    others = {one.resource: one for one in second.resources}
    for one in first.resources:
        other = others.get(one.resource)
        if other is None or not (one.utilisation or other.utilisation) or one.resource == "pods":
            continue
        shown.add_row(
            f"{one.resource} requested", _share(one.utilisation), _share(other.utilisation)
        )
        for label, mine, theirs in (
            ("imbalance", one.imbalance, other.imbalance),
            ("fragmentation", one.fragmentation, other.fragmentation),
        ):
            if mine or theirs:
                shown.add_row(f"  {label}", _share(mine), _share(theirs))
    console.print(shown)


def _share(value: float) -> str:
    return f"{value * 100:.1f} %"
