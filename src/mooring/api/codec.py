"""JSON and YAML in, structs out, and back.

Decoding is strict and fast; only when it fails are nulls dropped (Go clients write them for empty
fields) and the object tried again. Whatever still does not fit becomes a `DecodeError` that names
the object and the path of the field.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from mooring.api import yaml
from mooring.api.apps import ReplicaSet, StatefulSet
from mooring.api.auth import (
    NO_EXTRA,
    Extra,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
    TokenReview,
)
from mooring.api.coordination import Lease
from mooring.api.core import (
    Binding,
    ConfigMap,
    Namespace,
    Node,
    Pod,
    ReplicationController,
    Service,
)
from mooring.api.events import Event
from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import NO_RESOURCES, Object, ResourceList
from mooring.api.policy import PodDisruptionBudget
from mooring.api.quantity import Quantity, parse_quantity
from mooring.api.resource import (
    Capacities,
    Counter,
    Counters,
    DeviceAttribute,
    DeviceAttributes,
    DeviceCapacity,
    DeviceClass,
    DeviceTaintRule,
    Json,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.api.scheduling import PriorityClass
from mooring.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from mooring.api.unreadable import NOT_JSON, NOT_YAML, why_unreadable, yaml_problem
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim

T = TypeVar("T")

_MOST_KNOWN: Final = 4_000  # maps that are the same object wherever they are equal

KINDS: Final[tuple[type[Object], ...]] = (
    Binding,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    ConfigMap,
    DeviceClass,
    DeviceTaintRule,
    Event,
    Lease,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    Service,
    StatefulSet,
    StorageClass,
    SubjectAccessReview,
    TokenReview,
    VolumeAttachment,
)


_MAPS: Final[dict[Any, Any]] = {
    DeviceAttributes: dict[str, DeviceAttribute],
    Capacities: dict[str, DeviceCapacity],
    Counters: dict[str, Counter],
}
"""Maps of structs, and what their items are decoded as."""


class DecodeError(ValueError):
    """Data that is not the object it should be; `path` is where, in JSON's own field names."""

    def __init__(self, subject: str, path: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (subject, path, problem) if part))
        self.subject = subject
        self.path = path
        self.problem = problem


def decode(data: bytes | str, type: type[T]) -> T:
    """Decode JSON into one of our structs; whatever the bytes, `DecodeError` if that fails."""
    return _decoded(data, type, _decoder(type))


def _decoded(data: bytes | str, type: type[T], decoder: msgspec.json.Decoder[T]) -> T:
    try:
        try:
            return decoder.decode(data)
        except msgspec.ValidationError:
            parsed = msgspec.json.decode(data)
    except NOT_JSON as error:
        problem = f"not valid JSON: {why_unreadable(error)}"
        raise DecodeError(_type_name(type), "", problem) from error
    return _convert_without_nulls(parsed, type)


def convert(obj: Any, type: type[T]) -> T:
    """Turn parsed JSON or YAML into one of our structs."""
    return _converted(obj, type, _read)


def _converted(obj: Any, type: type[T], read: Callable[[Any, Any], Any]) -> T:
    try:
        return msgspec.convert(obj, type, dec_hook=read)
    except (msgspec.ValidationError, RecursionError):
        return _convert_without_nulls(obj, type)


def encode(obj: Any) -> bytes:
    """JSON for a struct; a top-level kind says its apiVersion and kind first."""
    body = _encoder.encode(obj)
    if not isinstance(obj, Object):
        return body
    head = f'{{"apiVersion":"{obj.API_VERSION}","kind":"{obj.KIND}"'.encode()
    return head + (b"}" if body == b"{}" else b"," + body[1:])


def to_builtins(obj: Any) -> Any:
    """What `encode` writes, as dicts, lists and strings."""
    return msgspec.json.decode(encode(obj))


def yaml_documents(text: str) -> list[Any]:
    """The data of every document of a text; times stay text, as they are in JSON."""
    try:
        return yaml.load_all(text)
    except NOT_YAML as error:
        raise DecodeError("", "", f"not valid YAML: {yaml_problem(error)}") from error


class SharingDecoder:
    """Decodes many objects, as `decode` and `convert`; equal maps become one object.

    The objects of a cluster have few different ones: they are built, parsed and kept once.
    """

    def __init__(self) -> None:
        self._maps = _SharedMaps()
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

    def decode(self, data: bytes | str, type: type[T]) -> T:
        decoder: msgspec.json.Decoder[T] | None = self._decoders.get(type)
        if decoder is None:
            decoder = self._decoders[type] = msgspec.json.Decoder(type, dec_hook=self._read)
        return _decoded(data, type, decoder)

    def convert(self, obj: Any, type: type[T]) -> T:
        return _converted(obj, type, self._read)

    def _read(self, type: Any, obj: Any) -> Any:
        if obj.__class__ is not dict or type is Json or type is ResourceList:
            return _read(type, obj)
        return self._maps.read(type, obj, _read)


