"""How the messages of protobuf become our structs, worked out once from their types.

    message ──> steps by tag ──> values by name ──> struct

Parts that are the same bytes become the same object: labels, containers and tolerations of pods
that were made from one template are read once and need memory once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin
from typing import get_type_hints as hints_of

import msgspec
from msgspec.structs import replace

from mooring.api._field_numbers import FIELD_NUMBERS, RENAMED
from mooring.api._wire import BYTES, NUMBER, fields, signed, sized, text, varint
from mooring.api.frozen import FrozenDict
from mooring.api.meta import ResourceList, Value, format_time
from mooring.api.quantity import Quantity, parse_quantity

V = TypeVar("V", bound=Value)

_TIMES: Final = frozenset(
    [
        "creationTimestamp",
        "deletionTimestamp",
        "lastProbeTime",
        "lastTransitionTime",
        "startTime",
    ]
)
# Each object has its own: to remember them would be in vain.
_OF_ONE_OBJECT: Final = frozenset({("Pod", "metadata"), ("Pod", "spec")})
# The field in which messages differ that are the same otherwise.
_HINGES: Final = {"PodSpec": "node_name", "PodCondition": "last_transition_time"}
# Texts that many objects have in common.
_SHARED_TEXTS: Final = frozenset({("ObjectMeta", "namespace")})

_TOKEN_VOLUME: Final = b"kube-api-access-"
_MASKED_NAME: Final = "kube-api-access-?????"  # no name of a volume
_MASK: Final = _MASKED_NAME.encode()

_MOST_REMEMBERED: Final = 4 * 1024 * 1024  # bytes of parts
_LONGEST_REMEMBERED: Final = 16 * 1024  # bytes of one part

_KEY: Final = 1 << 3 | BYTES  # tags of an entry of a map
_VALUE: Final = 2 << 3 | BYTES
_SECONDS: Final = 1 << 3 | NUMBER  # tags of a time
_NO_NANOS: Final = bytes((2 << 3 | NUMBER, 0))
_MOST_LENGTHS: Final = 1024  # of messages, that are remembered
_MOST_TAGS: Final = 1024  # that are remembered as unknown
_SKIPPED: Final = object()

_Read = Callable[[bytes], Any]
_Found = dict[str, Any]


class _Memory:
    """Values by the bytes they were read from; all are forgotten when they are too many."""

    def __init__(self) -> None:
        self._left = _MOST_REMEMBERED
        self._parts: list[dict[bytes, Any]] = []

    def part(self) -> dict[bytes, Any]:
        """A place for the values of one field."""
        self._parts.append({})
        return self._parts[-1]

    def put(self, part: dict[bytes, Any], data: bytes, value: Any) -> Any:
        if len(data) <= _LONGEST_REMEMBERED:
            self._left -= len(data)
            if self._left < 0:
                self.clear()
            part[data] = value
        return value

    def clear(self) -> None:
        self._left = _MOST_REMEMBERED
        for part in self._parts:
            part.clear()


MEMORY: Final = _Memory()


class Message(Generic[V]):
    """Reads one kind of message into a struct."""

    def __init__(self, struct: type[V], name: str) -> None:
        self._struct = struct
        self._steps = _steps(struct, name)
        self._fill = self._steps.fill

    def read(self, data: bytes) -> V:
        """The struct. Raises what `_wire.UNREADABLE` lists."""
        found: _Found = {}
        self._fill(data, found)
        return self._struct(**found)


class _HingedMessage(Message[V]):
    """Reads messages of which many differ in one field alone, the hinge.

        head ── hinge ── rest

    A message is a sequence of fields that tell their own length: one that begins with the bytes of
    another's head has the same fields there. Where heads end is guessed by the messages' length.
    """

    def __init__(self, struct: type[V], name: str, hinge: str) -> None:
        super().__init__(struct, name)
        self._hinge = self._steps.make_hinge(hinge)
        self._head_ends: dict[int, int] = {}  # by length of the message
        self._by_head: dict[bytes, dict[bytes, V]] = MEMORY.part()  # then by rest

    def read(self, data: bytes) -> V:
        at = self._head_ends.get(len(data))
        if at is not None and (by_rest := self._by_head.get(data[:at])) is not None:
            hinge = self._hinge
            if data[at] == hinge.tag and (size := data[at + 1]) < 128:
                stop = at + 2 + size
                template = by_rest.get(data[stop:])
                if template is not None and stop <= len(data):
                    return replace(template, **{hinge.name: hinge.read(data[at + 2 : stop])})
        return self._learn(data)

    def _learn(self, data: bytes) -> V:
        hinge = self._hinge
        hinge.lose()
        value = super().read(data)
        if hinge.found is not None:
            start, stop = hinge.found
            head, rest = data[:start], data[stop:]
            if len(self._head_ends) > _MOST_LENGTHS:
                self._head_ends.clear()
            self._head_ends[len(data)] = start
            by_rest = self._by_head.get(head)
            if by_rest is None:
                by_rest = MEMORY.put(self._by_head, head, {})
            MEMORY.put(by_rest, rest, value)
        return value


class _PodSpecMessage(_HingedMessage[V]):
    """Reads pods of one template as the same bytes, although each has a volume of its own.

    The volume with the token of the service account is named kube-api-access- and five random
    letters, there and in every container that mounts it. The name is masked before the message is
    read, and put back into `volumes`.
    """

    def __init__(self, struct: type[V], name: str, hinge: str) -> None:
        super().__init__(struct, name, hinge)
        self._masks = True

    def read(self, data: bytes) -> V:
        start = data.find(_TOKEN_VOLUME) if self._masks else -1
        name = data[start : start + len(_MASK)]
        if start < 0 or not name[len(_TOKEN_VOLUME) :].isalnum() or len(name) < len(_MASK):
            return super().read(data)
        spec: Any = super().read(data.replace(name, _MASK))
        if not self._masks:  # since this message, which has the name in other fields, too
            return super().read(data)
        shown = name.decode()
        volumes = [
            replace(volume, name=volume.name.replace(_MASKED_NAME, shown))
            if _MASKED_NAME in volume.name
            else volume
            for volume in spec.volumes
        ]
        found: V = replace(spec, volumes=tuple(volumes))
        return found

    def _learn(self, data: bytes) -> V:
        spec: Any = super()._learn(data)
        if _MASK in data and _MASKED_NAME in _without_names(spec):
            self._masks = False
            MEMORY.clear()
        found: V = spec
        return found


def _without_names(spec: Any) -> str:
    """The text of a pod's spec without the names of its volumes."""
    volumes = tuple(replace(volume, name="") for volume in spec.volumes)
    return repr(replace(spec, volumes=volumes))


