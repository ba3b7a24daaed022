"""The wording of field errors, as Kubernetes writes them."""

import json
from collections.abc import Iterable

import msgspec

from mooring.config.duration import Duration
from mooring.errors import Problem

REQUIRED = "Required value"
_LONGEST = 80


def invalid(path: str, value: object, text: str) -> Problem:
    """A value of the right type that breaks a rule."""
    return Problem(path, f"Invalid value: {quote(value)}: {text}")


def required(path: str, text: str = "") -> Problem:
    """A value is missing."""
    return Problem(path, f"{REQUIRED}: {text}" if text else REQUIRED)


def duplicate(path: str, value: object) -> Problem:
    """A value that may be given once is given again."""
    return Problem(path, f"Duplicate value: {quote(value)}")


def unsupported(path: str, value: object, supported: Iterable[str]) -> Problem:
    """The value is not in the list of supported values."""
    choices = ", ".join(map(quote, supported))
    return Problem(path, f"Unsupported value: {quote(value)}: supported values: {choices}")


def quote(value: object) -> str:
    """A value as JSON, so that text differs from numbers; long values are cut."""
    if isinstance(value, Duration):
        return str(value)
    try:
        text = json.dumps(to_plain(value), ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def to_plain(value: object) -> object:
    """Turn Structs and durations into the data they would be in a file."""
    return msgspec.to_builtins(value, enc_hook=_write_custom)


def _write_custom(value: object) -> object:
    if isinstance(value, Duration):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written to a configuration")
