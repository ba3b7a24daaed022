"""Strategic merge patches: what `kubectl apply`, `edit`, `label` and `set image` send.

Maps are merged key by key. Lists are replaced, unless the schema says `merge`: then elements are
identified by a key (or by their value), and the patch may carry directives:

    $patch: delete | replace            in a map, or in an element of a list
    $retainKeys: [...]                  drop every other key of this map
    $deleteFromPrimitiveList/F: [...]   remove these values from the list F
    $setElementOrder/F: [...]           the order of the list F

Elements that the patch orders come in that order; elements of the server alone keep their place
relative to the others as far as possible. Error messages are the server's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mooring.client.errors import ServerError, StatusError
from mooring.cluster.apiserver._gotext import go_text
from mooring.cluster.apiserver.errors import bad_request, rejected
from mooring.cluster.apiserver.schema import ANY, Schema

Map = dict[str, Any]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"
_GO_TYPES: Final = {str: "string", bool: "bool", int: "int64", float: "float64"}


def merge_strategically(original: Map, patch: Map, schema: Schema) -> Map:
    """`original` after the patch; neither argument may be used any more."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if _PATCH in patch:
        raise _unknown_directive(patch)
    if _RETAIN in patch:
        _retain(original, patch)
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _merge_ordered(original, patch, key, schema)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            name = _listed_field(key, _DELETE, "invalid patch format of primitive list")
            here = original.get(name)
            if isinstance(here, list) and isinstance(value, list):
                original[name] = _merge_lists(here, value, _at(schema, name), True)
        else:
            _merge_value(original, key, value, schema)
    return original


def _merge_value(original: Map, key: str, value: Any, schema: Schema) -> None:
    if value is None:
        original.pop(key, None)
        return
    here = original.get(key)
    if isinstance(here, dict) and isinstance(value, dict):
        within = _at(schema, key)
        if "replace" in within.strategies:
            original[key] = value
        else:
            original[key] = merge_strategically(here, value, within)
    elif isinstance(here, list) and isinstance(value, list):
        within = _at(schema, key)
        merges = "merge" in within.strategies
        original[key] = _merge_lists(here, value, within, False) if merges else value
    elif _has_directive(value):
        original.pop(key, None)  # no list or map for the directive
    else:
        original[key] = _plain(value)


def _at(schema: Schema, name: str) -> Schema:
    return schema.at(name) or ANY


def _retain(original: Map, patch: Map) -> None:
    kept = patch.pop(_RETAIN)
    if not isinstance(kept, list):
        raise bad_request("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is None or key.startswith((_DELETE, _ORDER)):
            continue
        if key not in kept:
            raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in original if key not in kept]:
        del original[key]


# --- lists ----------------------------------------------------------------------------------------


def _merge_lists(original: list[Any], patch: list[Any], schema: Schema, deletes: bool) -> list[Any]:
    if not original and not patch:
        return original
    key = schema.merge_key
    if _element_type(original, patch) is not dict:
        if deletes:
            return [value for value in original if value not in patch]
        merged = list(dict.fromkeys([*original, *patch]))
        return _in_order(merged, patch, original, "")
    if not key:
        raise _broken("cannot merge lists without merge key for slice")
    original, patch = _follow_directives(original, patch, key)
    merged = _merge_elements(original, patch, schema)
    return _in_order(merged, patch, original, key)


