"""Runs several `mooring run` from one start: imports take a second each time, forks nothing.

    python -m tests.deploy.fork_schedulers LIST

LIST is a JSON file with a command line and a log file for each. They end with this process.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from mooring.cli import main
from mooring.runtime.registry import Registry


def run_all(wanted: Sequence[dict[str, Any]]) -> None:
    """Start them, and wait until all have ended."""
    Registry.discover()  # imports the plugins
    gc.freeze()
    children = [_fork(each["arguments"], Path(each["log"])) for each in wanted]

    def end(number: int, frame: FrameType | None) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)  # some wait for volumes that nobody will ever make

    signal.signal(signal.SIGTERM, end)
    for child in list(children):
        os.waitpid(child, 0)
        children.remove(child)  # its number may be somebody else's by now


def _fork(arguments: Sequence[str], log: Path) -> int:
    child = os.fork()
    return child or _become(arguments, log)


def _become(arguments: Sequence[str], log: Path) -> NoReturn:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = 1
    try:
        code = main(arguments)
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    run_all(json.loads(Path(sys.argv[1]).read_text()))
