"""Operators and conversions."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from mooring.plugins.dynamicresources.cel.library.overloads import add
from mooring.plugins.dynamicresources.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    TypeValue,
    Uint,
    compare,
    equal,
    find,
    has_key,
    kind_of,
    look_up,
)

# --- operators ------------------------------------------------------------------------------------


def _within(number: int, kind: type[int]) -> int:
    low, high = (0, UINT_MAX) if kind is Uint else (INT_MIN, INT_MAX)
    if not low <= number <= high:
        raise CelError("unsigned integer overflow" if kind is Uint else "integer overflow")
    return kind(number)


def plus(a: Any, b: Any) -> Any:
    return _within(a + b, type(a)) if isinstance(a, int) else a + b


def _minus(a: Any, b: Any) -> Any:
    return _within(a - b, type(a)) if isinstance(a, int) else a - b


def _times(a: Any, b: Any) -> Any:
    return _within(a * b, type(a)) if isinstance(a, int) else a * b


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, int):
        if b == 0:
            raise CelError("division by zero")
        quotient = abs(a) // abs(b)  # toward zero
        return _within(quotient if (a < 0) == (b < 0) else -quotient, type(a))
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise CelError("modulus by zero")
    rest = abs(a) % abs(b)
    return _within(-rest if a < 0 else rest, type(a))


def contains(item: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return has_key(container, item)
    return any(equal(item, one) for one in container)


EACH_NUMBER: Final = ("int", "uint", "double")
for _kind_name in EACH_NUMBER:
    _same = f"({_kind_name}, {_kind_name}) -> {_kind_name}"
    for _operator, _run in (("+", plus), ("-", _minus), ("*", _times), ("/", _divided)):
        add(_operator, _run, _same)
    if _kind_name != "double":
        add("%", _modulo, _same)
add("+", lambda a, b: a + b, "(string, string) -> string", "(bytes, bytes) -> bytes")
add("+", lambda a, b: [*a, *b], "(list(A), list(A)) -> list(A)")
add("-", lambda a: _within(-a, int), "(int) -> int")
add("-", lambda a: -a, "(double) -> double")
add("!", lambda a: not a, "(bool) -> bool")
add("==", equal, "(A, A) -> bool")
add("!=", lambda a, b: not equal(a, b), "(A, A) -> bool")
_ORDERED: Final = [
    *(f"({a}, {b}) -> bool" for a in EACH_NUMBER for b in EACH_NUMBER),
    *(f"({a}, {a}) -> bool" for a in ("bool", "string", "bytes")),
]
add("<", lambda a, b: compare(a, b) < 0, *_ORDERED)
add("<=", lambda a, b: compare(a, b) <= 0, *_ORDERED)
add(">", lambda a, b: compare(a, b) > 0, *_ORDERED)
add(">=", lambda a, b: compare(a, b) >= 0, *_ORDERED)
add("in", contains, "(A, list(A)) -> bool", "(A, map(A, B)) -> bool")
add("?:", lambda a, b, c: b if a else c, "(bool, A, A) -> A")
add("[]", look_up, "(list(A), int) -> A", "(map(A, B), A) -> B")
add(
    "[]", find, "(optional(list(A)), int) -> optional(A)", "(optional(map(A, B)), A) -> optional(B)"
)
add("[?]", find, "(list(A), int) -> optional(A)", "(map(A, B), A) -> optional(B)")
add(
    "[?]",
    find,
    "(optional(list(A)), int) -> optional(A)",
    "(optional(map(A, B)), A) -> optional(B)",
)


# --- conversions ----------------------------------------------------------------------------------


def _whole(number: float, low: int, high: int, what: str) -> int:
    if number != number or not low < number < high:
        raise CelError(f"{what} overflow")
    return int(number)


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?\d+", value, re.ASCII) is None:
            raise CelError(f"type conversion error from 'string' to 'int': {value!r}")
        return _within(int(value), int)
    if isinstance(value, float):
        return _whole(value, INT_MIN, INT_MAX, "integer")
    return _within(int(value), int)


def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if re.fullmatch(r"\d+", value, re.ASCII) is None:
            raise CelError(f"type conversion error from 'string' to 'uint': {value!r}")
        value = int(value)
    if isinstance(value, float):
        value = _whole(value, -1, UINT_MAX, "unsigned integer")
    return Uint(_within(int(value), Uint))


def _to_double(value: Any) -> float:
    try:
        if isinstance(value, str) and value != value.strip():
            raise ValueError
        return float(value)
    except ValueError:
        raise CelError(f"type conversion error from 'string' to 'double': {value!r}") from None


def to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return text_of_double(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    return str(value)


def text_of_double(value: float) -> str:
    """With as many digits as tell it from others, and an exponent for large and small ones."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    if value == 0 or -4 <= number.adjusted() < 6:
        return f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits))
    fraction = f".{digits[1:]}" if digits[1:] else ""
    return f"{'-' * (value < 0)}{digits[0]}{fraction}e{number.adjusted():+03}"


def _to_bool(value: Any) -> bool:
    if isinstance(value, str):
        if value in ("1", "t", "T", "TRUE", "true", "True"):
            return True
        if value in ("0", "f", "F", "FALSE", "false", "False"):
            return False
        raise CelError(f"type conversion error from 'string' to 'bool': {value!r}")
    return bool(value)


def _size(value: Any) -> int:
    return len(value)


add("int", _to_int, *(f"({one}) -> int" for one in (*EACH_NUMBER, "string")))
add("uint", _to_uint, *(f"({one}) -> uint" for one in (*EACH_NUMBER, "string")))
add("double", _to_double, *(f"({one}) -> double" for one in (*EACH_NUMBER, "string")))
add("string", to_string, *(f"({one}) -> string" for one in (*EACH_NUMBER, "string")))
add("string", to_string, "(bool) -> string", "(bytes) -> string")
add("bool", _to_bool, "(bool) -> bool", "(string) -> bool")
add("bytes", lambda value: value.encode(), "(string) -> bytes")
add("bytes", lambda value: value, "(bytes) -> bytes")
add("dyn", lambda value: value, "(A) -> dyn")
add("type", lambda value: TypeValue(kind_of(value)), "(A) -> type(A)")
_SIZED: Final = ("string", "bytes", "list(A)", "map(A, B)")
add("size", _size, *(f"({one}) -> int" for one in _SIZED))
add("size", _size, *(f"{one}.() -> int" for one in _SIZED))
