r"""JSON paths of printer columns, scale subresources and selectable fields.

A path is fields, indexes and filters: `.spec.rows[0]`, `.a\.b`, `['a.b']`, `[*]`, `..a`,
`[?(@.type=="Ready")]`. A column shows the first value that it finds.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.store import Object

_STEP: Final = re.compile(
    r"""\.\.(?P<deep>[^.\[\]]+)
    |\.(?P<field>(?:\\.|[^.\[\\])+)
    |\['(?P<quoted>[^']*)'\]
    |\[\s*(?P<index>-?\d+)\s*\]
    |\[\s*(?P<start>-?\d*)\s*:\s*(?P<end>-?\d*)\s*(?::\s*\d*\s*)?\]
    |\[\s*\*\s*\]|\.\*
    |\[\?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<test>==|!=|<=|>=|<|>)\s*(?P<value>.*?)\s*)?\)\]
    """,
    re.VERBOSE,
)


_ORDERED: Final = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


class BadPath(ValueError):
    """A path that can't be read."""


class FilterStep(msgspec.Struct, frozen=True):
    """Elements whose value at a path compares to another value."""

    path: tuple[Any, ...]
    test: str
    value: Any


class SliceStep(msgspec.Struct, frozen=True):
    """All elements, or a slice of them."""

    start: int | None = None
    end: int | None = None


class DescentStep(msgspec.Struct, frozen=True):
    """A value and everything in it."""


Step = str | int | FilterStep | SliceStep | DescentStep
Path = tuple[Step, ...]


@lru_cache(maxsize=4096)
def json_path(text: str, *, whole_keys: bool = False) -> Path:
    """The steps of a path; raises BadPath.

    With `whole_keys` a quoted key is one field, as in the paths of rules and of selectable fields;
    otherwise its dots count, as client-go reads it.
    """
    place, steps = 0, list[Step]()
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise BadPath(f"expected [ or . but got: {text[place:].partition('.')[0]}")
        if match["deep"] is not None:
            steps += (DescentStep(), match["deep"])
        elif match["quoted"] is not None and not whole_keys:
            steps += json_path(f".{match['quoted']}")
        else:
            steps.append(_step(match))
        place = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["field"] is not None:
        return re.sub(r"\\(.)", r"\1", match["field"])
    if match["quoted"] is not None:
        return match["quoted"]
    if match["index"] is not None:
        return int(match["index"])
    if match["path"] is not None:
        return FilterStep(json_path(match["path"]), match["test"] or "", _literal(match["value"]))
    start, end = match["start"], match["end"]
    return SliceStep(int(start) if start else None, int(end) if end else None)


def _literal(text: str | None) -> Any:
    if text is None:
        return None
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return msgspec.UNSET  # a bare word: such a filter is accepted, and finds nothing


def find(value: Any, path: Path) -> Iterator[Any]:
    """All values at a path."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield from find(value[step], rest)
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield from find(value[step], rest)
    elif isinstance(step, SliceStep):
        for part in _parts(value)[step.start : step.end]:
            yield from find(part, rest)
    elif isinstance(step, DescentStep):
        yield from find(value, rest)
        for part in _parts(value):
            yield from find(part, path)
    elif isinstance(value, list):
        for part in value:
            if any(_passes(found, step) for found in find(part, step.path)):
                yield from find(part, rest)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _passes(found: Any, step: FilterStep) -> bool:
    wanted = step.value
    if wanted is msgspec.UNSET:
        return False
    match step.test:
        case "":
            return True
        case "==":
            return bool(found == wanted)
        case "!=":
            return bool(found != wanted)
    if isinstance(found, bool) or type(found) is not type(wanted) or isinstance(found, dict | list):
        return False
    return bool(_ORDERED[step.test](found, wanted))


def first(value: Any, path: Path) -> Any:
    """The first value at a path; None if there is none."""
    return next(find(value, path), None)


def put_at(value: Object, path: Path, found: Any) -> None:
    """Set the value at a path of fields, and make the objects on the way."""
    for step in path[:-1]:
        value = value.setdefault(str(step), {})
    value[str(path[-1])] = found


def schema_at(schema: Object, path: Path) -> Object | None:
    """The JSON schema of the field at a path; None if there is no such field."""
    here: Any = schema
    for step in path:
        if not isinstance(here, dict) or not isinstance(step, str):
            return None
        here = (here.get("properties") or {}).get(step)
    return here if isinstance(here, dict) else None
