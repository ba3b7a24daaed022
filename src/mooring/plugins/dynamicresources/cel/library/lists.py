"""Functions of lists, sets and optional values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from mooring.api.quantity import Quantity
from mooring.plugins.dynamicresources.cel.library.operators import EACH_NUMBER, contains, plus
from mooring.plugins.dynamicresources.cel.library.overloads import add
from mooring.plugins.dynamicresources.cel.values import (
    CIDR,
    IP,
    NONE,
    CelError,
    Optional,
    Semver,
    TypeValue,
    Url,
    compare,
    equal,
    kind_of,
)

INCLUDES: Final = "includes"  # known only with the feature gate of list attributes
_MOST_VALUES: Final = 48  # of all attributes of a device
_MOST_ITEMS: Final = 1_000_000  # of a list that an expression makes

# --- lists and sets -------------------------------------------------------------------------------


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        if isinstance(item, list | tuple) and depth > 0:
            found += _flatten(list(item), depth - 1) if depth > 1 else item
        else:
            found.append(item)
    return found


def _range(count: int) -> list[int]:
    if count > _MOST_ITEMS:
        raise CelError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(equal(item, one) for one in found):
            found.append(item)
    return found


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """The items in the order of their keys. Raises CelError if they have none."""
    if len({kind_of(key) for key in keys}) > 1:
        raise CelError("list elements must have the same type")
    by_key = cmp_to_key(compare)
    order = sorted(range(len(items)), key=lambda place: by_key(keys[place]))
    return [items[place] for place in order]


def _sum(items: list[Any]) -> Any:
    total: Any = 0
    for place, item in enumerate(items):
        total = item if place == 0 else plus(total, item)
    return total


def _best(sign: int) -> Callable[[list[Any]], Any]:
    def best(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{'max' if sign > 0 else 'min'} called on empty list")
        found = items[0]
        for item in items[1:]:
            if compare(item, found) * sign > 0:
                found = item
        return found

    return best


def _position(order: int) -> Callable[[list[Any], Any], int]:
    def position(items: list[Any], wanted: Any) -> int:
        places = [place for place, item in enumerate(items) if equal(item, wanted)]
        return places[0 if order > 0 else -1] if places else -1

    return position


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(a, b) <= 0 for a, b in pairwise(items))


def _holds(a: list[Any], b: list[Any]) -> bool:
    return all(contains(one, a) for one in b)


def _includes(values: Any, wanted: Any) -> bool:
    """Whether an attribute has a value: one of several, or its only one."""
    if not isinstance(values, list | tuple):
        return equal(values, wanted)
    for place, one in enumerate(values):
        if place >= _MOST_VALUES:
            text = (
                f"'includes' function cannot be applied to lists longer than {_MOST_VALUES} values"
            )
            raise CelError(text)
        if equal(one, wanted):
            return True
    return False


_COMPARABLE: Final = ("int", "uint", "double", "bool", "string", "bytes")
add("slice", _slice, "list(A).(int, int) -> list(A)")
add("flatten", _flatten, "list(A).() -> list(dyn)", "list(dyn).(int) -> list(dyn)")
add(
    "sort",
    lambda items: sorted_by(items, items),
    *(f"list({one}).() -> list({one})" for one in _COMPARABLE),
)
add("lists.range", _range, "(int) -> list(int)")
add("reverse", lambda items: list(reversed(items)), "list(A).() -> list(A)")
add("distinct", _distinct, "list(A).() -> list(A)")
add("first", lambda items: Optional(items[0], True) if items else NONE, "list(A).() -> optional(A)")
add("last", lambda items: Optional(items[-1], True) if items else NONE, "list(A).() -> optional(A)")
add("isSorted", _is_sorted, *(f"list({one}).() -> bool" for one in _COMPARABLE))
add("sum", _sum, *(f"list({one}).() -> {one}" for one in EACH_NUMBER))
add("max", _best(1), *(f"list({one}).() -> {one}" for one in _COMPARABLE))
add("min", _best(-1), *(f"list({one}).() -> {one}" for one in _COMPARABLE))
add("indexOf", _position(1), "list(A).(A) -> int")
add("lastIndexOf", _position(-1), "list(A).(A) -> int")
add(INCLUDES, _includes, "dyn.(dyn) -> bool")
add("sets.contains", _holds, "(list(A), list(A)) -> bool")
add("sets.equivalent", lambda a, b: _holds(a, b) and _holds(b, a), "(list(A), list(A)) -> bool")
add("sets.intersects", lambda a, b: any(contains(x, b) for x in a), "(list(A), list(A)) -> bool")


# --- optional values ------------------------------------------------------------------------------


def _value(optional: Optional) -> Any:
    if not optional.is_present:
        raise CelError("optional.none() dereference")
    return optional.value


def _is_zero(value: Any) -> bool:
    if isinstance(value, Quantity | Semver | Url | IP | CIDR | TypeValue | Optional):
        return False
    return not value


add("optional.of", lambda value: Optional(value, True), "(A) -> optional(A)")
add(
    "optional.ofNonZeroValue",
    lambda value: NONE if _is_zero(value) else Optional(value, True),
    "(A) -> optional(A)",
)
add("optional.none", lambda: NONE, "() -> optional(A)")
add("value", _value, "optional(A).() -> A")
add("hasValue", lambda optional: optional.is_present, "optional(A).() -> bool")
add("or", lambda a, b: a if a.is_present else b, "optional(A).(optional(A)) -> optional(A)")
add("orValue", lambda a, b: a.value if a.is_present else b, "optional(A).(A) -> A")
add(
    "optional.unwrap",
    lambda items: [one.value for one in items if one.is_present],
    "(list(optional(A))) -> list(A)",
)
add(
    "unwrapOpt",
    lambda items: [one.value for one in items if one.is_present],
    "list(optional(A)).() -> list(A)",
)
