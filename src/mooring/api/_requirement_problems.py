"""What is wrong with a label requirement, in the words users know from the API server.

`selectors` asks here before it builds anything. Places are paths such as
`[1].matchExpressions[0].values[0][disk]`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from mooring.api._names import is_label_value, is_qualified_name
from mooring.api.quantity import INT64_MAX, INT64_MIN

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_LONGEST: Final = 63
_NAME: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_DOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    " validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_EMPTY: Final = "for 'in', 'notin' operators, values set can't be empty"
_NOT_EMPTY: Final = "values set must be empty for exists and does not exist"
_NOT_ONE: Final = "for 'Gt', 'Lt' operators, exactly one value is required"
_NO_INTEGER: Final = "for 'Gt', 'Lt' operators, the value must be an integer"


def int64(text: str) -> int | None:
    """The number a label value spells, if it spells one."""
    if len(text) > _LONGEST or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def requirement_problems(
    key: str, operator: str, values: Sequence[str], path: str = ""
) -> Iterator[str]:
    """Everything that is invalid in a requirement with a known operator."""
    if not is_qualified_name(key):
        yield invalid(_child(path, "key"), key, "; ".join(_key_faults(key)))
    place = _child(path, "values")
    match operator:
        case "In" | "NotIn":
            if not values:
                yield invalid(place, values, _EMPTY)
        case "Exists" | "DoesNotExist":
            if values:
                yield invalid(place, values, _NOT_EMPTY)
        case _:
            if len(values) != 1:
                yield invalid(place, values, _NOT_ONE)
            for index, value in enumerate(values):
                if int64(value) is None:
                    yield invalid(f"{place}[{index}]", value, _NO_INTEGER)
    for index, value in enumerate(values):
        if not is_label_value(value):
            faults = [] if len(value) <= _LONGEST else [f"must be no more than {_LONGEST} bytes"]
            if len(value) <= _LONGEST or not is_label_value(value[:1] + value[-1:]):
                faults.append(_VALUE)
            yield invalid(f"{place}[{index}][{key}]", value, "; ".join(faults))


def unsupported_operator(operator: str, supported: Sequence[str], path: str) -> str:
    listed = ", ".join(f'"{name}"' for name in supported)
    place = _child(path, "operator")
    return f"{place}: Unsupported value: {json.dumps(operator)}: supported values: {listed}"


def unsupported_key(key: str, path: str) -> str:
    place = _child(path, "key")
    return f'{place}: Unsupported value: {json.dumps(key)}: supported values: "metadata.name"'


def invalid(path: str, value: str | Sequence[str], text: str) -> str:
    shown = value if isinstance(value, str) else list(value) or None
    return f"{path}: Invalid value: {json.dumps(shown, separators=(',', ':'))}: {text}"


def aggregate(problems: Sequence[str]) -> str:
    """Several problems in one line; each is said once."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _key_faults(key: str) -> list[str]:
    parts = key.split("/")
    if len(parts) > 2:
        suffix = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME}{suffix}"]
    faults = []
    name = parts[-1]
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            faults.append("prefix part must be non-empty")
        elif not is_qualified_name(f"{prefix}/x"):
            if len(prefix) > 253:
                faults.append("prefix part must be no more than 253 bytes")
            else:
                faults.append(f"prefix part {_DOMAIN}")
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > _LONGEST:
        faults.append(f"name part must be no more than {_LONGEST} bytes")
    if not is_qualified_name(name) and len(name) <= _LONGEST:
        faults.append(f"name part {_NAME}")
    return faults
