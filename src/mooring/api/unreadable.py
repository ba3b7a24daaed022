"""The exceptions that the parsers of JSON and YAML raise for invalid input.

Their own error types are not all of it: msgspec passes on Python's errors for text that is no
Unicode and for data that is nested too deeply, and PyYAML those of the functions that make a value
of a scalar.
"""

from typing import Any, Final

import msgspec
import yaml

YAML_INT: Final = "tag:yaml.org,2002:int"
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


def readable_int(loader: Any, node: Any) -> int:
    """A constructor for YAML; refuses a number of so many digits that Python does not print it."""
    value: int = loader.construct_yaml_int(node)
    str(value)
    return value
