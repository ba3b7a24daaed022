"""What a check has found, and how a person sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from rich.console import Console
from rich.text import Text

Level = Literal["ok", "warning", "problem"]

_STYLES: Final[dict[Level, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "problem": ("✗", "red"),
}


class DoctorFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One result of a check; `advice` says what to do, unless all is well."""

    check: str
    level: Level
    text: str
    advice: str = ""


def ok(check: str, text: str) -> DoctorFinding:
    return DoctorFinding(check=check, level="ok", text=text)


def warning(check: str, text: str, advice: str) -> DoctorFinding:
    return DoctorFinding(check=check, level="warning", text=text, advice=advice)


def problem(check: str, text: str, advice: str) -> DoctorFinding:
    return DoctorFinding(check=check, level="problem", text=text, advice=advice)


def show(found: Sequence[DoctorFinding], console: Console) -> None:
    """A line for each finding, with its advice below."""
    width = max((len(one.check) for one in found), default=0)
    for one in found:
        sign, style = _STYLES[one.level]
        line = Text.assemble((f"{sign} ", style), f"{one.check:<{width}}  ", one.text)
        console.print(line, soft_wrap=True)
        if one.advice:
            console.print(Text(f"  {'':<{width}}  → {one.advice}", "dim"), soft_wrap=True)
    console.print(_summary(found))


def _summary(found: Sequence[DoctorFinding]) -> str:
    problems = sum(one.level == "problem" for one in found)
    warnings = sum(one.level == "warning" for one in found)
    if not problems and not warnings:
        return "All is well."
    return f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}."


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
