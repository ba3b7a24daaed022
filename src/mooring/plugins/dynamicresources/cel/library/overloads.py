"""Functions by name and types: what the checker and the closures look up."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.plugins.dynamicresources.cel.types import Type, parse_type
from mooring.plugins.dynamicresources.cel.values import kind_of, no_such_overload


class Overload(msgspec.Struct, frozen=True):
    """One form of a function."""

    is_method: bool
    args: tuple[Type, ...]
    result: Type
    kinds: tuple[str | None, ...]  # of the values; None: any
    run: Callable[..., Any]


FUNCTIONS: Final[dict[str, list[Overload]]] = {}
_ROW: Final = re.compile(r"(?:(?P<on>[A-Za-z()., ]+?)\.)?(?P<args>\(.*\)) *-> *(?P<result>.+)")


def add(name: str, run: Callable[..., Any], *forms: str) -> None:
    """Forms are written `receiver.(arguments) -> result`, or without a receiver."""
    for form in forms:
        match = _ROW.fullmatch(form)
        assert match is not None, form
        wrapped = parse_type(f"args{match['args']}")
        args = wrapped[1:] if match["on"] is None else (parse_type(match["on"]), *wrapped[1:])
        kinds = tuple(_kind(one) for one in args)
        overload = Overload(match["on"] is not None, args, parse_type(match["result"]), kinds, run)
        FUNCTIONS.setdefault(name, []).append(overload)


def _kind(type_: Type) -> str | None:
    if type_[0] in ("param", "dyn"):
        return None
    return str(type_[1] if type_[0] == "opaque" else type_[0])


def runner(name: str, is_method: bool, count: int) -> Callable[..., Any]:
    """What a call of this form runs: the first overload whose types the values have."""
    rows = [
        (one.kinds, one.run)
        for one in FUNCTIONS[name]
        if one.is_method == is_method and len(one.args) == count
    ]
    if len(rows) == 1 and not any(rows[0][0]):
        return rows[0][1]

    def run(*values: Any) -> Any:
        given = [kind_of(value) for value in values]
        for kinds, call in rows:
            for kind, wanted in zip(given, kinds, strict=True):
                if wanted is not None and wanted != kind:
                    break
            else:
                return call(*values)
        raise no_such_overload()

    return run
