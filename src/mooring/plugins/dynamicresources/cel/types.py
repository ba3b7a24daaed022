"""Static types of CEL, and which values may stand where.

A type is a tuple: its name, then its parameters. Type parameters of functions are bound while
an expression is checked.
"""

from __future__ import annotations

import re
from typing import Any, Final

Type = tuple[Any, ...]

DYN: Final[Type] = ("dyn",)
ANY: Final[Type] = ("any",)
ERROR: Final[Type] = ("error",)
BOOL: Final[Type] = ("bool",)
INT: Final[Type] = ("int",)
STRING: Final[Type] = ("string",)
NULL: Final[Type] = ("null_type",)
OPTIONAL: Final = "optional_type"
_NULLABLE: Final = frozenset((OPTIONAL, "struct", "any", "opaque"))
_WORD: Final = re.compile(r"[A-Za-z_.]+")
_OPAQUE: Final = {
    "Quantity": "kubernetes.Quantity",
    "Semver": "kubernetes.Semver",
    "URL": "kubernetes.URL",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "Format": "kubernetes.NamedFormat",
}


def list_of(item: Type) -> Type:
    return ("list", item)


def map_of(key: Type, value: Type) -> Type:
    return ("map", key, value)


def optional_of(value: Type) -> Type:
    return (OPTIONAL, value)


def is_dynamic(type_: Type) -> bool:
    return type_[0] in ("dyn", "any", "error")


def text_of(type_: Type) -> str:
    """A type as compile errors name it."""
    if type_[0] == "opaque":
        return str(type_[1])
    if len(type_) == 1 or type_[0] in ("param", "struct"):
        return str(type_[-1])
    return f"{type_[0]}({', '.join(map(text_of, type_[1:]))})"


def parse_type(text: str) -> Type:
    """Read a type such as `map(K, list(string))`; single capitals are type parameters."""
    type_, rest = _parse(text.replace(" ", ""))
    assert not rest, text
    return type_


def _parse(text: str) -> tuple[Type, str]:
    match = _WORD.match(text)
    assert match is not None, text
    word, rest = match[0], text[match.end() :]
    if word in _OPAQUE:
        return ("opaque", _OPAQUE[word]), rest
    if len(word) == 1:
        return ("param", word), rest
    if word == "optional":
        word = OPTIONAL
    parameters: list[Type] = []
    if rest.startswith("("):
        rest = rest[1:]
        while not rest.startswith(")"):
            parameter, rest = _parse(rest.removeprefix(","))
            parameters.append(parameter)
        rest = rest[1:]
    return (word, *parameters), rest


class Bindings:
    """What type parameters stand for."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}
        self._fresh = 0

    def fresh(self) -> Type:
        """A type parameter of its own."""
        self._fresh += 1
        return ("param", f"_var{self._fresh}")

    def resolved(self, type_: Type, *, to_dyn: bool = False) -> Type:
        """The type with parameters replaced by what is known of them."""
        known = self._known.get(type_)
        if known is not None:
            return self.resolved(known, to_dyn=to_dyn)
        if type_[0] == "param":
            return DYN if to_dyn else type_
        if type_[0] in ("opaque", "struct") or len(type_) == 1:
            return type_
        return (type_[0], *(self.resolved(one, to_dyn=to_dyn) for one in type_[1:]))

    def renamed(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """A function's types, with parameters that no other call has."""
        names: dict[Type, Type] = {}
        return tuple(self._rename(one, names) for one in types)

    def _rename(self, type_: Type, names: dict[Type, Type]) -> Type:
        if type_[0] == "param":
            if type_ not in names:
                names[type_] = self.fresh()
            return names[type_]
        if type_[0] in ("opaque", "struct") or len(type_) == 1:
            return type_
        return (type_[0], *(self._rename(one, names) for one in type_[1:]))

    def assign_all(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """As `assign` for each; nothing is bound unless all of them can be."""
        before = dict(self._known)
        if len(given) == len(wanted) and all(map(self._assign, given, wanted)):
            return True
        self._known = before
        return False

    def assign(self, given: Type, wanted: Type) -> bool:
        """Whether one type can be used as the other; binds parameters."""
        return self.assign_all((given,), (wanted,))

    def _assign(self, a: Type, b: Type) -> bool:
        if b[0] == "param":
            is_valid, is_bound = self._bind(a, b)
            if is_valid or is_bound:
                return is_valid
        if a[0] == "param":
            return self._bind(b, a)[0]
        if is_dynamic(a) or is_dynamic(b):
            return True
        if a == NULL or b == NULL:
            other = b if a == NULL else a
            return other == NULL or other[0] in _NULLABLE
        if a[0] in ("list", "map", OPTIONAL):
            return a[0] == b[0] and len(a) == len(b) and all(map(self._assign, a[1:], b[1:]))
        if a[0] == "type":
            return bool(b[0] == "type")
        return a == b

    def _bind(self, type_: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether a parameter may stand for a type, and whether it stood for one before."""
        if type_ == parameter:
            return True, True
        known = self._known.get(parameter)
        if known is not None:
            if type_ == known:
                return True, True
            if self._assign(type_, known):
                general = most_general(type_, known)
                if not self._mentions(general, parameter):
                    self._known[parameter] = general
                return True, True
            return False, True
        if self._mentions(type_, parameter):
            return False, False
        self._known[parameter] = type_
        return True, False

    def _mentions(self, type_: Type, parameter: Type) -> bool:
        if type_ == parameter:
            return True
        if type_[0] == "param":
            known = self._known.get(type_)
            return known is not None and self._mentions(known, parameter)
        if type_[0] in ("opaque", "struct"):
            return False
        return any(self._mentions(one, parameter) for one in type_[1:])


def most_general(a: Type, b: Type) -> Type:
    return a if _is_equal_or_wider(a, b) else b


def _is_equal_or_wider(a: Type, b: Type) -> bool:
    if a[0] in ("dyn", "any", "param"):
        return True
    if b[0] in ("dyn", "any", "param") or a[0] != b[0]:
        return False
    if a[0] in ("list", "map", OPTIONAL):
        return all(map(_is_equal_or_wider, a[1:], b[1:]))
    return a == b
