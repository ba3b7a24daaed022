"""Simulated devices of a node, as the annotation `mooring.dev/devices` describes them.

    gpu=8                                  8 devices of type gpu
    gpu=8:model=a100:memory=80Gi; nic=2    with an attribute and a capacity; and 2 of another type

Whole numbers and true or false are attributes of these types; amounts with a unit of bytes are
capacities; anything else is a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mooring.cluster.apiserver.store import Object

DEVICES: Final = "mooring.dev/devices"
"""The annotation."""

_MOST: Final = 1_024  # of a node
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")
_BYTES: Final = re.compile(r"\d+([KMGTPE]i|[kMGTPE])")
_WHOLE: Final = re.compile(r"-?\d{1,18}")

DeviceTypes = dict[str, tuple[int, dict[str, str]]]
"""By type: how many there are, and what is said of each."""


def read_devices(text: str) -> DeviceTypes:
    """The types of devices in an annotation; ValueError names what was expected."""
    found: DeviceTypes = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        first, *rest = part.split(":")
        name, _, count = first.partition("=")
        if not _NAME.fullmatch(name):
            raise ValueError(f"expected a type in lower case, such as gpu=8, got {part!r}")
        if not count.isdecimal() or not 1 <= int(count) <= _MOST:
            raise ValueError(f"expected {name}=1 to {name}={_MOST}, got {first!r}")
        said = dict(_pair(one) for one in rest)
        if name in found:
            raise ValueError(f"{name} is named twice")
        found[name] = int(count), said
    if sum(count for count, _ in found.values()) > _MOST:
        raise ValueError(f"expected at most {_MOST} devices on a node")
    return found


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not _NAME.fullmatch(name) or not equals or not value:
        raise ValueError(f"expected an attribute such as model=a100, got {text!r}")
    return name, value


def devices_of(types: DeviceTypes) -> Iterator[Object]:
    """The devices as a ResourceSlice has them."""
    for name, (count, said) in types.items():
        capacity = {key: {"value": value} for key, value in said.items() if _BYTES.fullmatch(value)}
        for index in range(count):
            attributes: dict[str, Any] = {"type": {"string": name}, "index": {"int": index}}
            for key, value in said.items():
                if key not in capacity:
                    attributes[key] = _attribute(value)
            device: Object = {"name": f"{name}-{index}", "attributes": attributes}
            if capacity:
                device["capacity"] = capacity
            yield device


def _attribute(value: str) -> Object:
    if _WHOLE.fullmatch(value):
        return {"int": int(value)}
    if value in ("true", "false"):
        return {"bool": value == "true"}
    return {"string": value}
