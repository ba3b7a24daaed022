"""The command line. Each command imports what it needs when it runs, so that `--help` is instant.

Arguments flow in, text and an exit code flow out: 0 done, 1 what was asked for can't be done, 2 the
question itself is malformed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mooring import __version__
from mooring.cli.cluster_flags import add_cluster_flags
from mooring.cli.run.flags import add_flags

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(_with_command(sys.argv[1:] if argv is None else argv))
    if options.command is None:
        parser.print_help()
        return 2
    if getattr(options, "action", "") is None:  # of `config`, `cluster` or `new`
        options.usage()
        return 2
    # `module:Class` in a configuration means a module beside the file, or in the current folder.
    sys.path.insert(0, os.getcwd())
    file = getattr(options, "file", None) or getattr(options, "config", None)
    if file and file != "-":
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    try:
        code: int = _run(options)
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does; nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _with_command(arguments: Sequence[str]) -> Sequence[str]:
    """Plain `mooring --config …` runs the scheduler, as a container's command line expects.

    Without any argument it does so only inside a cluster: on a laptop nobody wants a scheduler
    in whatever cluster kubectl happens to point at.
    """
    if not arguments:
        return ["run"] if os.environ.get("KUBERNETES_SERVICE_HOST") else []
    if arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version"):
        return ["run", *arguments]
    return arguments


def _run(options: argparse.Namespace) -> int:
    if options.command == "run":
        from mooring.cli.run.command import run

        return run(options)
    if options.command == "demo":
        from mooring.cli.demo.command import demo

        return demo(options.seed, stay=options.stay)
    if options.command == "evaluate":
        from mooring.cli.evaluate import evaluate

        return evaluate(options.files, options.config, options.plugin, options.jobs)
    if options.command == "cluster":
        from mooring.cli.cluster import up

        return up(options)
    if options.command == "new":
        from mooring.cli.new import new_plugin

        return new_plugin(options.name, options.folder, options.point)
    from mooring.cli import config

    action = config.validate if options.action == "validate" else config.show
    return action(options.file, options.plugin)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mooring", description="Kubernetes scheduling in Python.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"mooring {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    run = commands.add_parser(
        "run",
        help="schedule pods of a real cluster; also plain `mooring --config FILE …`",
        description="Run a scheduler for the cluster of a kubeconfig, or the one it runs in.",
        allow_abbrev=False,
    )
    add_flags(run)

    demo = commands.add_parser(
        "demo",
        help="a cluster in this process, a scheduler with a plugin, and a short story",
        description="Run a cluster in this process with a scheduler and a plugin, and tell a short"
        " story: a rollout, a spread, a pod that does not fit, a node added, a preemption.",
    )
    demo.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    demo.add_argument(
        "--stay", action="store_true", help="keep the cluster for kubectl until Ctrl-C"
    )

    evaluate = commands.add_parser(
        "evaluate",
        help="would these pods fit, where and why: scenario lines in, result lines out",
        description="Read scenarios (one JSON object per line: a pod, a frozen cluster, a profile),"
        " evaluate every node, and write one JSON result line each.",
    )
    evaluate.add_argument(
        "files", nargs="*", metavar="SCENARIOS", help="files, .gz too; none or - is standard input"
    )
    evaluate.add_argument("--config", metavar="FILE", help="for scenarios without a profile")
    evaluate.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="processes (default: one per CPU)"
    )
    _add_plugin_option(evaluate)

    _add_cluster(commands)
    _add_new(commands)

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
        action.add_argument("file", metavar="FILE", help="the configuration; - is standard input")
        _add_plugin_option(action)
    return parser


def _add_cluster(commands: _Commands) -> None:
    cluster = commands.add_parser(
        "cluster",
        help="a cluster of simulated nodes in one process, for kubectl and any scheduler",
        description="Work with a cluster that exists only in one process.",
    )
    cluster.set_defaults(usage=cluster.print_help)
    actions = cluster.add_subparsers(dest="action", metavar="ACTION")
    text = "run an API server with simulated nodes until it is told to stop"
    add_cluster_flags(actions.add_parser("up", help=text, description=text.capitalize() + "."))


def _add_new(commands: _Commands) -> None:
    new = commands.add_parser(
        "new", help="start something of your own", description="Start something of your own."
    )
    new.set_defaults(usage=new.print_help)
    actions = new.add_subparsers(dest="action", metavar="WHAT")
    text = "make a folder with a plugin, its configuration, and a test that passes"
    plugin = actions.add_parser("plugin", help=text, description=text.capitalize() + ".")
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


def _add_plugin_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="make a plugin class known by its name; may be repeated",
    )
