"""The additionalPrinterColumns of a version, as the columns of tables."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.customresources.json_paths import BadPath, Path, first, json_path
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import Cell, Layout, layout, name_of, since

_NAME_AND_AGE: Final = layout("Name, Age:date")


def columns_of(given: list[Object]) -> Layout:
    """Name and these columns; Name and Age if there are none."""
    if not given:
        return _NAME_AND_AGE
    columns = [_NAME_AND_AGE.columns[0]]
    paths: list[tuple[str, Path]] = []
    for column in given:
        path = column["jsonPath"]
        try:
            paths.append((column["type"], json_path(path)))
        except BadPath:
            break  # as kube-apiserver: the columns before it are shown
        about = f"Custom resource definition column (in JSONPath format): {path}"
        columns.append(
            {
                "name": column["name"],
                "type": column["type"],
                "format": column.get("format", ""),
                "description": column.get("description") or about,
                "priority": column.get("priority", 0),
            }
        )

    def cells(value: Object, now: float) -> list[Cell]:
        found: list[Cell] = [name_of(value)]
        for kind, path in paths:
            found.append(_cell(first(value, path), kind, now))
        return found

    return Layout(columns, cells)


def _cell(value: Any, kind: str, now: float) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            if value is None or isinstance(value, str):
                return value
            if isinstance(value, bool):
                return "true" if value else "false"
            return msgspec.json.encode(value, order="sorted").decode()
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _age(value, now) if isinstance(value, str) else None
    return None


def _age(value: str, now: float) -> str:
    try:
        return since(value, now)
    except ValueError:
        return "<invalid>"
