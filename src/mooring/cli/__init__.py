"""The command line. Each command imports what it needs when it runs, so that `--help` is instant.

Arguments flow in, text and an exit code flow out: 0 done, 1 failed, 2 the command line
is malformed, 128 and more for a signal. This module imports next to nothing, so that signals are
handled as soon as possible.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as that of `typing`, which takes its time to load
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _outlive_signals()
    # No command multiplies matrices: NumPy need not start one thread per core for it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from mooring.cli.output import use_plain_spellings, writing
    from mooring.observe import garbage_collection

    garbage_collection.collect_rarely()  # a tenth of the time of imports was spent on collections
    use_plain_spellings()
    with writing():
        return _run(_with_command(sys.argv[1:] if argv is None else argv))


def _run(arguments: Sequence[str]) -> int:
    from mooring.cli.parser import make_parser

    parser = make_parser(arguments[0] if arguments else "")
    options = parser.parse_args(arguments)
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
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        _outlive_signals()  # the end takes its time, too
    return code


def _outlive_signals() -> None:
    """SIGUSR1 and SIGUSR2 end a process that does nothing about them: from now on, not this one.

    Commands that run on handle them (`observe.signals`) once their modules are loaded, until their
    event loop is closed.
    """
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is signal.SIG_DFL:
            try:
                signal.signal(number, signal.SIG_IGN)
            except ValueError:  # called in a thread of another program, which has its own
                return


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
