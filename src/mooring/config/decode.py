"""Plain data into msgspec Structs, reporting every problem with its YAML path.

msgspec stops at the first problem; a user who fixes a file needs the whole list. So the decoder
walks data and types side by side and converts the smallest pieces first: the error of a piece
becomes one problem, and the walk continues. A Struct without problems in its pieces is then
converted itself, which runs its `__post_init__` and checks the constraints on it as a whole.

As in Kubernetes, `null` for a field that has a default means that the field was left out.

`load` decodes the configuration with this, and the runtime decodes the arguments of plugins.
"""

import collections.abc as abc
import enum
import re
import types
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin

import msgspec

from mooring.config._field_errors import REQUIRED, invalid, quote
from mooring.config.duration import Duration
from mooring.config.source import child_path
from mooring.errors import Problem
from mooring.observe.suggestions import did_you_mean

T = TypeVar("T")

_SEQUENCES = (list, tuple, set, frozenset, abc.Sequence, abc.Set, abc.Collection)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_PLACE = re.compile(r" - at (?:`key` in )?`\$(?P<path>[^`]*)`$")
_GOT = re.compile(r"got `(?:str|int|float|bool)`$")


UNUSABLE: Final = object()  # the result for data that can't be decoded, not even partly


def decode(raw: object, type_: type[T], path: str = "") -> tuple[T | None, list[Problem]]:
    """Decode strictly: a value and no problems, or None and all of them."""
    value, problems = decode_partly(raw, type_, path)
    return (None if problems else value), problems


def decode_partly(raw: object, type_: type[T], path: str = "") -> tuple[T | None, list[Problem]]:
    """Decode what can be: with problems, the value has defaults where the problems are.

    The value is only good for finding further problems. It is None when nothing can be kept.
    """
    walk = _Walk()
    kept = walk.visit(raw, type_, path)
    if kept is UNUSABLE:
        return None, walk.problems
    try:
        return _convert(kept, type_), walk.problems
    except msgspec.ValidationError:
        # Without the fields that have problems, the Struct may refuse the others.
        return None, walk.problems


def decode_args(
    raw: object, args_type: type[T], plugin_name: str, path: str
) -> tuple[T | None, list[Problem]]:
    """Decode the `args` of a pluginConfig entry into the plugin's own type.

    `apiVersion` and `kind` may be present, as kube-scheduler allows; the kind must then be the
    plugin's name followed by `Args`. Absent arguments mean all defaults.
    """
    if raw is None:
        raw = {}
    problems: list[Problem] = []
    if isinstance(raw, dict):
        expected = f"{plugin_name}Args"
        kind = raw.get("kind")
        if kind is not None and kind != expected:
            text = f"has to match plugin args {expected}"
            problems.append(invalid(child_path(path, "kind"), kind, text))
        raw = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
    value, found = decode(raw, args_type, path)
    problems += found
    return (None if problems else value), problems


