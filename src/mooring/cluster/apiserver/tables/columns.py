"""Column definitions of tables, and the formatting of cells.

The columns of the kinds are in `cells_*.py`; `response_format.py` makes the tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from mooring.api.meta import parse_time
from mooring.cluster.apiserver.store import Object

Cell = str | int | float | bool | None
Cells = Mapping[str, Cell]  # by column

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"

_COLUMN: Final = re.compile(
    r"(?P<wide>\+?)(?P<name>[^:=]+)(:(?P<type>\w+))?(=(?P<path>[\w.]+)(\|(?P<unset>.+))?)?"
)
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
# A unit, the next smaller unit, the age up to which both are shown, and up to which the first is.
_UNITS: Final = (
    (_MINUTE, "m", 1, "s", 10 * _MINUTE, 3 * _HOUR),
    (_HOUR, "h", _MINUTE, "m", 8 * _HOUR, 2 * _DAY),
    (_DAY, "d", _HOUR, "h", 8 * _DAY, 2 * _YEAR),
    (_YEAR, "y", _DAY, "d", 8 * _YEAR, math.inf),
)


class Layout(msgspec.Struct, frozen=True):
    """The columns of a kind, and the cells of one object at one moment."""

    columns: list[Object]
    cells: Callable[[Object, float], list[Cell]]


def layout(
    columns: str, computed: Callable[[Object, float], Cells] = lambda value, now: {}
) -> Layout:
    """Columns separated by commas, such as `+Desired:integer=spec.replicas|1`.

    After a `+` a column is only shown with -o wide. Its type is string unless given after a colon.
    The cell is `computed`, or the value at the path, or else the text after the bar. Name and Age
    need no path.
    """
    found = [_parsed(text) for text in columns.split(", ")]
    paths = [(one["name"], one["path"].split("."), _unset(one)) for one in found]

    def cells(value: Object, now: float) -> list[Cell]:
        known = {"Name": name_of(value), "Age": age(value, now), **computed(value, now)}
        return [
            known[name] if name in known else part(value, *path[:-1]).get(path[-1], unset)
            for name, path, unset in paths
        ]

    return Layout([_definition(one) for one in found], cells)


def _parsed(column: str) -> dict[str, str]:
    match = _COLUMN.fullmatch(column)
    if match is None:
        raise ValueError(f"expected a column such as +Name:type=path|unset, got {column!r}")
    return match.groupdict("")


def _unset(column: Mapping[str, str]) -> Cell:
    if text := column["unset"]:
        return int(text) if text.isdecimal() else text
    return {"integer": 0, "boolean": False}.get(column["type"], "")


def _definition(column: Mapping[str, str]) -> Object:
    return {
        "name": column["name"],
        "type": column["type"] or "string",
        "format": "name" if column["name"] in ("Name", "Attacher") else "",
        "description": "",
        "priority": 1 if column["wide"] else 0,
    }


# --- cells ----------------------------------------------------------------------------------------


def name_of(value: Object) -> str:
    return str(value["metadata"]["name"])


def age(value: Object, now: float) -> str:
    return since(value["metadata"].get("creationTimestamp"), now)


def since(moment: str | None, now: float) -> str:
    return human_duration(now - parse_time(moment)) if moment else UNKNOWN


def human_duration(seconds: float) -> str:
    """Two or three significant figures: 59s, 3m5s, 7h20m, 2d3h, 400d, 3y12d."""
    passed = int(seconds)
    if passed < -1:
        return "<invalid>"
    if passed < 2 * _MINUTE:
        return f"{max(passed, 0)}s"
    unit, letter, smaller, its_letter, two_until, _ = next(
        row for row in _UNITS if passed < row[-1]
    )
    rest = passed % unit // smaller
    text = f"{passed // unit}{letter}"
    return f"{text}{rest}{its_letter}" if rest and passed < two_until else text


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Object | None) -> str:
    """A label selector in kubectl's notation; empty if it selects everything, or nothing."""
    selector = selector or {}
    parts = [(key, f"{key}={value}") for key, value in selector.get("matchLabels", {}).items()]
    for test in selector.get("matchExpressions", ()):
        key, values = test["key"], ",".join(sorted(test.get("values") or ()))
        spelling = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append((key, spelling.get(test["operator"], "<error>")))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def containers_and_images(template: Object) -> Cells:
    """Two cells about the containers of a pod template."""
    containers = part(template, "spec").get("containers") or ()
    names = ",".join(container.get("name", "") for container in containers)
    images = ",".join(container.get("image", "") for container in containers)
    return {"Containers": names, "Images": images}


def is_true(conditions: Iterable[Object] | None, kind: str) -> bool:
    """Whether a condition is there and holds."""
    for condition in conditions or ():
        if condition.get("type") == kind:
            return bool(condition.get("status") == "True")
    return False


def part(value: Object, *path: str) -> Any:
    """The value at a path, or an empty map."""
    for name in path:
        value = value.get(name) or {}
    return value
