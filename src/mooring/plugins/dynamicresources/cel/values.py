"""The values of CEL at run time, their equality and order, and the errors of evaluation.

Python's own values stand for those of CEL; what Python confuses (a bool is an int) is told apart
here. Quantities are those of `mooring.api`.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any, Final
from urllib.parse import SplitResult

import msgspec

from mooring.api.quantity import Quantity

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1


class CelError(Exception):
    """An evaluation failed; the text is part of the message that a pod gets."""


def no_such_overload() -> CelError:
    return CelError("no such overload")


def no_such_key(key: Any) -> CelError:
    return CelError(f"no such key: {key}")


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


class Optional(msgspec.Struct, frozen=True):
    """A value that may be absent."""

    value: Any = None
    is_present: bool = False


NONE: Final = Optional()


class TypeValue(msgspec.Struct, frozen=True):
    """The type of a value, as a value."""

    name: str


class Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain: an unknown domain is an empty map."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


class NamedFormat(msgspec.Struct, frozen=True):
    """A format that texts can be checked by."""

    name: str


class Url(msgspec.Struct, frozen=True):
    """A parsed URL."""

    text: str
    parts: SplitResult


IP = ipaddress.IPv4Address | ipaddress.IPv6Address
CIDR = ipaddress.IPv4Interface | ipaddress.IPv6Interface

_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_LEADING_ZERO: Final = re.compile(r"0\d+")


class Semver(msgspec.Struct, frozen=True):
    """A semantic version; build metadata does not count in comparisons."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @property
    def precedence(self) -> tuple[Any, ...]:
        """Sorts as versions do: numbers before words, a pre-release before its release."""
        pre = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, pre)


@lru_cache(maxsize=1024)
def parse_semver(text: str) -> Semver:
    """Raises ValueError."""
    match = _SEMVER.fullmatch(text)
    if match is None or not text.isascii():
        raise ValueError(f"{text!r} is not a semantic version such as 1.2.3")
    numbers = [int(match[place]) for place in (1, 2, 3)]
    pre = tuple(match[4].split(".")) if match[4] else ()
    if any(map(_LEADING_ZERO.fullmatch, pre)) or max(numbers) > UINT_MAX:
        raise ValueError(f"{text!r} is not a semantic version: a number starts with 0")
    major, minor, patch = numbers
    return Semver(major, minor, patch, pre)


def normalize_semver(text: str) -> str:
    """With a v cut off, missing parts as 0 and without leading zeros."""
    text = text.removeprefix("v")
    core_end = min(
        [place for place in (text.find("-"), text.find("+")) if place >= 0] or [len(text)]
    )
    parts = text[:core_end].split(".")
    if len(parts) < 3 and core_end < len(text):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    parts = [part.lstrip("0") or "0" for part in parts if part or len(parts) > 1]
    while len(parts) < 3:
        parts.append("0")
    return ".".join(parts) + text[core_end:]


def kind_of(value: Any) -> str:
    """The type of a value, by its name in CEL."""
    found = _KINDS.get(type(value))
    return found if found is not None else "dyn"


_KINDS: Final[dict[type[Any], str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    Domains: "map",
    Optional: "optional_type",
    TypeValue: "type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Url: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
    ipaddress.IPv4Address: "net.IP",
    ipaddress.IPv6Address: "net.IP",
    ipaddress.IPv4Interface: "net.CIDR",
    ipaddress.IPv6Interface: "net.CIDR",
}
_NUMBERS: Final = frozenset((int, Uint, float))
_ORDERED: Final = frozenset((bool, str, bytes))


def equal(a: Any, b: Any) -> bool:
    """Equality of CEL: numbers by value, different types are unequal."""
    kind, other = type(a), type(b)
    if kind is not other:
        if kind in _NUMBERS and other in _NUMBERS:
            return bool(a == b)
        if kind_of(a) != kind_of(b):
            return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(has_key(b, key) and equal(a[key], b[key]) for key in a)
    if kind is Semver:
        return bool(a.precedence == b.precedence)
    if kind is Optional:
        return a.is_present == b.is_present and equal(a.value, b.value)
    return bool(a == b)


def compare(a: Any, b: Any) -> int:
    """-1, 0 or 1. Raises CelError for values without an order."""
    kind, other = type(a), type(b)
    if (kind in _NUMBERS and other in _NUMBERS) or (kind is other and kind in _ORDERED):
        if a != a or b != b:
            raise CelError("NaN values cannot be ordered")
        return int(a > b) - int(a < b)
    raise no_such_overload()


def has_key(mapping: dict[Any, Any], key: Any) -> bool:
    """Whether a map has this very key; Python alone would take true for 1."""
    if key not in mapping:
        return False
    return type(key) is not bool or any(known is key for known in mapping)


def look_up(operand: Any, key: Any) -> Any:
    """`operand[key]`. Raises CelError."""
    if isinstance(operand, dict):
        if type(operand) is Domains and type(key) is str:
            return operand[key]
        kind = kind_of(key)
        if kind not in ("string", "int", "uint", "double", "bool"):
            raise CelError(f"unsupported key type: {kind}")
        if not has_key(operand, key):
            raise no_such_key(key)
        return operand[key]
    if isinstance(operand, list | tuple):
        if type(key) is float and key.is_integer():
            key = int(key)
        if type(key) is float:
            raise CelError(f"unsupported index value {key} in list")
        if type(key) not in (int, Uint):
            raise CelError(f"unsupported index type '{kind_of(key)}' in list")
        if not 0 <= key < len(operand):
            raise CelError(f"index out of bounds: {key}")
        return operand[key]
    raise no_such_key(key)


def find(operand: Any, key: Any) -> Optional:
    """`operand[?key]`. Raises CelError if it cannot be indexed at all."""
    if isinstance(operand, Optional):
        return find(operand.value, key) if operand.is_present else NONE
    if isinstance(operand, list | tuple) and type(key) is int and not 0 <= key < len(operand):
        return NONE
    if isinstance(operand, dict) and type(operand) is not Domains and not has_key(operand, key):
        return NONE
    return Optional(look_up(operand, key), True)
