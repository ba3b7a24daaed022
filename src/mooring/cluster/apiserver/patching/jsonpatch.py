"""JSON patches (RFC 6902), as kube-apiserver applies them.

It differs from the RFC: negative indices count from the end, and `replace` adds a missing key.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.client.errors import StatusError
from mooring.cluster.apiserver._gotext import go_kind
from mooring.cluster.apiserver.errors import bad_request, rejected

_MOST_OPERATIONS: Final = 10_000
_MOST_COPIED: Final = 3 * 1024 * 1024  # bytes; a list that is copied into itself doubles
_MISSING: Final = object()


class _DoesNotApply(Exception):
    """The document does not have what the patch refers to; the server gives no detail."""


def apply_operations(document: Any, operations: Any) -> Any:
    """The document after all operations; the argument must not be used any more."""
    steps = _checked(operations)
    copied = 0
    try:
        for step in steps:
            apply = _OPERATIONS.get(step.get("op"))
            if apply is None:
                raise _DoesNotApply
            if apply is _copy:
                copied += len(msgspec.json.encode(_source(document, step)))
                if copied > _MOST_COPIED:
                    raise _DoesNotApply
            document = apply(document, step)
    except _DoesNotApply:
        raise rejected() from None
    return document


def _checked(operations: Any) -> list[dict[str, Any]]:
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _not_a_patch(operations, "value of type []handlers.jsonPatchOp")
    for step in operations:
        if not isinstance(step, dict):
            raise _not_a_patch(step, "value of type handlers.jsonPatchOp")
        for key in ("op", "path", "from"):
            if not isinstance(step.get(key, ""), str):
                raise _not_a_patch(step[key], f"struct field jsonPatchOp.{key} of type string")
    if len(operations) > _MOST_OPERATIONS:
        raise StatusError(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, "
            f"got {len(operations)}",
            code=413,
            reason="RequestEntityTooLarge",
        )
    return operations


def _not_a_patch(value: Any, expected: str) -> StatusError:
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {go_kind(value)} into Go {expected}"
    )


# --- operations -----------------------------------------------------------------------------------


def _add(document: Any, step: dict[str, Any]) -> Any:
    parent, key = _parent(document, step.get("path"))
    _insert(parent, key, copy.deepcopy(step.get("value")))
    return document


def _remove(document: Any, step: dict[str, Any]) -> Any:
    parent, key = _parent(document, step.get("path"))
    _take(parent, key)
    return document


def _replace(document: Any, step: dict[str, Any]) -> Any:
    value = copy.deepcopy(step.get("value"))
    if step.get("path") == "":
        if not isinstance(value, dict):
            raise _DoesNotApply
        return value
    parent, key = _parent(document, step.get("path"))
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent[_index(key, len(parent))] = value
    return document


def _move(document: Any, step: dict[str, Any]) -> Any:
    value = _take(*_parent(document, step.get("from")))
    parent, key = _parent(document, step.get("path"))
    _insert(parent, key, value)
    return document


def _copy(document: Any, step: dict[str, Any]) -> Any:
    value = copy.deepcopy(_source(document, step))
    parent, key = _parent(document, step.get("path"))
    _insert(parent, key, value)
    return document


def _source(document: Any, step: dict[str, Any]) -> Any:
    value = _get(*_parent(document, step.get("from")))
    return None if value is _MISSING else value


def _test(document: Any, step: dict[str, Any]) -> Any:
    expected = step.get("value", _MISSING)
    found = document if step.get("path") == "" else _get(*_parent(document, step.get("path")))
    if found is _MISSING:
        holds = expected is _MISSING or expected is None
    else:
        holds = _same(found, expected)
    if not holds:
        raise _DoesNotApply
    return document


_OPERATIONS: Final[dict[Any, Callable[[Any, dict[str, Any]], Any]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}

# --- paths ----------------------------------------------------------------------------------------


def _parent(document: Any, path: Any) -> tuple[Any, str]:
    """The list or object that a path leads into, and the last step of the path."""
    if not isinstance(path, str) or "/" not in path:
        raise _DoesNotApply
    # kube-apiserver ignores text before the first slash.
    *way, key = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    place = document
    for part in way:
        place = _get(place, part)
    if not isinstance(place, dict | list):
        raise _DoesNotApply
    return place, key


def _get(place: Any, key: str) -> Any:
    if isinstance(place, dict):
        return place.get(key, _MISSING)
    if isinstance(place, list):
        return place[_index(key, len(place))]
    raise _DoesNotApply


def _take(place: Any, key: str) -> Any:
    if isinstance(place, dict):
        if key not in place:
            raise _DoesNotApply
        return place.pop(key)
    return place.pop(_index(key, len(place)))


def _insert(place: Any, key: str, value: Any) -> None:
    if isinstance(place, dict):
        place[key] = value
    elif key == "-":
        place.append(value)
    else:
        place.insert(_index(key, len(place) + 1), value)


def _index(key: str, length: int) -> int:
    try:
        index = int(key)
    except ValueError:
        raise _DoesNotApply from None
    if not -length <= index < length:
        raise _DoesNotApply
    return index % length


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON; in Python 1, 1.0 and True are equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
