"""The formats of strings that are checked; any other format says nothing."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)([.,]\d+)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
_EMAIL: Final = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")
_UUID: Final = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?%s-?%s-?[0-9a-fA-F]{12}"
_ANY4: Final = "[0-9a-fA-F]{4}"
_MAC: Final = re.compile(r"([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2}[:-]?){0,2}[0-9a-fA-F]{2}")
_HOST: Final = re.compile(
    r"[^\W_]([^\W_]|-(?!$)){0,62}|([^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63}"
)
_GO_DURATION: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_WORDED: Final = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_UNITS: Final = frozenset(
    (
        "ns", "nano", "nanos", "us", "µs", "micro", "micros", "ms", "milli", "millis", "s", "sec",
        "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs",
        "hour", "hours", "d", "day", "days", "w", "wk", "week", "weeks",
    )
)  # fmt: skip
_HEX_COLOR: Final = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_RGB_COLOR: Final = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2024-01-01")


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    if match is None or not _is_date(match[1]):
        return False
    return int(match[2]) < 24 and int(match[3]) < 60 and int(match[4]) < 60


def _is_ip(version: int) -> Callable[[str], bool]:
    def is_ip(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return is_ip


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return "/" in text


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_duration(text: str) -> bool:
    if text and not _GO_DURATION.sub("", text):
        return True
    found = _WORDED.findall(text)
    return bool(found) and all(unit.lower() in _UNITS for _, unit in found)


def _is_rgb(text: str) -> bool:
    match = _RGB_COLOR.fullmatch(text)
    return match is not None and all(int(part) < 256 for part in match.groups())


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "email": _matching(_EMAIL.pattern),
    "ipv4": _is_ip(4),
    "ipv6": _is_ip(6),
    "cidr": _is_cidr,
    "mac": _matching(_MAC.pattern),
    "uri": _is_uri,
    "hostname": _matching(_HOST.pattern),
    "uuid": _matching(_UUID % (_ANY4, _ANY4)),
    "uuid3": _matching(_UUID % ("3[0-9a-fA-F]{3}", _ANY4)),
    "uuid4": _matching(_UUID % ("4[0-9a-fA-F]{3}", "[89abAB][0-9a-fA-F]{3}")),
    "uuid5": _matching(_UUID % ("5[0-9a-fA-F]{3}", "[89abAB][0-9a-fA-F]{3}")),
    "byte": _is_base64,
    "duration": _is_duration,
    "hexcolor": _matching(_HEX_COLOR.pattern),
    "rgbcolor": _is_rgb,
    "k8s-short-name": _matching(_LABEL.pattern),
    "k8s-long-name": _matching(rf"(?=.{{1,253}}$){_LABEL.pattern}(\.{_LABEL.pattern})*"),
}
"""By name: whether a text has the format."""
