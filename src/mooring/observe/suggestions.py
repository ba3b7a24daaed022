"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, whatever the case; empty if none is close."""
    lowered = {one.lower(): one for one in sorted(known)}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.75)
    return lowered[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "X"?`, or nothing if no known name is close."""
    found = closest(name, known)
    return f'; did you mean "{found}"?' if found else ""
