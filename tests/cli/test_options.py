"""Every flag and argument of a command is a field of its options, and the other way round."""

import argparse
from typing import get_type_hints

import pytest

from mooring.cli.capacity import CapacityOptions
from mooring.cli.cluster import ClusterOptions
from mooring.cli.cluster_scale import ScaleOptions
from mooring.cli.compare import CompareOptions
from mooring.cli.config import ConfigOptions, ConvertOptions
from mooring.cli.controller import ControllerOptions
from mooring.cli.demo.command import DemoOptions
from mooring.cli.doctor.command import DoctorOptions
from mooring.cli.evaluate import EvaluateOptions
from mooring.cli.explain import ExplainOptions
from mooring.cli.extender import ExtenderOptions
from mooring.cli.manifests.options import ManifestOptions
from mooring.cli.new import NewPluginOptions
from mooring.cli.options import CommandOptions, from_namespace
from mooring.cli.parser import make_parser
from mooring.cli.records import RecordsOptions
from mooring.cli.replay import ReplayOptions
from mooring.cli.run.flags import whole_number
from mooring.cli.run.options import RunOptions
from mooring.cli.snapshot import SnapshotOptions
from mooring.cli.top import TopOptions
from mooring.cli.ui import UiOptions
from mooring.cli.waiting import QueueCommandOptions
from mooring.cli.what_if import WhatIfOptions

COMMANDS: list[tuple[str, type[CommandOptions]]] = [
    ("run", RunOptions),
    ("demo", DemoOptions),
    ("explain pod", ExplainOptions),
    ("ui file", UiOptions),
    ("snapshot -o file", SnapshotOptions),
    ("what-if file", WhatIfOptions),
    ("capacity file pod", CapacityOptions),
    ("compare file config", CompareOptions),
    ("evaluate", EvaluateOptions),
    ("cluster up", ClusterOptions),
    ("cluster scale a=1", ScaleOptions),
    ("controller a:b", ControllerOptions),
    ("extender", ExtenderOptions),
    ("new plugin Name", NewPluginOptions),
    ("config validate file", ConfigOptions),
    ("config show file", ConfigOptions),
    ("config convert file", ConvertOptions),
    ("manifests --name s", ManifestOptions),
    ("doctor", DoctorOptions),
    ("top", TopOptions),
    ("queue", QueueCommandOptions),
    ("records file", RecordsOptions),
    ("replay folder", ReplayOptions),
]


@pytest.mark.parametrize(("words", "kind"), COMMANDS)
def test_fields_are_the_flags_of_the_command(words: str, kind: type[CommandOptions]) -> None:
    parsed = make_parser().parse_args(words.split())
    assert set(vars(parsed)) - {"command", "action", "run", "usage"} == set(kind.__struct_fields__)
    options = from_namespace(kind, parsed)
    for field, hint in get_type_hints(kind).items():
        value = getattr(options, field)
        if hint in (str, int, bool, float):
            assert type(value) is hint, field


def test_every_command_has_typed_options() -> None:
    named = {words.split(" ")[0] for words, _ in COMMANDS}
    (actions,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert named == set(actions.choices)


def test_ignored_flags_are_noted_whatever_their_value() -> None:
    words = ["run", "--profiling=false", "--vmodule", "x=1", "--contention-profiling"]
    options = from_namespace(RunOptions, make_parser().parse_args(words))
    assert set(options.ignored) == {"--profiling", "--vmodule", "--contention-profiling"}


def test_a_controller_has_no_flag_of_scheduling_decisions() -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["controller", "a:b", "--check-decisions", "0.1"])


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [("1", True), ("1000", True), ("0", False), ("1001", False), ("-1", False), ("x", False)],
)
def test_a_whole_number_is_within_its_bounds(text: str, is_fine: bool) -> None:
    parse = whole_number(1, 1000)
    if is_fine:
        assert parse(text) == int(text)
    else:
        with pytest.raises(argparse.ArgumentTypeError, match=f"expected 1 to 1000, got '{text}'"):
            parse(text)
