"""A snapshot from a file: our own format, or the objects that other tools write.

    read_snapshot ─┬─ .snap.gz ──────────────────────────────────────┐
                   ├─ JSON or YAML of objects: kubectl get, kwokctl ─┼─▶ Snapshot
                   └─ the export of kube-scheduler-simulator ────────┘

The commands that take a cluster call it. Every mistake is a ConfigError of one problem that names
the file.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from mooring.api import codec
from mooring.api.meta import Object
from mooring.api.unreadable import NOT_JSON
from mooring.errors import ConfigError, Problem
from mooring.lens.completing import completed
from mooring.lens.shared_specs import ObjectLines
from mooring.lens.snapshot import KINDS, ClusterState, MissingKind, QueuedState, Snapshot

FORMAT: Final = "mooring-snapshot"
VERSION: Final = 1

_GZIP: Final = b"\x1f\x8b"
_FIELDS: Final = {kind: field for field, kind in KINDS.items()}
_BY_NAME: Final = {(kind.API_VERSION, kind.KIND): kind for kind in KINDS.values()}
_CONFIG_KIND: Final = "KubeSchedulerConfiguration"
# The fields of an export of kube-scheduler-simulator that are not those of ClusterState.
_EXPORT_FIELDS: Final = {
    "pvs": "persistentvolumes",
    "pvcs": "persistentvolumeclaims",
    "storageClasses": "storageclasses",
    "priorityClasses": "priorityclasses",
}


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The first line of a snapshot file."""

    format: str
    version: int
    at: float = 0.0
    seq: int = 0
    redacted: bool = False
    scheduler: str = ""
    missing: tuple[MissingKind, ...] = ()
    has_queue: bool = False  # a scheduler was asked


class _Line(msgspec.Struct, frozen=True):
    """A line that is no object."""

    config: dict[str, Any] | None = None
    queued: QueuedState | None = None
    end: int | None = None


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in a file of any format that is known here."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _problem(str(path), _why(error)) from error
    return snapshot_of(data, str(path))


def is_snapshot(path: Path) -> bool:
    """Whether a file is of our own format, by its name or its first bytes."""
    if path.name.endswith((".snap", ".snap.gz")):
        return True
    with path.open("rb") as file:
        return f'"{FORMAT}"'.encode() in file.read(200)


