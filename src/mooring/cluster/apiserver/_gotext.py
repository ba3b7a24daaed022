"""Go's formatting of values and JSON errors, which the server's messages quote."""

from __future__ import annotations

import json
from typing import Any, Final

_JSON_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool"}


def go_text(value: Any) -> str:
    """As fmt's %v: `map[image:x name:c]`, `[1 2]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def go_kind(value: Any) -> str:
    """The name that encoding/json gives a value: object, array, string, number, bool."""
    return _JSON_NAMES.get(type(value), "number")


def json_error(body: bytes) -> str:
    """The message of encoding/json about bytes that are not JSON."""
    text = body.decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()):
            return "unexpected end of JSON input"
        return f"invalid character {text[error.pos]!r} looking for beginning of value"
    except RecursionError:
        return "exceeded max depth"
    except ValueError as error:  # a number of thousands of digits
        return str(error)
    return "unexpected end of JSON input"