@cache
def message(struct: type[V], name: str) -> Message[V]:
    """The reader of a message, by its name in `FIELD_NUMBERS`."""
    hinge = _HINGES.get(name)
    if hinge is None:
        return Message(struct, name)
    kind = _PodSpecMessage if name == "PodSpec" else _HingedMessage
    return kind(struct, name, hinge)


class _Steps:
    """What to do with each field of a message, by tag: number and wire type."""

    def __init__(self, by_tag: dict[int, Any]) -> None:
        self._by_tag = by_tag  # a string is the name of a text
        self._numbers = {0} | {tag >> 3 for tag in by_tag}  # no field has 0
        self._of_one_byte = [by_tag.get(tag) for tag in range(128)]  # the same, for short tags

    def _set(self, tag: int, step: Any) -> None:
        self._by_tag[tag] = step
        if tag < 128:
            self._of_one_byte[tag] = step

    def make_hinge(self, name: str) -> _Hinge:
        """Take this field for one in which messages differ."""
        for tag, step in self._by_tag.items():
            if step == name:
                read: _Read = text
            elif isinstance(step, _Single) and step.name == name:
                read = step.read
            else:
                continue
            hinge = _Hinge(tag, name, read, self.fill)
            self._set(tag, hinge)
            return hinge
        raise AssertionError(f"{name} is no field that could be one")

    def fill(self, data: bytes, found: _Found) -> None:
        """Put the values of all fields under their names."""
        steps, others = self._of_one_byte, self._by_tag
        at, end = 0, len(data)
        while at < end:
            start = at
            tag = data[at]
            at += 1
            if tag < 128:
                step = steps[tag]
            else:  # numbers above 15
                more = data[at]
                at += 1
                tag = tag & 127 | more << 7
                if more > 127:
                    tag, at = varint(data, start)
                step = others.get(tag)
            if tag & 7 == BYTES:
                size = data[at]
                at += 1
                if size > 127:
                    more = data[at]
                    if more > 127:
                        size, at = varint(data, at - 1)
                    else:
                        size = size & 127 | more << 7
                        at += 1
                stop = at + size
                if stop > end:
                    raise IndexError
                if step is _SKIPPED:
                    pass
                elif step.__class__ is str:
                    if size:
                        found[step] = data[at:stop].decode("utf-8", "replace")
                elif step is None:
                    self._skip(tag)
                else:
                    stop = step.take(data, start, at, stop, found)
                at = stop
            elif tag & 7 == NUMBER:
                value = data[at]
                at += 1
                if value > 127:
                    value, at = varint(data, at - 1)
                if step is None:
                    self._skip(tag)
                elif step is not _SKIPPED:
                    name, is_bool, keeps_zero = step
                    if value or keeps_zero:
                        found[name] = value != 0 if is_bool else signed(value)
            else:
                self._skip(tag)
                size, at = sized(tag & 7, data, at)
                at += size
        if at > end:
            raise IndexError

    def _skip(self, tag: int) -> None:
        """Skip a field that our struct does not have."""
        if tag >> 3 in self._numbers:
            raise ValueError(f"field {tag >> 3} has wire type {tag & 7}")
        if tag < _MOST_TAGS:
            self._set(tag, _SKIPPED)


