"""Bytes that are no object of the API, as a broken proxy or server sends them with a 200."""

from typing import Final

_WRONG: Final = b'{"spec":5,"status":5,"metadata":5,"x":'  # the types that fields do not have

NO_JSON: Final = (
    b"",
    b"{",
    b"4x",
    b"[]x",
    b'{"spec":5,',
    b'{"status":5,"metadata":7,',
    _WRONG + b"1e999",
    b"[" * 20_000,
    _WRONG + b"[" * 20_000,
    b'{"x":' + b"[" * 20_000,
    b"<html>503 Service Unavailable</html>",
    b"\x1f\x8b\x08\x00\xff\xfe\x00",
)
NO_TEXT: Final = (_WRONG + b'"\xff"}', _WRONG + b'"\\ud800"}', _WRONG + b'"\\udc00 \\ud800"}')
"""JSON but for a string that is no Unicode."""

NO_OBJECT: Final = (*NO_JSON, b"[]", b"null", b"4", b'"x"', _WRONG + b"[" * 300 + b"]" * 300 + b"}")
"""Also what is JSON, and not the object it should be."""