def _merge_elements(original: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    """The merged existing elements, then the new ones."""
    merged = list(original)
    for element in patch:
        place = _find(merged, schema.merge_key, _key_of(element, schema.merge_key))
        if place is None:
            merged.append(element)
        else:
            merged[place] = merge_strategically(merged[place], element, schema.items)
    return merged


def _merge_ordered(original: Map, patch: Map, directive: str, schema: Schema) -> None:
    """A list with $setElementOrder; the list and the directive are removed from the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise _broken(f"expected a []interface {{}}, but received a {_go_type(order)}")
    bad = "invalid patch format of setElementOrder list"
    name = _listed_field(directive, _ORDER, bad)
    here, change = original.get(name), patch.get(name)
    for value in (here, change):
        if value is not None and not isinstance(value, list):
            raise _broken(f"expected a []interface {{}}, but received a {_go_type(value)}")
    within = _at(schema, name)
    _check_order(change or [], order, within.merge_key)
    if here is None and change is None:
        return
    if change is None:
        merged = here or []
    elif here is None:
        merged = [_plain(element) for element in change if not _has_directive(element)]
    elif "merge" not in within.strategies:
        merged = change
    elif within.merge_key and _element_type(here, change) is dict:
        kept, left = _follow_directives(here, change, within.merge_key)
        merged = _merge_elements(kept, left, within)
        if len(kept) < len(here):
            # New elements take the places of deleted ones: the server appends in place.
            here = merged[: len(here)]
    else:
        merged = _merge_lists(here, change, within, False)
    patch.pop(name, None)
    original[name] = _in_order(merged, order, here or [], within.merge_key)


def _check_order(patch: Sequence[Any], order: Sequence[Any], key: str) -> None:
    """The elements of the patch must appear in the order list, in the same sequence."""
    if not order or not patch:
        return
    waiting = iter(order)
    for element in patch:
        if _has_directive(element):
            continue
        for candidate in waiting:
            if _name(element, key) == _name(candidate, key):
                break
        else:
            raise _broken(
                f"The order in patch list:\n{go_text(list(patch))}\n"
                f" doesn't match {_ORDER} list:\n{go_text(list(order))}\n"
            )


def _follow_directives(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """Apply the elements with $patch; the rest of both lists."""
    replaces = False
    for element in patch:
        if not _has_directive(element):
            continue
        directive = element[_PATCH]
        if directive == "delete":
            gone = _key_of(element, key)
            original = [other for other in original if other.get(key) != gone]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise _broken("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(element)
    left = [element for element in patch if not _has_directive(element)]
    return (left, []) if replaces else (original, left)


def _in_order(
    merged: list[Any], order: Sequence[Any], before: Sequence[Any], key: str
) -> list[Any]:
    """Ordered elements as in `order`; the others at their place in `before`, among them."""
    wanted = _places(order, key)
    was = _places(before, key)
    ours = sorted(
        (element for element in merged if _name(element, key) in wanted),
        key=lambda element: wanted[_name(element, key)],
    )
    others = sorted(
        (element for element in merged if _name(element, key) not in wanted),
        key=lambda element: was.get(_name(element, key), -1),
    )
    result: list[Any] = []
    for element in ours:
        place = was.get(_name(element, key))
        # Elements that were before this one on the server stay before it.
        while others and place is not None and was.get(_name(others[0], key), place) < place:
            result.append(others.pop(0))
        result.append(element)
    return result + others


def _places(elements: Sequence[Any], key: str) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for place, element in enumerate(elements):
        found.setdefault(_name(element, key), place)
    return found


def _find(elements: Sequence[Any], key: str, value: Any) -> int | None:
    for place, element in enumerate(elements):
        if key in element and element[key] == value:
            return place
    return None


def _name(element: Any, key: str) -> Any:
    """What identifies an element of its list."""
    if key:
        return _key_of(element, key)
    return _comparable(element, "expected strings or numbers in a list without merge key")


def _key_of(element: Any, key: str) -> Any:
    if not isinstance(element, dict):
        raise _broken(f"expected a map[string]interface {{}}, but received a {_go_type(element)}")
    if key not in element:
        raise _broken(f"map: {go_text(element)} does not contain declared merge key: {key}")
    return _comparable(element[key], f"expected a string or a number as merge key {key}")


def _comparable(value: Any, expected: str) -> Any:
    """The same value; maps and lists can't be compared, and make the real server panic."""
    if isinstance(value, dict | list):
        raise bad_request(f"{expected}, but received a {_go_type(value)}")
    return value


def _element_type(original: list[Any], patch: list[Any]) -> type:
    types = {type(element) for element in (*original, *patch)}
    if len(types) > 1:
        raise _broken(f"list element types are not identical: {go_text([original, patch])}")
    found = types.pop()
    if found is list:
        raise rejected()
    return found


# --- new values -----------------------------------------------------------------------------------


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _plain(value: Any) -> Any:
    """A value of the patch as it is stored: without nulls and directives."""
    if isinstance(value, dict):
        return {
            key: _plain(inner)
            for key, inner in value.items()
            if inner is not None
            and not _has_directive(inner)
            and not key.startswith((_RETAIN, _ORDER, _DELETE))
        }
    if isinstance(value, list):
        return [_plain(inner) for inner in value if not _has_directive(inner)]
    return value


# --- failures -------------------------------------------------------------------------------------


def _listed_field(key: str, directive: str, otherwise: str) -> str:
    prefix, _, name = key.partition("/")
    if prefix != directive or not name:
        raise bad_request(otherwise)
    return name


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    return _GO_TYPES.get(type(value), "[]interface {}")


def _unknown_directive(patch: Map) -> StatusError:
    return _broken(f"unknown patch type: {go_text(patch[_PATCH])} in map: {go_text(patch)}")


def _broken(message: str) -> StatusError:
    """The server reports these as internal errors."""
    return ServerError(message, code=500)