class _Number(NamedTuple):
    """An integer or a boolean; `keeps_zero` if that is not the same as none."""

    name: str
    is_bool: bool
    keeps_zero: bool


class _Single:
    """A field with one value, which is made of its bytes."""

    def __init__(self, name: str, read: _Read, *, keeps_empty: bool, is_shared: bool) -> None:
        self.name: str = name
        self._read = read
        self._keeps_empty = keeps_empty
        self._known = MEMORY.part() if is_shared else None

    def read(self, part: bytes) -> Any:
        """The value; None if an empty one means none."""
        if not (part or self._keeps_empty):
            return None
        known = self._known
        if known is None:
            return self._read(part)
        value = known.get(part)
        if value is None:
            value = MEMORY.put(known, part, self._read(part))
        return value

    def take(self, data: bytes, start: int, at: int, stop: int, found: _Found) -> int:
        value = self.read(data[at:stop])
        if value is not None:
            found[self.name] = value
        return stop


class _Run:
    """A repeated field or a map: the entries that follow each other are one value."""

    def __init__(self, name: str, number: int, read: _Read, collect: Callable[..., Any]) -> None:
        tag = number << 3 | BYTES
        self._name = name
        self._prefix = bytes((tag,) if tag < 128 else (tag & 127 | 128, tag >> 7))
        self._read = read
        self._collect = collect
        self._known = MEMORY.part()

    def take(self, data: bytes, start: int, at: int, stop: int, found: _Found) -> int:
        prefix = self._prefix
        width, end = len(prefix), len(data)
        while data.startswith(prefix, stop):
            at = stop + width
            size = data[at]
            at += 1
            if size > 127:
                size, at = varint(data, at - 1)
            stop = at + size
            if stop > end:
                raise IndexError
        run = data[start:stop]
        value = self._known.get(run)
        if value is None:
            value = self._collect(map(self._read, self._entries(run)))
            MEMORY.put(self._known, run, value)
        name = self._name
        found[name] = value if name not in found else _joined(found[name], value)
        return stop

    def _entries(self, run: bytes) -> list[bytes]:
        width, at, end = len(self._prefix), 0, len(run)
        entries = []
        while at < end:
            at += width
            size = run[at]
            at += 1
            if size > 127:
                size, at = varint(run, at - 1)
            entries.append(run[at : at + size])
            at += size
        return entries


class _Inlined:
    """A message whose fields are, in JSON, fields of the message around it."""

    def __init__(self, steps: _Steps) -> None:
        self._fill = steps.fill

    def take(self, data: bytes, start: int, at: int, stop: int, found: _Found) -> int:
        self._fill(data[at:stop], found)
        return stop


