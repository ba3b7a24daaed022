"""The reference names everything that a user can write: names, events, metrics, flags."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mooring
import mooring.controller
import mooring.extender
import mooring.framework as fw
import mooring.testing
from mooring import api, errors
from mooring.cli.parser import make_parser
from mooring.controller.metrics import ControllerMetrics
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.observe.family import MetricFamily
from mooring.observe.metrics import Metrics

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md")))
# The words inside of backticks and code blocks.
CODE = set(re.findall(r"[\w.]+", " ".join(re.findall(r"`+([^`]+)`+", TEXT, re.DOTALL))))
HANDLE = [name for name in vars(fw.Handle) if not name.startswith("_")]
EVENTS = [name for name in vars(fw.Event) if name.isupper()]
ACTIONS = [name for name in fw.Action.__members__ if name != "ALL"]
# What a plugin reads or calls; other members of these classes are the scheduler's.
NODES = "names get index_of take allocatable requested spare nonzero_requested pod_counts by_taints"
NODES += " unschedulable has_taints label_codes label_count label_values meeting matching"
NODES += " with_image image_spread port_taken count_pods count_pods_by"
VERDICTS = "passing of coded reject reject_all passed status each counts"


def code_has(word: str) -> bool:
    return any(word in (found, found.rpartition(".")[2]) for found in CODE)


def test_has_every_public_name_of_the_framework() -> None:
    assert [name for name in fw.__all__ if not code_has(name)] == []


@pytest.mark.parametrize("module", [mooring, mooring.testing, mooring.controller, mooring.extender])
def test_has_every_public_name_of(module: ModuleType) -> None:
    assert [name for name in module.__all__ if not code_has(name)] == []


def test_has_every_exception() -> None:
    own = [name for name, one in vars(errors).items() if one.__class__ is type]
    here = [name for name in own if vars(errors)[name].__module__ == errors.__name__]
    assert "ConfigError" in here
    assert [name for name in here if not code_has(name)] == []


def test_has_every_kind_and_function_of_the_api() -> None:
    exported = {name: one for name, one in vars(api).items() if not name.startswith("_")}
    kinds = [
        name
        for name, one in exported.items()
        if inspect.isclass(one) and issubclass(one, api.Object) and one is not api.Object
    ]
    functions = [name for name, one in exported.items() if inspect.isfunction(one)]
    assert len(kinds) > 20
    assert [name for name in (*kinds, *functions) if not code_has(name)] == []


def test_has_every_event_and_action() -> None:
    table = (REFERENCE / "events.md").read_text(encoding="utf-8")
    assert [name for name in EVENTS if f"| `fw.Event.{name}` |" not in table] == []
    assert re.findall(r"^\| `fw\.Event\.(\w+)`", table, re.MULTILINE) == EVENTS
    assert [name for name in ACTIONS if f"`{name}`" not in table] == []


@pytest.mark.parametrize(
    ("of", "members"),
    [(fw.Handle, HANDLE), (fw.Nodes, NODES.split()), (fw.Verdicts, VERDICTS.split())],
)
def test_has_every_member_that_plugins_use(of: type, members: list[str]) -> None:
    assert [name for name in members if not hasattr(of, name)] == []
    assert [name for name in members if not code_has(name)] == []


def families() -> Iterator[MetricFamily[Any]]:
    for metrics in (Metrics(), ExtenderMetrics(), ControllerMetrics()):
        yield from (one for one in vars(metrics).values() if isinstance(one, MetricFamily))


def test_has_every_metric_with_its_labels() -> None:
    page = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+ \| [^|]+) \|", page, re.MULTILINE))
    expected = {}
    for family in families():
        labels = ", ".join(f"`{label}`" for label in family.label_names) or "none"
        expected[family.name] = f"{family.kind} | {labels}"
    assert rows == expected


def flags_of(
    parser: argparse.ArgumentParser, command: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Command and flag."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from flags_of(one, (*command, name))
        elif action.help != argparse.SUPPRESS:
            for flag in action.option_strings:
                if flag.startswith("--") and flag not in ("--help", "--version", "--output"):
                    yield " ".join(command), flag


def about_flags_of(command: str) -> str:
    """What the reference says of the flags of a command: its row, its section, shared flags."""
    page = (REFERENCE / "commands.md").read_text(encoding="utf-8")
    parts = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    found = re.findall(rf"^\| `mooring {command}[` ].*$", page, re.MULTILINE)
    found += [part for head, part in parts.items() if head == f"mooring {command}"]
    shared = parts["Flags of several commands"].splitlines()
    found += [
        row for row in shared if row.startswith("| `") and f"`{command}`" in row.split(" | ")[1]
    ]
    if command in ("snapshot", "what-if", "capacity", "compare"):
        found.append(parts["Commands about a copy of a cluster"])
    if command in ("run", "controller"):
        found.append((REFERENCE / "flags.md").read_text(encoding="utf-8"))
    return "\n".join(found)


def test_has_every_flag_of_every_command() -> None:
    missing = []
    for command, flag in flags_of(make_parser()):
        if re.search(rf"{flag}(?![\w-])", about_flags_of(command)) is None:
            missing.append(f"{command} {flag}")
    assert missing == []
