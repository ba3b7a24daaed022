"""The exceptions that the parsers of JSON and YAML raise for invalid input.

Their own error types are not all of it: msgspec passes on Python's errors for text that is no
Unicode and for data that is nested too deeply, and PyYAML those of the functions that make a value
of a scalar.
"""

from typing import Final

import msgspec
import yaml

NOT_JSON: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
NOT_YAML: Final = (
    yaml.YAMLError,
    ValueError,  # !!int x, lone surrogates, numbers of thousands of digits
    LookupError,  # !!bool x
    AttributeError,  # !!timestamp x
    TypeError,
    OverflowError,
    RecursionError,
)


def yaml_problem(error: Exception) -> str:
    """The words of an error of a YAML parser in one line, with line and column."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(why_unreadable(error).split())
    mark = error.problem_mark or error.context_mark
    words = ", ".join(part for part in (error.context, error.problem) if part)
    return f"line {mark.line + 1}, column {mark.column + 1}: {words}" if mark else words


def why_unreadable(error: Exception) -> str:
    """The words of an error; Python's for deep nesting speak of its stack, not of the data."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
