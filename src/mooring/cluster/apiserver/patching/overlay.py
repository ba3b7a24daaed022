"""Server-side apply: the applied object merged into the live one, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mooring.cluster.apiserver.patching.fieldsets import UNSET, is_leaf, path_text, step_of
from mooring.cluster.apiserver.schema import ANY, Schema

_NUMBERS: Final = ("int32", "int64", "double")
# May be written as a number, too, or as a schema or a boolean.
_FREE: Final = ("quantity", "intorstring", "schemaorlist", "schemaorbool")


def overlay(live: Any, applied: Any, schema: Schema) -> Any:
    """The live object with what was applied on top."""
    merged = _merge(live, applied, schema)
    return {} if merged is UNSET else merged


def _merge(live: Any, applied: Any, schema: Schema) -> Any:
    if applied is UNSET:
        return live
    if live is UNSET or is_leaf(applied, schema) or not (live or applied):
        return applied
    if isinstance(applied, list) and isinstance(live, list):
        return _merge_lists(live, applied, schema)
    if isinstance(live, dict) and isinstance(applied, dict | None):
        merged = {
            name: _merge(
                live.get(name, UNSET), (applied or {}).get(name, UNSET), schema.at(name) or ANY
            )
            for name in {**live, **(applied or {})}
        }
        return {name: value for name, value in merged.items() if value is not UNSET}
    return live if applied is None else applied


def _merge_lists(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    """In the order of the applied list; elements of the live list alone keep their place.

    Live elements without a step are kept as they are until one of them is applied.
    """
    before = [(step_of(element, schema), element) for element in live]
    steps = [step_of(element, schema) for element in applied]
    ours = dict(zip(steps, applied, strict=True))
    theirs: dict[str, Any] = {}
    for step, element in before:
        theirs[step] = UNSET if step in theirs else element
    shared = [step for step in steps if step in theirs]
    merged: list[Any] = []
    done: set[str] = set()
    here = 0  # in the live list
    for step in steps:
        # Skip live elements up to this one, or to the next applied one.
        while here < len(before) and before[here][0] != step:
            other, element = before[here]
            if other not in ours:
                merged.append(element)
            elif not shared or other == shared[0]:
                here += other in done
                break
            here += 1
        if here < len(before) and before[here][0] == step:
            here += 1
        merged.append(_merge(theirs.get(step, UNSET), ours[step], schema.items))
        done.add(step)
        if shared and shared[0] == step:
            shared.pop(0)
    return merged + [element for other, element in before[here:] if other not in ours]


# --- checks against the schema --------------------------------------------------------------------


def schema_error(value: Any, schema: Schema) -> str:
    """The server's message about an applied object that does not match; empty if it does."""
    found = sorted(_schema_errors(value, schema, ()))
    return found[0] if len(found) == 1 else "\n  ".join(["errors:", *found]) if found else ""


def _schema_errors(value: Any, schema: Schema, path: tuple[str, ...]) -> Iterator[str]:
    if value is None or schema.form == "any":
        return
    if schema.form == "value":
        if said := _wrong_value(value, schema.name):
            yield f"{path_text(path)}: {said}"
    elif schema.form == "list":
        yield from _list_errors(value, schema, path)
    elif not isinstance(value, dict):
        yield f"{path_text(path)}: expected map, got &{{{_shown(value)}}}"
    else:
        for name, inner in value.items():
            below = (*path, f"f:{name}")
            within = schema.at(name)
            if within is None:
                yield f"{path_text(below)}: field not declared in schema"
            else:
                yield from _schema_errors(inner, within, below)


def _list_errors(value: Any, schema: Schema, path: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path_text(path)}: expected list, got &{{{_shown(value)}}}"
        return
    seen: set[str] = set()
    for place, element in enumerate(value):
        step = f"i:{place}"
        if not schema.is_atomic:
            try:
                step = step_of(element, schema)
            except ValueError as error:
                yield f"{path_text(path)}: element {place}: {error}"
                continue
            if step in seen:
                yield f"{path_text(path)}: duplicate entries for key {path_text((step,))}"
                continue
            seen.add(step)
        yield from _schema_errors(element, schema.items, (*path, step))


def _wrong_value(value: Any, name: str) -> str:
    if name in _FREE:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = f"&value.valueUnstructured{{Value:{_shown(value)}}}"
    if name in _NUMBERS:
        kind = "string" if isinstance(value, str) else shown
        return "" if is_number else f"expected numeric (int or float), got {kind}"
    if name == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {shown}"
    return "" if isinstance(value, str) else f"expected string, got {shown}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
