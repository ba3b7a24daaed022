"""Column definitions of tables, and the formatting of cells.

The cells of the kinds are in `cells_*.py`; `table.py` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from mooring.api.meta import parse_time
from mooring.cluster.apiserver.store import Object

Cell = str | int | bool
Cells = list[Cell]

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


class Layout(msgspec.Struct, frozen=True):
    """The columns of a kind, and the cells of one object at one moment."""

    columns: list[Object]
    cells: Callable[[Object, float], Cells]


def layout(cells: Callable[[Object, float], Cells], columns: str) -> Layout:
    """Columns by name: `+Node` only with -o wide, `Desired:integer` of another type than string."""
    return Layout([_column(text) for text in columns.split(", ")], cells)


def _column(text: str) -> Object:
    name, _, kind = text.removeprefix("+").partition(":")
    is_name = name in ("Name", "Attacher")
    return {
        "name": name,
        "type": kind or "string",
        "format": "name" if is_name else "",
        "description": "",
        "priority": 1 if text.startswith("+") else 0,
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
    if passed < 10 * _MINUTE:
        return _two_units(passed, _MINUTE, "m", 1, "s")
    if passed < 3 * _HOUR:
        return f"{passed // _MINUTE}m"
    if passed < 8 * _HOUR:
        return _two_units(passed, _HOUR, "h", _MINUTE, "m")
    if passed < 2 * _DAY:
        return f"{passed // _HOUR}h"
    if passed < 8 * _DAY:
        return _two_units(passed, _DAY, "d", _HOUR, "h")
    if passed < 2 * _YEAR:
        return f"{passed // _DAY}d"
    if passed < 8 * _YEAR:
        return _two_units(passed, _YEAR, "y", _DAY, "d")
    return f"{passed // _YEAR}y"


def _two_units(seconds: int, large: int, its_letter: str, small: int, letter: str) -> str:
    count, rest = seconds // large, seconds % large // small
    return f"{count}{its_letter}{rest}{letter}" if rest else f"{count}{its_letter}"


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Object | None) -> str:
    """A label selector as one would type it; empty if it selects everything, or nothing."""
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


def containers_and_images(spec: Object) -> tuple[str, str]:
    """Two cells about the containers of a pod template."""
    containers = spec.get("containers") or ()
    names = ",".join(container.get("name", "") for container in containers)
    return names, ",".join(container.get("image", "") for container in containers)


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


def layout_of_paths(columns: str) -> Layout:
    """Columns with the paths of their cells: `Holder=spec.holderIdentity`; or Name, or Age."""
    pairs = [text.partition("=") for text in columns.split(", ")]

    def cells(value: Object, now: float) -> Cells:
        return [_cell(column, path, value, now) for column, _, path in pairs]

    return layout(cells, ", ".join(column for column, _, _ in pairs))


def _cell(column: str, path: str, value: Object, now: float) -> Cell:
    if column in ("Name", "Age"):
        return name_of(value) if column == "Name" else age(value, now)
    *parents, last = path.split(".")
    unset = {"integer": 0, "boolean": False}.get(column.partition(":")[2], "")
    found: Cell = part(value, *parents).get(last, unset)
    return found


NAME_AND_AGE: Final = layout_of_paths("Name, Age")
NAME_AND_CREATION: Final = layout_of_paths("Name, Created At:date=metadata.creationTimestamp")