class _SharedMaps:
    """Reads maps with the same items as one object; forgets all when they are too many."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Any] = {}  # type and items -> map

    def read(self, type: Any, obj: dict[Any, Any], make: Callable[[Any, Any], Any]) -> Any:
        key = type, *obj.items()
        try:
            found = self._known.get(key)
        except TypeError:  # an item is a list or a map itself
            return make(type, obj)
        if found is None:
            found = make(type, obj)
            if all(value.__class__ is str for value in obj.values()):  # 1 and True are equal
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()  # what is in use comes back at once
                self._known[key] = found
        return found

    def __len__(self) -> int:
        return len(self._known)


class _AtKey(ValueError):
    """A bad value inside a map; msgspec knows the path of the map but not the key."""

    def __init__(self, key: object, problem: str) -> None:
        super().__init__(problem)
        self.key = key


def _read(type: Any, obj: Any) -> Any:
    """Build the types msgspec does not know: our maps and quantities."""
    if type is Quantity:
        return parse_quantity(obj)
    if type is Json:
        return Json(msgspec.json.encode(obj, order="sorted").decode())
    if obj.__class__ is not dict:
        raise ValueError(f"expected object, got {_json_type(obj)}")
    if type is ResourceList:
        return _RESOURCES.read(type, obj, _resources) if obj else NO_RESOURCES
    if type is Extra:
        return Extra(msgspec.convert(obj, dict[str, tuple[str, ...]])) if obj else NO_EXTRA
    if type in _MAPS:
        return type(msgspec.convert(obj, _MAPS[type], dec_hook=_read))
    if not obj:
        return EMPTY
    for key, value in obj.items():
        if value.__class__ is not str or key.__class__ is not str:
            return FrozenDict(_strings(obj))
    return FrozenDict(obj)


# Nodes of one type and pods of one template have the same.
_RESOURCES: Final = _SharedMaps()


def _resources(type: Any, obj: dict[Any, Any]) -> ResourceList:
    return ResourceList(_amounts(obj))


def _amounts(obj: dict[Any, Any]) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {}
    for key, value in obj.items():
        if not isinstance(key, str):
            raise _AtKey(key, f"expected str as key, got {_json_type(key)}")
        try:
            amounts[key] = Quantity.ZERO if value is None else parse_quantity(value)
        except ValueError as error:
            raise _AtKey(key, str(error)) from None
    return amounts


def _strings(obj: dict[Any, Any]) -> dict[str, str]:
    for key, value in obj.items():
        if not isinstance(key, str):
            raise _AtKey(key, f"expected str as key, got {_json_type(key)}")
        if value is not None and not isinstance(value, str):
            raise _AtKey(key, f"expected str, got {_json_type(value)}")
    return {key: value or "" for key, value in obj.items()}


def _write(obj: Any) -> Any:
    if isinstance(obj, Quantity):
        return str(obj)
    if isinstance(obj, Json):
        return msgspec.Raw(obj.encode())
    raise NotImplementedError(f"cannot encode {type(obj).__name__}")


_encoder: Final = msgspec.json.Encoder(enc_hook=_write)


_decoders: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def _decoder(type: type[T]) -> msgspec.json.Decoder[T]:
    decoder = _decoders.get(type)
    if decoder is None:
        decoder = _decoders[type] = msgspec.json.Decoder(type, dec_hook=_read)
    return decoder


def _convert_without_nulls(obj: Any, type: type[T]) -> T:
    try:
        try:
            return msgspec.convert(_without_nulls(obj), type, dec_hook=_read)
        except msgspec.ValidationError as error:
            raise _explained(error, obj, type) from error
    except RecursionError as error:
        raise DecodeError(_type_name(type), "", why_unreadable(error)) from error


def _without_nulls(obj: Any) -> Any:
    if isinstance(obj, dict):
        return {key: _without_nulls(value) for key, value in obj.items() if value is not None}
    if isinstance(obj, list | tuple):
        return [_without_nulls(value) for value in obj if value is not None]
    return obj


_PLACED: Final = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*?)`", re.DOTALL)


def _explained(error: msgspec.ValidationError, obj: Any, type: Any) -> DecodeError:
    problem, path = str(error), ""
    if placed := _PLACED.fullmatch(problem):
        problem, path = placed[1], placed[2]
    if isinstance(error.__cause__, _AtKey):
        key = str(error.__cause__.key)
        path += f"[{key}]" if re.search(r"[./\[\]]", key) else f".{key}"
    problem = problem.replace("`", "")
    return DecodeError(_subject(obj, type), path, problem[:1].lower() + problem[1:])


def _subject(obj: Any, type: Any) -> str:
    """The kind, and the name as far as the broken object tells it."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        return _type_name(type)
    parts = (metadata.get("namespace"), metadata.get("name") or metadata.get("generateName"))
    return f"{_type_name(type)} {'/'.join(str(p) for p in parts if p)}".rstrip()


def _type_name(type: Any) -> str:
    return str(getattr(type, "KIND", None) or getattr(type, "__name__", type)).lstrip("_")


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), type(value).__name__)
