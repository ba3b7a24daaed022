"""What selectors of devices read, in a redacted snapshot: drivers, attributes and their values.

A selector in CEL compares strings with literals, so that both get the same pseudonym: the
expression is taken apart and put together again. A selector that reads a string letter by letter
(`startsWith`, `matches`, …) would find another string; then all these words stay as they are, in
the whole snapshot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from mooring.api.resource import DeviceClass, DeviceSelector, ResourceClaim
from mooring.lens.pseudonyms import Pseudonyms
from mooring.lens.snapshot import ClusterState
from mooring.plugins.dynamicresources.cel.syntax import SyntaxProblem, string_of, tokens

_SEMVER: Final = re.compile(r"v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.-]*)?", re.ASCII)
_OF_DEVICES: Final = frozenset(("driver", "attributes", "capacity", "allowMultipleAllocations"))
_NAMES: Final = frozenset(
    [
        "device",
        "cel",
        "optional",
        "true",
        "false",
        "null",
        "in",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "list",
        "map",
        "type",
    ]
)
# The literals of these are no names.
_PARSING: Final = frozenset(["quantity", "isQuantity", "semver", "isSemver"])
# Functions that compare strings as a whole, or not at all.
_WHOLE_TEXT: Final = """
all exists exists_one existsOne map filter has bind optMap optFlatMap of ofNonZeroValue none or
orValue hasValue value compareTo isGreaterThan isLessThan asInteger isInteger asApproximateFloat
sign add sub major minor patch includes
"""
_WHOLE: Final = frozenset(_WHOLE_TEXT.split()) | _PARSING
_ORDERED: Final = frozenset(("<", "<=", ">", ">=", "+"))
_OF_MAPS: Final = re.compile(r"size\(\s*device\.(attributes|capacity)\b")

Token = tuple[str, str]


class DeviceWords:
    """Replaces the words that selectors read."""

    def __init__(self, pseudonyms: Pseudonyms, cluster: ClusterState) -> None:
        self._pseudonyms = pseudonyms
        self._attributes = {
            name.rpartition("/")[2]
            for slice_ in cluster.resourceslices
            for device in slice_.spec.devices
            for name in (*device.attributes, *device.capacity)
        }
        self.stay: bool = any(map(_reads_letters, set(_expressions(cluster))))

    def text(self, text: str) -> str:
        """A driver, a domain or a value: anything that is a string in a selector."""
        if self.stay:
            return text
        return self.field(text) if text in self._attributes else self._pseudonyms.name(text)

    def field(self, name: str) -> str:
        """An attribute or a capacity without its domain: a word of CEL."""
        return name if self.stay else self._pseudonyms.word(name)

    def qualified(self, name: str) -> str:
        """An attribute or a capacity, with or without its domain."""
        domain, slash, field = name.rpartition("/")
        return f"{self.text(domain)}{slash}{self.field(field)}"

    def version(self, text: str) -> str:
        """What is no version is a name."""
        return text if _SEMVER.fullmatch(text) else self.text(text)

    def expression(self, text: str) -> str:
        """A selector with pseudonyms; one that can't be read becomes another such."""
        if self.stay:
            return text
        try:
            found = tokens(text)
        except SyntaxProblem:
            return self._pseudonyms.word(text) + " ("
        return " ".join(self._token(found, place) for place in range(len(found) - 1))

    def _token(self, found: list[Token], place: int) -> str:
        kind, text = found[place]
        if kind == "string":
            value = string_of(text)
            is_parsed = place > 1 and found[place - 2][1] in _PARSING
            if is_parsed or not isinstance(value, str):
                return text
            return json.dumps(self.text(value))
        if kind != "ident":
            return text
        before = [token for _, token in found[max(0, place - 3) : place] if token != "?"]
        if before[-1:] != ["."]:
            is_known = text in _NAMES or found[place + 1][1] == "("
            return text if is_known else self._pseudonyms.word(text)
        if found[place + 1][1] == "(" or (before[-2:-1] == ["device"] and text in _OF_DEVICES):
            return text
        return self.field(text)


def _expressions(cluster: ClusterState) -> Iterable[str]:
    for class_ in cluster.deviceclasses:
        yield from _of(class_)
    for claim in cluster.resourceclaims:
        yield from _of(claim)


def _of(value: DeviceClass | ResourceClaim) -> Iterable[str]:
    selectors: list[DeviceSelector] = []
    if isinstance(value, DeviceClass):
        selectors += value.spec.selectors
    else:
        for request in value.spec.devices.requests:
            if request.exactly is not None:
                selectors += request.exactly.selectors
            for other in request.first_available:
                selectors += other.selectors
    for one in selectors:
        if one.cel is not None:
            yield one.cel.expression


def _reads_letters(text: str) -> bool:
    """Whether a selector may do more with strings than compare them as a whole."""
    try:
        found = tokens(_OF_MAPS.sub("has(device.attributes", text))
    except SyntaxProblem:
        return False  # it is an error before it reads anything
    for place, (kind, token) in enumerate(found[:-1]):
        if kind == "ident" and found[place + 1][1] == "(" and token not in _WHOLE:
            return True
        if kind == "string" and _ORDERED & {found[place - 1][1], found[place + 1][1]}:
            return True
    return False