class _Walk:
    """One pass over data and type; collects problems, returns the data that can be kept."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.losses = 0  # problems that cost a value; an unknown field costs none

    def report(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))
        self.losses += 1

    def visit(self, raw: object, type_: Any, path: str) -> object:
        before = self.losses
        shape = _shape(type_, raw)
        origin = get_origin(shape) or shape
        kept = raw
        if isinstance(raw, dict) and _is_object(origin):
            kept = self.visit_struct(raw, shape, path)
        elif isinstance(raw, dict) and origin in _MAPPINGS and get_args(shape):
            kept = self.visit_mapping(raw, get_args(shape)[1], path)
        elif isinstance(raw, list) and origin in _SEQUENCES and get_args(shape):
            kept = self.visit_items(raw, get_args(shape), path)
        if kept is UNUSABLE:
            return UNUSABLE
        try:
            _convert(kept, type_)
        except msgspec.ValidationError as error:
            # If values were left out, the error may only be a consequence of that.
            if self.losses == before:
                self.explain(error, raw, shape, path)
            return UNUSABLE
        return kept

    def visit_struct(self, raw: dict[Any, object], shape: Any, path: str) -> object:
        struct = get_origin(shape) or shape
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        config = struct.__struct_config__
        if config.forbid_unknown_fields:
            for key in raw:
                if key not in fields and key != config.tag_field:
                    message = unknown_field(str(key), list(fields))
                    self.problems.append(Problem(child_path(path, key), message))
        kept: dict[Any, object] = {key: raw[key] for key in raw if key == config.tag_field}
        usable = True
        for name, field in fields.items():
            value = raw.get(name)
            if name not in raw or (value is None and not _accepts_null(field.type)):
                if field.required:
                    self.report(child_path(path, name), REQUIRED)
                    usable = False
                continue
            value = self.visit(value, field.type, child_path(path, name))
            if value is not UNUSABLE:
                kept[name] = value
            elif field.required:
                usable = False
        return kept if usable else UNUSABLE

    def visit_mapping(self, raw: dict[Any, object], type_: Any, path: str) -> object:
        kept = {key: self.visit(value, type_, child_path(path, key)) for key, value in raw.items()}
        return {key: value for key, value in kept.items() if value is not UNUSABLE}

    def visit_items(self, raw: list[object], types_: tuple[Any, ...], path: str) -> object:
        repeated = len(types_) == 1 or types_[-1] is Ellipsis
        expected = [types_[0]] * len(raw) if repeated else types_
        kept = [
            self.visit(item, type_, f"{path}[{index}]")
            for index, (item, type_) in enumerate(zip(raw, expected, strict=False))
        ]
        kept += raw[len(kept) :]  # a wrong length is reported for the list as a whole
        # Without one item the others would have wrong paths.
        return UNUSABLE if any(item is UNUSABLE for item in kept) else kept

    def explain(self, error: msgspec.ValidationError, raw: object, shape: Any, path: str) -> None:
        message = str(error).replace(" | null`", "`")  # null only says that the field is optional
        place = _PLACE.search(message)
        if place:
            message = message[: place.start()]
            path = f"{path}{place['path']}".removeprefix(".")
        elif _GOT.search(message):
            message = f"{message} {quote(raw)}"
        if message.startswith(("Expected `", "Invalid ", "Object ")):
            message = message[0].lower() + message[1:].replace("`", "")
        choices = _choices(shape)
        if choices and message.startswith("invalid enum value"):
            message = f"invalid value {quote(raw)}; expected one of: {', '.join(choices)}"
        self.report(path, message)


def _convert(raw: object, type_: type[T]) -> T:
    return msgspec.convert(raw, type_, dec_hook=_read_custom)


def _read_custom(type_: type, raw: object) -> object:
    """The `dec_hook` of msgspec."""
    if isinstance(raw, type_):
        return raw
    if type_ is Duration:
        if isinstance(raw, str):
            return Duration.parse(raw)
        if raw == 0 and isinstance(raw, int) and not isinstance(raw, bool):
            return Duration()
        raise ValueError(f"expected a duration such as 15s or 1m30s, got {quote(raw)}")
    raise ValueError(f"expected {type_.__name__}, got {quote(raw)}")


def _shape(type_: Any, raw: object) -> Any:
    """The type to walk into: without Annotated, aliases, and union members that cannot fit."""
    while True:
        if get_origin(type_) is Annotated:
            type_ = get_args(type_)[0]
        elif isinstance(type_, NewType):
            type_ = type_.__supertype__
        elif get_origin(type_) in (Union, types.UnionType):
            members = [member for member in get_args(type_) if member is not types.NoneType]
            fitting = [member for member in members if _could_hold(member, raw)]
            candidates = members if len(members) == 1 else fitting
            if len(candidates) != 1:
                return type_
            type_ = candidates[0]
        else:
            return type_


def _could_hold(type_: Any, raw: object) -> bool:
    shape = _shape(type_, raw)
    origin = get_origin(shape) or shape
    if isinstance(raw, dict):
        return _is_object(origin) or origin in _MAPPINGS
    if isinstance(raw, list):
        return origin in _SEQUENCES
    return False


def _is_object(origin: Any) -> bool:
    return (
        isinstance(origin, type)
        and issubclass(origin, msgspec.Struct)
        and not origin.__struct_config__.array_like
    )


def _accepts_null(type_: Any) -> bool:
    try:
        _convert(None, type_)
    except msgspec.ValidationError:
        return False
    return True


def _choices(shape: Any) -> list[str]:
    if get_origin(shape) is Literal:
        return [str(choice) for choice in get_args(shape)]
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return [str(member.value) for member in shape]
    return []


def unknown_field(key: str, names: abc.Sequence[str]) -> str:
    """The message for a field that is none of `names`."""
    if not names:
        return "unknown field; no fields are expected here"
    return f"unknown field; expected one of: {', '.join(names)}{did_you_mean(key, names)}"
