"""Functions of strings."""

from __future__ import annotations

from typing import Any

from mooring.plugins.dynamicresources.cel import regex
from mooring.plugins.dynamicresources.cel.library.overloads import add
from mooring.plugins.dynamicresources.cel.values import (
    CelError,
    no_such_overload,
)

# --- strings --------------------------------------------------------------------------------------


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, last: int | None = None) -> int:
    if last is None:
        return text.rfind(part)
    if not part:
        return last
    if last < 0:
        raise CelError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
        if not 0 <= start <= end:
            raise CelError(f"index out of range: {start}")
    if not 0 <= start <= end <= len(text):
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    parts = list(text) if not separator else text.split(separator)
    if 0 < count < len(parts):
        parts[count - 1 :] = [separator.join(parts[count - 1 :])]
    return parts


def _join(parts: list[Any], separator: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise no_such_overload()
    return separator.join(parts)


def _lower(text: str) -> str:
    return "".join(chr(ord(one) + 32) if "A" <= one <= "Z" else one for one in text)


def _upper(text: str) -> str:
    return "".join(chr(ord(one) - 32) if "a" <= one <= "z" else one for one in text)


def quoted(text: str) -> str:
    marks = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    marks |= {"\v": "\\v", "\\": "\\\\", '"': '\\"'}
    return '"' + "".join(marks.get(one, one) for one in text) + '"'


add("contains", lambda text, part: part in text, "string.(string) -> bool")
add("startsWith", lambda text, part: text.startswith(part), "string.(string) -> bool")
add("endsWith", lambda text, part: text.endswith(part), "string.(string) -> bool")
add("matches", regex.matches, "string.(string) -> bool", "(string, string) -> bool")
add("find", regex.find, "string.(string) -> string")
add(
    "findAll",
    regex.find_all,
    "string.(string) -> list(string)",
    "string.(string, int) -> list(string)",
)
add("charAt", _char_at, "string.(int) -> string")
add("indexOf", _index_of, "string.(string) -> int", "string.(string, int) -> int")
add("lastIndexOf", _last_index_of, "string.(string) -> int", "string.(string, int) -> int")
add("lowerAscii", _lower, "string.() -> string")
add("upperAscii", _upper, "string.() -> string")
add(
    "replace",
    _replace,
    "string.(string, string) -> string",
    "string.(string, string, int) -> string",
)
add("split", _split, "string.(string) -> list(string)", "string.(string, int) -> list(string)")
add("substring", _substring, "string.(int) -> string", "string.(int, int) -> string")
add("trim", lambda text: text.strip(), "string.() -> string")
add("join", _join, "list(string).() -> string", "list(string).(string) -> string")
add("strings.quote", quoted, "(string) -> string")