def read_manifests(path: Path) -> tuple[Snapshot, list[dict[str, Any]]]:
    """The objects of a file, and those of kinds that no plugin reads as they stand there."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _problem(str(path), _why(error)) from error
    return manifests_of(data, str(path))


def manifests_of(data: bytes, name: str) -> tuple[Snapshot, list[dict[str, Any]]]:
    """As `read_manifests`, of bytes; `name` is what problems call them."""
    reader = _Foreign(name, keep_unknown=True)
    return reader.read(_unpacked(data, name)), reader.unknown


def _why(error: OSError) -> str:
    why = error.strerror or str(error)
    return why[:1].lower() + why[1:]


def snapshot_of(data: bytes, name: str) -> Snapshot:
    """The snapshot in the bytes of a file; `name` is what problems call it."""
    data = _unpacked(data, name)
    first = data[: data.find(b"\n") + 1] or data
    if f'"{FORMAT}"'.encode() in first[:200]:
        return _Own(name).read(data)
    return _Foreign(name).read(data)


def _unpacked(data: bytes, name: str) -> bytes:
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except EOFError as error:
            raise _problem(name, "truncated: the compressed data ends too early") from error
        except (OSError, zlib.error) as error:
            raise _problem(name, f"damaged: {error}") from error
    if not data or data.isspace():
        raise _problem(name, "empty; expected a snapshot, or objects in JSON or YAML")
    return data


def _problem(name: str, text: str) -> ConfigError:
    return ConfigError([Problem(name, text)], name)


class _Objects:
    """Collects objects by kind, in the order in which they come."""

    def __init__(self) -> None:
        self._found: dict[str, list[Object]] = {field: [] for field in KINDS}

    def add(self, value: Object) -> None:
        self._found[_FIELDS[type(value)]].append(value)

    def cluster(self) -> ClusterState:
        found: dict[str, Any] = {field: tuple(found) for field, found in self._found.items()}
        return ClusterState(**found)


class _Own:
    """Reads our own format: a header, then one JSON object a line, and a last line."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, data: bytes) -> Snapshot:
        lines = io.BytesIO(data)
        header = self._header(lines.readline())
        objects = _Objects()
        config, end = None, None
        queued: list[QueuedState] = []
        kinds: dict[bytes, type[Object]] = {}
        decode = ObjectLines().decode
        count = 0
        for number, line in enumerate(lines, start=2):
            if line.startswith(b'{"apiVersion"'):
                head = line[: line.find(b",", line.find(b'"kind"'))]
                kind = kinds.get(head)
                if kind is None:
                    kind = kinds[head] = self._kind(line, number)
                try:
                    objects.add(decode(line, kind))
                except codec.DecodeError as error:
                    self._fail(number, str(error))
                count += 1
            elif not line.isspace():
                one = self._line(line, number)
                config = one.config or config
                end = one.end if one.end is not None else end
                if one.queued is not None:
                    queued.append(one.queued)
        if end != count:
            why = "the last line is missing" if end is None else f"it had {end}"
            raise _problem(self._name, f"truncated: {count} objects were found, {why}")
        return Snapshot(
            cluster=objects.cluster(),
            config=config,
            queue=tuple(queued) if header.has_queue else None,
            missing=header.missing,
            at=header.at,
            seq=header.seq,
            redacted=header.redacted,
            scheduler=header.scheduler,
        )

    def _header(self, line: bytes) -> Header:
        try:
            version = msgspec.json.decode(line).get("version")
            if version != VERSION:
                text = f"a snapshot of version {version}; this mooring reads version {VERSION}"
                raise _problem(self._name, text)
            return msgspec.json.decode(line, type=Header)
        except NOT_JSON as error:
            raise _problem(self._name, f"line 1: {error}") from error

    def _kind(self, line: bytes, number: int) -> type[Object]:
        try:
            named = msgspec.json.decode(line, type=_Named)
        except NOT_JSON as error:
            self._fail(number, str(error))
        kind = _BY_NAME.get((named.api_version, named.kind))
        if kind is None:
            self._fail(number, f"unknown kind {named.kind} of {named.api_version}")
        return kind

    def _line(self, line: bytes, number: int) -> _Line:
        try:
            return msgspec.json.decode(line, type=_Line)
        except NOT_JSON as error:
            self._fail(number, str(error))

    def _fail(self, number: int, why: str) -> NoReturn:
        raise _problem(self._name, f"line {number}: {why}")


class _Named(msgspec.Struct, rename="camel"):
    """What is read of an object first."""

    api_version: str = ""
    kind: str = ""


class _List(_Named):
    """A list of objects that are decoded one by one."""

    items: tuple[msgspec.Raw, ...] = ()


