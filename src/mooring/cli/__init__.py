"""The command line. Each command imports what it needs when it runs, so that `--help` is instant.

Arguments flow in, text and an exit code flow out: 0 done, 1 failed, 2 the command line
is malformed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mooring import __version__
from mooring.cli.commands import add_commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    # No command multiplies matrices: NumPy need not start one thread per core for it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = _parser()
    options = parser.parse_args(_with_command(sys.argv[1:] if argv is None else argv))
    if "run" not in options:  # no command, or one without its action
        getattr(options, "usage", parser.print_help)()
        return 2
    # `module:Class` in a configuration means a module beside the file, or in the current folder.
    sys.path.insert(0, os.getcwd())
    file = getattr(options, "file", None) or getattr(options, "config", None)
    if file and file != "-":
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    try:
        code: int = options.run(options)
    except BrokenPipeError:
        # The reader of the output has gone, as with `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _with_command(arguments: Sequence[str]) -> Sequence[str]:
    """Plain `mooring --config …` runs the scheduler, as a container's command line expects.

    Without any argument it does so only inside a cluster: on a laptop it would run a
    scheduler in whatever cluster kubectl happens to point at.
    """
    if not arguments:
        return ["run"] if os.environ.get("KUBERNETES_SERVICE_HOST") else []
    if arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version"):
        return ["run", *arguments]
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mooring", description="Kubernetes scheduling in Python.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"mooring {__version__}")
    add_commands(parser.add_subparsers(dest="command", metavar="COMMAND"))
    return parser
