"""Field sets: which fields of an object a manager owns, as in `metadata.managedFields`.

A path is a tuple of steps, each spelt as in FieldsV1: `f:spec`, `k:{"name":"c"}` for an element of
a list with keys, `v:"x"` for one of a set. A field set is a plain set of paths, so that union,
intersection and difference are Python's. The schema says how deep paths go: atomic values are owned
as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from mooring.cluster.apiserver.schema import ANY, Schema

Path = tuple[str, ...]
Fields = set[Path]
Tree = dict[str, Any]  # FieldsV1: {} is a member, {".": {}, ...} a member with members below it


class Unset:
    """The absence of a value; null is a value."""


UNSET: Final = Unset()


class FieldChanges(NamedTuple):
    """What changed from one object to another."""

    removed: Fields
    modified: Fields
    added: Fields


def fields_of(value: Any, schema: Schema) -> Fields:
    """All fields that an applied object claims."""
    found: Fields = set()
    _collect(value, schema, (), found)
    return found


def compare(old: Any, new: Any, schema: Schema) -> FieldChanges:
    """The fields that were removed, changed and added."""
    found = FieldChanges(set(), set(), set())
    _compare(old, new, schema, (), found)
    return found


def with_named_fields(fields: AbstractSet[Path], schema: Schema) -> Fields:
    """The set, with the struct fields on the way to its members."""
    found = set(fields)
    for path in fields:
        here: Schema | None = schema
        for length, step in enumerate(path, start=1):
            if here is None:
                break
            if here.form == "struct" and length < len(path) and here.at(step[2:]) is not None:
                found.add(path[:length])
            here = here.at(step[2:]) if step.startswith("f:") else here.items
    return found


def without(value: Any, fields: AbstractSet[Path], schema: Schema) -> Any:
    """The object without these fields; parents that become empty stay."""
    left = _remove(value, to_tree(fields), schema)
    return {} if left is UNSET else left


# --- FieldsV1 and messages ------------------------------------------------------------------------


def to_tree(fields: Iterable[Path]) -> Tree:
    """As FieldsV1."""
    root: Tree = {}
    for path in sorted(fields):
        here = root
        for depth, step in enumerate(path, start=1):
            is_known = step in here
            here = here.setdefault(step, {})
            if is_known and not here and depth < len(path):
                here["."] = {}  # a shorter path came first: a member with members below it
    return root


def from_tree(tree: Tree) -> Fields:
    """From FieldsV1."""
    return set(_paths(tree, ()))


def _paths(tree: Tree, path: Path) -> Iterator[Path]:
    for step, below in tree.items():
        if step == ".":
            continue
        if not below or "." in below:
            yield (*path, step)
        yield from _paths(below, (*path, step))


def in_reading_order(fields: Iterable[Path]) -> list[Path]:
    """Members of a level before deeper ones."""
    return sorted(fields, key=lambda path: [*((1, step) for step in path[:-1]), (0, path[-1])])


def path_text(path: Path) -> str:
    """As messages name it: `.spec.containers[name="c"].image`."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    kind, rest = step[0], step[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    if kind == "i":
        return f"[{rest}]"
    keys = json.loads(rest)
    return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in keys.items()) + "]"


# --- elements of lists ----------------------------------------------------------------------------