class _Foreign:
    """Reads objects as other tools write them; kinds that are not known are noted, or kept."""

    def __init__(self, name: str, *, keep_unknown: bool = False) -> None:
        self._name = name
        self._keep_unknown = keep_unknown
        self.unknown: list[dict[str, Any]] = []
        self._objects = _Objects()
        self._codec = codec.SharingDecoder()
        self._unknown: dict[str, int] = {}
        self._config: dict[str, Any] | None = None
        self._found = 0

    def read(self, data: bytes) -> Snapshot:
        if not self._read_list(data):
            for place, document in self._documents(data):
                self._add(document, place)
        if not self._found and not self._config:
            expected = "expected a snapshot, or objects in JSON or YAML"
            if self._unknown:
                kinds = ", ".join(self._unknown)
                raise _problem(self._name, f"nothing that a scheduler reads, only {kinds}")
            raise _problem(self._name, f"no objects; {expected}")
        return Snapshot(
            cluster=completed(self._objects.cluster()), config=self._config, notes=self._notes()
        )

    def _notes(self) -> tuple[str, ...]:
        if not self._unknown:
            return ()
        kinds = ", ".join(
            f"{kind} ({count})" if count > 1 else kind for kind, count in self._unknown.items()
        )
        return (f"{self._name}: not used, because no plugin reads them: {kinds}",)

    def _read_list(self, data: bytes) -> bool:
        """The fast way for `kubectl get -o json`; False if it is something else."""
        try:
            listed = msgspec.json.decode(data, type=_List)
        except NOT_JSON:
            return False
        if not listed.kind.endswith("List") or not listed.items:
            return False
        for index, raw in enumerate(listed.items):
            place = f"items[{index}]"
            try:
                named = msgspec.json.decode(raw, type=_Named)
            except NOT_JSON as error:
                self._fail(place, str(error))
            # A list of one kind may leave the kind of its items out.
            api_version = named.api_version or listed.api_version
            kind = _BY_NAME.get((api_version, named.kind or listed.kind.removesuffix("List")))
            if kind is None:
                self._add(msgspec.json.decode(raw), place)
            else:
                self._decode(msgspec.json.decode(raw), kind, place)
        return True

    def _documents(self, data: bytes) -> Iterator[tuple[str, Any]]:
        try:
            yield "", msgspec.json.decode(data)
            return
        except NOT_JSON:
            pass  # YAML, or several documents of JSON
        try:
            documents = codec.yaml_documents(data.decode())
        except UnicodeDecodeError as error:
            foreign = "neither a snapshot nor text: expected JSON or YAML"
            raise _problem(self._name, foreign) from error
        except codec.DecodeError as error:
            raise _problem(self._name, _one_line(str(error))) from error
        for index, document in enumerate(documents):
            if document is not None:
                yield (f"document {index + 1}" if len(documents) > 1 else ""), document

    def _add(self, document: Any, place: str) -> None:
        if not isinstance(document, dict):
            shown = type(document).__name__
            self._fail(place, f"expected an object with apiVersion and kind, found {shown}")
        kind_name, api_version = document.get("kind"), document.get("apiVersion")
        if not kind_name:
            self._add_export(document, place)
        elif str(kind_name).endswith("List") and isinstance(document.get("items"), list):
            for index, item in enumerate(document["items"]):
                inner = f"{place}, items[{index}]" if place else f"items[{index}]"
                if isinstance(item, dict) and not item.get("kind"):
                    of = str(kind_name).removesuffix("List")
                    item = {"apiVersion": api_version, "kind": of, **item}
                self._add(item, inner)
        elif kind_name == _CONFIG_KIND:
            self._config = document
        elif (kind := _BY_NAME.get((str(api_version), str(kind_name)))) is not None:
            self._decode(document, kind, place)
        elif self._keep_unknown:
            self.unknown.append(document)
            self._found += 1
        else:
            self._unknown[str(kind_name)] = self._unknown.get(str(kind_name), 0) + 1

    def _add_export(self, document: dict[str, Any], place: str) -> None:
        """Lists of objects by their plurals, as kube-scheduler-simulator exports them."""
        named = {key: KINDS.get(_EXPORT_FIELDS.get(key, key)) for key in document}
        if not any(named.values()):
            self._fail(place, "expected an object with apiVersion and kind")
        for key, kind in named.items():
            if kind is not None:
                for index, item in enumerate(document[key] or ()):
                    self._decode(item, kind, f"{key}[{index}]")
            elif key == "schedulerConfig":
                self._config = document[key]
            else:
                self._unknown[key] = self._unknown.get(key, 0) + 1

    def _decode(self, document: Any, kind: type[Object], place: str) -> None:
        status = document.get("status") if isinstance(document, dict) else None
        if isinstance(status, dict) and kind.KIND == "Node" and not status.get("allocatable"):
            # As the API server does it; manifests written by hand often say capacity alone.
            allocatable = status.get("capacity") or {}
            document = {**document, "status": {**status, "allocatable": allocatable}}
        try:
            self._objects.add(self._codec.convert(document, kind))
        except codec.DecodeError as error:
            self._fail(place, str(error))
        self._found += 1

    def _fail(self, place: str, why: str) -> NoReturn:
        raise _problem(self._name, f"{place}: {why}" if place else why)


def _one_line(text: str) -> str:
    return " ".join(text.split())
