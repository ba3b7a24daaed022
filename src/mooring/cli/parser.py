"""The parser of the command line, which suggests the command that was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from mooring import __version__
from mooring.cli.commands import add_commands
from mooring.observe.suggestions import did_you_mean

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_WRONG_CHOICE: Final = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """Also the parser of each command."""

    def error(self, message: str) -> NoReturn:
        found = _WRONG_CHOICE.search(message)
        if found is not None:
            known = [word.strip(" '") for word in found[2].split(",")]
            message += did_you_mean(found[1], known)
        super().error(message)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse would not tell that it could not write.
        (file or sys.stderr).write(message)


def make_parser(called: str = "") -> argparse.ArgumentParser:
    """The parser of the command that is called, or of all."""
    parser: argparse.ArgumentParser = Parser(
        prog="mooring", description="Kubernetes scheduling in Python.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"mooring {__version__}")
    add_commands(parser.add_subparsers(dest="command", metavar="COMMAND"), called)
    return parser
