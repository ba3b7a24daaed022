"""Patterns of schemas, in Go's syntax, which is RE2's."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from mooring.plugins.dynamicresources.cel import CelError, regex

_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_WORDS: Final = {
    "unterminated subpattern": "missing closing )",
    "unbalanced parenthesis": "unexpected )",
    "unterminated character set": "missing closing ]",
    "nothing to repeat": "missing argument to repetition operator",
}


def searches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in a text."""
    return regex.matches(text, _python(pattern))


@lru_cache(maxsize=1024)
def pattern_fault(pattern: str) -> str:
    """Why a pattern can't be used, in Go's words; empty if it can."""
    try:
        regex.check(_python(pattern))
    except CelError as error:
        said = str(error)
        why = next((told for part, told in _WORDS.items() if part in said), said)
        return f"error parsing regexp: {why}: `{pattern}`"
    return ""


@lru_cache(maxsize=4096)
def _python(pattern: str) -> str:
    """The same in the syntax of Python's parser."""
    text = pattern.replace(r"\z", r"\Z").replace("(?<", "(?P<").replace("(?P<=", "(?<=")
    for name, content in _CLASSES.items():
        text = text.replace(f"[:{name}:]", content)
    return text
