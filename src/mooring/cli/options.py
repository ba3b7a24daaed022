"""Typed options: the parsed command line becomes one frozen struct per command, here and once.

Field names are the names argparse derives from the flags, so mypy finds a misspelt option.
"""

from __future__ import annotations

import argparse
from typing import TypeVar

import msgspec


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one command."""


OptionsT = TypeVar("OptionsT", bound=CommandOptions)


def from_namespace(kind: type[OptionsT], parsed: argparse.Namespace) -> OptionsT:
    """The options of one command; each field is a flag or an argument of its parser."""
    return kind(**{field: getattr(parsed, field) for field in kind.__struct_fields__})
