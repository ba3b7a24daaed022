"""Label selectors in the query of a request, with kube-apiserver's error messages.

`mooring.api.selectors` parses the same notation; here it is parsed token by token, because clients
are shown the server's messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from mooring.api.selectors import LabelRequirement, Selector
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.names import label_value_faults, qualified_name_faults

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!,()<>]|[^\s=!,()<>]+|$)")
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", ",", "(", ")", "<", ">"))
_OPERATORS: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS: Final = {"in": "In", "notin": "NotIn"}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> Selector:
    """Parse a selector; raises kube-apiserver's error if that fails."""
    if not text.strip():
        return Selector.EVERYTHING
    reader = _Reader(text)
    requirements: list[LabelRequirement] = []
    while True:
        token = reader.peek()
        if token in _SYMBOLS and token != "!":
            expected = (
                "identifier after ','" if requirements else ("!, identifier, or 'end of string'")
            )
            raise bad_request(f"found '{token}', expected: {expected}")
        if not token:
            raise bad_request("found '', expected: identifier after ','")
        requirements.append(_requirement(reader))
        token = reader.take()
        if not token:
            return Selector(tuple(requirements))
        if token != ",":
            raise bad_request(f"found '{token}', expected: ',' or 'end of string'")


class _Reader:
    """Tokens with one token of lookahead; an empty one is the end."""

    def __init__(self, text: str) -> None:
        self._tokens: Iterator[str] = (found[1] for found in _TOKEN.finditer(text))
        self._next = next(self._tokens, "")

    def peek(self) -> str:
        return self._next

    def take(self) -> str:
        token, self._next = self._next, next(self._tokens, "")
        return token


def _requirement(reader: _Reader) -> LabelRequirement:
    is_absent = reader.peek() == "!"
    if is_absent:
        reader.take()
    key = reader.take()
    if not key or key in _SYMBOLS:
        raise _unreadable(f"found '{key}', expected: identifier")
    if faults := qualified_name_faults(key):
        shown = "; ".join(faults)
        raise _unreadable(f'<nil>: Invalid value: "{key}": {shown}')
    if is_absent:
        return LabelRequirement(key, "DoesNotExist")
    token = reader.peek()
    if token in ("", ","):
        return LabelRequirement(key, "Exists")
    reader.take()
    if token in _SETS:
        return _checked(key, _SETS[token], _values(reader))
    if token not in _OPERATORS:
        raise _unreadable(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
    value = "" if reader.peek() in ("", ",") else reader.take()
    if value in _SYMBOLS:
        raise _unreadable(f"found '{value}', expected: identifier")
    return _checked(key, _OPERATORS[token], [value])


def _values(reader: _Reader) -> list[str]:
    token = reader.take()
    if token != "(":
        raise _unreadable(f"found '{token}' expected: '('")
    values: list[str] = []
    while True:
        token = reader.peek()
        if token in (",", ")"):
            values.append("")
        elif not token or token in _SYMBOLS:
            raise _unreadable(f"found '{token}', expected: ',', or identifier")
        else:
            values.append(reader.take())
        token = reader.take()
        if token == ")":
            return values
        if token != ",":
            raise _unreadable(f"found '{token}', expected: ',' or ')'")


def _checked(key: str, operator: str, values: list[str]) -> LabelRequirement:
    if operator in ("Gt", "Lt"):
        if _INTEGER.fullmatch(values[0]) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _unreadable(f'values[0]: Invalid value: "{values[0]}": {why}')
        return LabelRequirement(key, operator, bound=int(values[0]))
    for index, value in enumerate(values):
        if faults := label_value_faults(value):
            shown = "; ".join(faults)
            raise _unreadable(f'values[{index}][{key}]: Invalid value: "{value}": {shown}')
    return LabelRequirement(key, operator, frozenset(values))


def _unreadable(why: str) -> StatusError:
    return bad_request(f"unable to parse requirement: {why}")
