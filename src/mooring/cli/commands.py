"""The shape of the command line: what each command understands, and who runs it.

A command's function is imported when it is called: only shapes are loaded for `--help`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from mooring.cli.cluster_flags import add_cluster_flags
from mooring.cli.run.flags import add_flags

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_commands(commands: Commands) -> None:
    """All there are, in the order of `--help`."""
    _add_run(commands)
    _add_demo(commands)
    _add_evaluate(commands)
    _add_cluster(commands)
    _add_new(commands)
    _add_config(commands)


def calls(function: str) -> Callable[[argparse.Namespace], int]:
    """For `set_defaults(run=…)`: `module:function` of this room, which gets the options."""
    module, _, name = function.partition(":")

    def call(options: argparse.Namespace) -> int:
        code: int = getattr(import_module(f"mooring.cli.{module}"), name)(options)
        return code

    return call


def _add_run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="schedule pods of a real cluster; also plain `mooring --config FILE …`",
        description="Run a scheduler for the cluster of a kubeconfig, or the one it runs in.",
        allow_abbrev=False,
    )
    run.set_defaults(run=calls("run.command:run"))
    add_flags(run)


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="a cluster in this process, a scheduler with a plugin, and a short story",
        description="Run a cluster in this process with a scheduler and a plugin, and tell a short"
        " story: a rollout, a spread, a pod that does not fit, a node added, a preemption.",
    )
    demo.set_defaults(run=calls("demo.command:run"))
    demo.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    demo.add_argument(
        "--stay", action="store_true", help="keep the cluster for kubectl until Ctrl-C"
    )


def _add_evaluate(commands: Commands) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="would these pods fit, where and why: scenario lines in, result lines out",
        description="Read scenarios (one JSON object per line: a pod, a frozen cluster, a profile),"
        " evaluate every node, and write one JSON result line each.",
    )
    evaluate.set_defaults(run=calls("evaluate:run"))
    evaluate.add_argument(
        "files", nargs="*", metavar="SCENARIOS", help="files, .gz too; none or - is standard input"
    )
    evaluate.add_argument("--config", metavar="FILE", help="for scenarios without a profile")
    evaluate.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="processes (default: one per CPU)"
    )
    add_plugin_option(evaluate)


def _add_cluster(commands: Commands) -> None:
    cluster = commands.add_parser(
        "cluster",
        help="a cluster of simulated nodes in one process, for kubectl and any scheduler",
        description="Work with a cluster that exists only in one process.",
    )
    cluster.set_defaults(usage=cluster.print_help)
    actions = cluster.add_subparsers(dest="action", metavar="ACTION")
    text = "run an API server with simulated nodes until it is told to stop"
    up = actions.add_parser("up", help=text, description=text.capitalize() + ".")
    up.set_defaults(run=calls("cluster:up"))
    add_cluster_flags(up)


def _add_new(commands: Commands) -> None:
    new = commands.add_parser(
        "new", help="start something of your own", description="Start something of your own."
    )
    new.set_defaults(usage=new.print_help)
    actions = new.add_subparsers(dest="action", metavar="WHAT")
    text = "make a folder with a plugin, its configuration, and a test that passes"
    plugin = actions.add_parser("plugin", help=text, description=text.capitalize() + ".")
    plugin.set_defaults(run=calls("new:run"))
    plugin.add_argument("name", metavar="NAME", help="such as PreferSsd or prefer-ssd")
    plugin.add_argument(
        "--folder", default="", metavar="DIR", help="where to put it (default: ./prefer-ssd)"
    )
    plugin.add_argument(
        "--point",
        action="append",
        default=[],
        choices=("pre-enqueue", "filter", "score", "post-bind"),
        help="what to begin with; may be repeated (default: filter and score)",
    )


def _add_config(commands: Commands) -> None:
    config = commands.add_parser(
        "config",
        help="check or complete a KubeSchedulerConfiguration file",
        description="Work with KubeSchedulerConfiguration files (kubescheduler.config.k8s.io/v1).",
    )
    config.set_defaults(usage=config.print_help)
    actions = config.add_subparsers(dest="action", metavar="ACTION")
    for name, text in (
        ("validate", "list every problem of a file, each with its place"),
        ("show", "print the effective configuration after defaults, as YAML"),
    ):
        action = actions.add_parser(name, help=text, description=text.capitalize() + ".")
        action.set_defaults(run=calls(f"config:{name}"))
        action.add_argument("file", metavar="FILE", help="the configuration; - is standard input")
        add_plugin_option(action)


def add_plugin_option(parser: argparse.ArgumentParser) -> None:
    """`--plugin module:Class`, for commands that read a configuration."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="make a plugin class known by its name; may be repeated",
    )
