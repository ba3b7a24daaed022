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


def why_unreadable(error: Exception) -> str:
    """The words of an error; Python's for deep nesting speak of its stack, not of the data."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