def step_of(element: Any, schema: Schema) -> str:
    """The step of an element of a set or of a list with keys; ValueError if it has none."""
    if not schema.keys:
        if isinstance(element, dict):
            raise ValueError("associative list without keys has an element that's a map type")
        return f"v:{_compact(element)}"
    if not isinstance(element, dict):
        if element is None:
            raise ValueError("associative list with keys may not have a null element")
        raise ValueError("associative list with keys may not have non-map elements")
    found = {
        key.name: element.get(key.name, key.default)
        for key in schema.keys
        if key.name in element or key.default is not None
    }
    if not found:
        names = " ".join(f'"{key.name}"' for key in schema.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{_compact(found)}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _steps(elements: list[Any], schema: Schema) -> dict[str, list[Any]]:
    """The elements by step; live objects may have several without one."""
    found: dict[str, list[Any]] = {}
    for element in elements:
        found.setdefault(step_of(element, schema), []).append(element)
    return found


# --- walking --------------------------------------------------------------------------------------


def is_leaf(value: Any, schema: Schema) -> bool:
    """Whether this is owned and replaced as a whole."""
    if isinstance(value, dict):
        return schema.is_atomic
    if isinstance(value, list):
        return schema.form != "list" or schema.is_atomic
    return value is not None or schema.form not in ("struct", "map", "list") or schema.is_atomic


def _collect(value: Any, schema: Schema, path: Path, found: Fields) -> None:
    if is_leaf(value, schema):
        found.add(path)
    elif isinstance(value, list):
        for step, elements in _steps(value, schema).items():
            if len(elements) == 1:
                _collect(elements[0], schema.items, (*path, step), found)
            found.add((*path, step))
    elif value is not None:
        for name, inner in value.items():
            below = (*path, f"f:{name}")
            _collect(inner, schema.at(name) or ANY, below, found)
            is_empty = inner is None or inner == {}
            if is_empty or schema.form != "struct" or name not in schema.fields:
                found.add(below)


def _compare(old: Any, new: Any, schema: Schema, path: Path, found: FieldChanges) -> None:
    some = _or(old, _or(new, None))
    both_empty = old in (UNSET, None, {}, []) and new in (UNSET, None, {}, [])
    if is_leaf(some, schema) or both_empty or type(some) is not type(_or(new, some)):
        if old is UNSET:
            found.added.add(path)
        elif new is UNSET:
            found.removed.add(path)
        elif old != new:
            found.modified.add(path)
        return
    if isinstance(some, list):
        _compare_lists(_or(old, []), _or(new, []), schema, path, found)
    else:
        before, after = _or(old, {}), _or(new, {})
        for name in before.keys() | after.keys():
            inner = schema.at(name) or ANY
            below = (*path, f"f:{name}")
            _compare(before.get(name, UNSET), after.get(name, UNSET), inner, below, found)
    if old is UNSET:
        found.added.add(path)
    elif new is UNSET:
        found.removed.add(path)


def _compare_lists(
    old: list[Any], new: list[Any], schema: Schema, path: Path, found: FieldChanges
) -> None:
    before, after = _steps(old, schema), _steps(new, schema)
    for step in before.keys() | after.keys():
        was, now = before.get(step, []), after.get(step, [])
        below = (*path, step)
        if len(was) > 1 or len(now) > 1:  # nothing tells them apart: taken as a whole
            if was != now:
                kind = found.modified if was and now else found.added if now else found.removed
                kind.add(below)
        else:
            one, other = (was or [UNSET])[0], (now or [UNSET])[0]
            _compare(one, other, schema.items, below, found)


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is UNSET or value is None else value


def _remove(value: Any, tree: Tree, schema: Schema) -> Any:
    """The remaining value; UNSET if nothing remains, except for values that were empty before."""
    if isinstance(value, dict) and value and not schema.is_atomic:
        kept: dict[str, Any] = {}
        touched = False
        for name, inner in value.items():
            below = tree.get(f"f:{name}")
            if below is not None and _is_member(below):
                continue
            if below:
                touched = True
                left = _remove(inner, below, schema.at(name) or ANY)
                inner = ([] if isinstance(inner, list) else {}) if left is UNSET else left
            kept[name] = inner
        return kept if kept or touched else UNSET
    if isinstance(value, list) and value and not is_leaf(value, schema):
        rest: list[Any] = []
        touched = False
        for element in value:
            below = tree.get(step_of(element, schema))
            if below is not None and _is_member(below):
                continue
            if below:
                touched = True
                left = _remove(element, below, schema.items)
                element = {} if left is UNSET else left
            rest.append(element)
        return rest if rest or touched else UNSET
    return UNSET if isinstance(value, dict | list) else value


def _is_member(tree: Tree) -> bool:
    return not tree or "." in tree