class _Hinge:
    """The field after which the rest of a message is remembered as a whole."""

    def __init__(self, tag: int, name: str, read: _Read, fill: Callable[..., None]) -> None:
        self.tag: int = tag
        self.name: str = name
        self.read: _Read = read
        self.found: tuple[int, int] | None = None  # where it was last
        self._fill = fill
        self._known = MEMORY.part()

    def lose(self) -> None:
        self.found = None

    def take(self, data: bytes, start: int, at: int, stop: int, found: _Found) -> int:
        rest = data[stop:]
        values = self._known.get(rest)
        if values is None:
            values = {}
            self._fill(rest, values)
            MEMORY.put(self._known, rest, values)
        found[self.name] = self.read(data[at:stop])
        for name, value in values.items():
            found[name] = _joined(found[name], value) if name in found else value
        self.found = None if self.name in values else (start, stop)
        return len(data)


def _joined(one: Any, other: Any) -> Any:
    """What a repeated field holds in two places; of another field the latter counts."""
    if isinstance(one, tuple):
        return one + other
    return type(one)({**one, **other}) if isinstance(one, dict) else other


# --- from types to steps -------------------------------------------------------------------------


def _steps(struct: type[Value], message_name: str) -> _Steps:
    hints = hints_of(struct)
    attributes = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
    by_tag: dict[int, Any] = {}
    inlined: dict[int, dict[int, Any]] = {}
    for entry in FIELD_NUMBERS[message_name].split():
        name, _, place = entry.partition("=")
        around, _, number = place.rpartition(".")
        attribute = attributes[name]
        tag, step = _step(message_name, name, attribute, int(number), hints[attribute])
        (inlined.setdefault(int(around), {}) if around else by_tag)[tag] = step
    for number_, inner in inlined.items():
        by_tag[number_ << 3 | BYTES] = _Inlined(_Steps(inner))
    return _Steps(by_tag)


def _step(message_name: str, name: str, attribute: str, number: int, hint: Any) -> tuple[int, Any]:
    """The tag of a field, and what to do with it."""
    kept = False  # although it is zero or empty
    if type(None) in get_args(hint):
        kept = True
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    bytes_tag = number << 3 | BYTES
    if hint in (int, bool):
        return number << 3 | NUMBER, _Number(attribute, hint is bool, kept)
    if name in _TIMES:
        return bytes_tag, _Single(attribute, _time, keeps_empty=False, is_shared=True)
    if hint is str:
        if not (kept or (message_name, name) in _SHARED_TEXTS):
            return bytes_tag, attribute
        return bytes_tag, _Single(attribute, text, keeps_empty=kept, is_shared=True)
    if hint is ResourceList:
        return bytes_tag, _Run(attribute, number, _amount, ResourceList)
    if get_origin(hint) is FrozenDict:
        return bytes_tag, _Run(attribute, number, _pair, FrozenDict)
    inner = RENAMED.get((message_name, name))
    if get_origin(hint) is tuple:
        element = get_args(hint)[0]
        read = text if element is str else message(element, inner or element.__name__).read
        return bytes_tag, _Run(attribute, number, read, tuple)
    read = message(hint, inner or hint.__name__).read
    is_shared = (message_name, name) not in _OF_ONE_OBJECT
    return bytes_tag, _Single(attribute, read, keeps_empty=True, is_shared=is_shared)


def _pair(data: bytes) -> tuple[str, str]:
    if len(data) > 3 and data[0] == _KEY and data[1] < 128:
        end = 2 + data[1]
        size = len(data) - end - 2  # of the value, if key and value are short, as usual
        if 0 <= size < 128 and data[end] == _VALUE and data[end + 1] == size:
            key, value = data[2:end], data[end + 2 :]
            return key.decode("utf-8", "replace"), value.decode("utf-8", "replace")
    entry = dict(fields(data))
    return text(entry.get(1, b"")), text(entry.get(2, b""))


def _amount(data: bytes) -> tuple[str, Quantity]:
    entry = dict(fields(data))
    name, said = text(entry.get(1, b"")), dict(fields(entry.get(2, b""))).get(1)
    return name, Quantity.ZERO if said is None else parse_quantity(text(said))


def _time(data: bytes) -> str:
    if data[0] == _SECONDS:
        seconds, at = varint(data, 1)
        if data[at:] == _NO_NANOS:
            return format_time(signed(seconds))
    return format_time(signed(dict(fields(data)).get(1, 0)))
