"""Texts by a pattern (`"%s".format([...])`), and named formats that a text can be checked by."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from mooring.plugins.dynamicresources.cel.library.operators import text_of_double, to_string
from mooring.plugins.dynamicresources.cel.library.overloads import add
from mooring.plugins.dynamicresources.cel.library.texts import quoted
from mooring.plugins.dynamicresources.cel.values import (
    NONE,
    CelError,
    NamedFormat,
    Optional,
    TypeValue,
    kind_of,
)

# --- patterns -------------------------------------------------------------------------------------

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.(\d+))?([a-zA-Z])|)")
_DIGITS: Final = {"b": "b", "o": "o", "x": "x", "X": "X"}


def _format(pattern: str, values: list[Any]) -> str:
    """The pattern with its clauses replaced by values, in order."""
    left = iter(values)

    def clause(match: re.Match[str]) -> str:
        if match[1]:
            return "%"
        verb = match[3] or ""
        if verb not in "sdfebxXo" or not verb:
            problem = f'unrecognized formatting clause "{verb}"'
            raise CelError(f"could not parse formatting clause: {problem}")
        try:
            value = next(left)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None
        return _clause(verb, match[2], value)

    return _CLAUSE.sub(clause, pattern)


def _clause(verb: str, precision: str | None, value: Any) -> str:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if verb == "s":
        return _text(value)
    if verb == "d" and is_whole:
        return str(int(value))
    if verb == "f" and isinstance(value, float):
        return _fixed(value, int(precision or 6))
    if verb == "e" and isinstance(value, float):
        return _scientific(value, int(precision or 6))
    if verb == "b" and isinstance(value, bool):
        return str(int(value))
    if verb in _DIGITS and is_whole:
        return f"{int(value):{_DIGITS[verb]}}"
    if verb in "xX" and isinstance(value, str | bytes):
        found = (value.encode() if isinstance(value, str) else value).hex()
        return found if verb == "x" else found.upper()
    raise _mismatch(verb, value)


_WANTED: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists,"
    " types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "o": "octal clause can only be used on integers",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
}
_RAISED: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _mismatch(verb: str, value: Any) -> CelError:
    return CelError(f"error during formatting: {_WANTED[verb.lower()]}, was given {kind_of(value)}")


def _fixed(value: float, precision: int) -> str:
    if math.isfinite(value):
        return f"{value:,.{precision}f}"
    return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}∞"


def _scientific(value: float, precision: int) -> str:
    """As people write it; the precision is the width of what is no number."""
    if not math.isfinite(value):
        return _fixed(value, precision).rjust(precision)
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_RAISED)}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return text_of_double(value)
    if isinstance(value, bytes):
        try:
            return to_string(value)
        except CelError as error:
            text = f'error during formatting: could not convert argument "{error}" to string'
            raise CelError(text) from None
    return _literal(value)


def _literal(value: Any) -> str:
    """As it stands in a list or map."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(_text(value))}"
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else quoted(text_of_double(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        entries = sorted((_literal(key), _literal(one)) for key, one in value.items())
        return "{" + ", ".join(f"{key}:{one}" for key, one in entries) + "}"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, int):
        return str(int(value))
    raise _mismatch("s", value)


add("format", _format, "string.(list(dyn)) -> string")


# --- named formats --------------------------------------------------------------------------------

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = rf"{_DATE}[Tt ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d+)?([Zz]|[+-]\d{{2}}:\d{{2}})"


def _by(pattern: str, most: int) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: len(text) <= most and compiled.fullmatch(text) is not None


def _prefix(is_valid: Callable[[str], bool]) -> Callable[[str], bool]:
    """A dash at the end is allowed: a generated part follows."""
    return lambda text: is_valid(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


def _is_qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _by(_NAME, 63)(name) and (not slash or _by(_SUBDOMAIN, 253)(prefix))


def _is_uri(text: str) -> bool:
    parts = urlsplit(text)
    is_rooted = text.startswith("/") or bool(parts.scheme)
    return is_rooted and not any(ord(one) <= 32 or ord(one) == 127 for one in text)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _parses(pattern: str, read: Callable[[str], object]) -> Callable[[str], bool]:
    def parses(text: str) -> bool:
        if re.fullmatch(pattern, text, re.ASCII) is None:
            return False
        try:
            read(text.upper())
        except ValueError:
            return False
        return True

    return parses


_label, _subdomain, _old_label = _by(_LABEL, 63), _by(_SUBDOMAIN, 253), _by(_OLD_LABEL, 63)
_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "dns1123Label": _label,
    "dns1123LabelPrefix": _prefix(_label),
    "dns1123Subdomain": _subdomain,
    "dns1123SubdomainPrefix": _prefix(_subdomain),
    "dns1035Label": _old_label,
    "dns1035LabelPrefix": _prefix(_old_label),
    "qualifiedName": _is_qualified_name,
    "labelValue": lambda text: not text or _by(_NAME, 63)(text),
    "uri": _is_uri,
    "uuid": _by(_UUID, 36),
    "byte": _is_base64,
    "date": _parses(_DATE, date.fromisoformat),
    "datetime": _parses(_TIME, datetime.fromisoformat),
}


def _named(name: str) -> Optional:
    return Optional(NamedFormat(name), True) if name in _FORMATS else NONE


def _validate(format_: NamedFormat, text: str) -> Optional:
    """What is wrong with a text; nothing if it is well formed."""
    if _FORMATS[format_.name](text):
        return NONE
    return Optional([f"{text!r} does not have the format {format_.name}"], True)


add("format.named", _named, "(string) -> optional(Format)")
add("validate", _validate, "Format.(string) -> optional(list(string))")
for _name in _FORMATS:
    add(f"format.{_name}", partial(NamedFormat, _name), "() -> Format")
