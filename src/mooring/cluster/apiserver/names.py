"""The grammars of names, labels and keys, and the messages about text that violates them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_QUALIFIED: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_ENDS: Final = "must start and end with an alphanumeric character"

BAD_LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    f"{_ENDS} (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
BAD_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', and {_ENDS} (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_RULE: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"and {_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

Faults = tuple[str, ...]


# Clusters repeat the same few thousand names and labels all the time.
@lru_cache(maxsize=65_536)
def qualified_name_faults(text: str) -> Faults:
    """Of `name` or `domain/name`: keys of labels, resources, taints and finalizers."""
    parts = text.split("/")
    if len(parts) > 2:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_QUALIFIED_RULE}{hint}",)
    faults: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        faults += [f"prefix part {fault}" for fault in subdomain_faults(parts[0]) if parts[0]]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    if _QUALIFIED.fullmatch(name) is None:
        faults.append(f"name part {_QUALIFIED_RULE}")
    return tuple(faults)


@lru_cache(maxsize=65_536)
def label_value_faults(text: str) -> Faults:
    faults = []
    if len(text) > 63:
        faults.append("must be no more than 63 bytes")
    if text and _QUALIFIED.fullmatch(text) is None:
        faults.append(_VALUE_RULE)
    return tuple(faults)


@lru_cache(maxsize=4096)
def label_faults(text: str) -> Faults:
    """Of a DNS label: names of namespaces, containers and volumes."""
    return _dns(text, 63, _LABEL, BAD_LABEL)


def service_name_faults(text: str) -> Faults:
    """Of a DNS label; dots are reported first."""
    return ("must not contain dots",) if "." in text else label_faults(text)


def subdomain_faults(text: str) -> Faults:
    """Of labels joined by dots: names of most objects."""
    return _dns(text, 253, _SUBDOMAIN, BAD_SUBDOMAIN)


def path_segment_faults(text: str) -> Faults:
    """Of a path segment: names of roles and of events."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{mark}'" for mark in ("/", "%") if mark in text)


def without_dash(prefix: str) -> str:
    """A prefix for generated names, made valid as if a suffix followed."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _dns(text: str, longest: int, grammar: re.Pattern[str], rule: str) -> Faults:
    faults = []
    if len(text) > longest:
        faults.append(f"must be no more than {longest} characters")
    if grammar.fullmatch(text) is None:
        faults.append(rule)
    return tuple(faults)
