"""A journal read back: line by line, and the state of the cluster before any decision."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from mooring.api import codec, core
from mooring.api.meta import Object
from mooring.errors import ConfigError, Problem
from mooring.lens.journal import NOTHING, SUFFIX, VERSION, JournalLine
from mooring.lens.snapshot import KINDS, ClusterState, Snapshot

_FIELD_OF: Final = {kind.KIND: field for field, kind in KINDS.items()}
_KIND_OF: Final = {kind.KIND: kind for kind in KINDS.values()}
_CHUNK: Final = 1 << 16  # bytes


class _Kinded(msgspec.Struct):
    kind: str


class JournalFolder:
    """The files of a journal, the oldest first. The last line may be cut off by a kill.

    `may_be_empty`: a scheduler is about to write the first one.
    """

    def __init__(self, folder: Path, *, may_be_empty: bool = False) -> None:
        self.files: list[Path] = sorted(folder.glob(f"*{SUFFIX}"))
        if not self.files and not may_be_empty:
            text = f"no journal of `mooring run --record-journal`: there is no *{SUFFIX}"
            raise ConfigError([Problem(str(folder), text)])

    def lines(self, *, first_file: int = 0, files: int | None = None) -> Iterator[JournalLine]:
        """All lines of some files, from one on; of later files only what is new in them."""
        decoder = msgspec.json.Decoder(JournalLine)
        last = None if files is None else first_file + files
        for number, path in enumerate(self.files[first_file:last]):
            is_new = number == 0
            for text in _texts(path):
                line = _decoded(decoder, text, path)
                if line.journal:
                    if line.journal > VERSION:
                        problem = f"it is of version {line.journal}, and {VERSION} is known"
                        raise ConfigError([Problem(str(path), problem)])
                    is_new = is_new or line.fresh
                    if is_new:
                        yield line
                    continue
                # The first lines of a later file repeat what is known, up to a decision.
                is_new = is_new or line.decide is not None
                if is_new:
                    yield line

    def before(self, seq: int, since: float = 0.0) -> tuple[Snapshot, core.Pod]:
        """The cluster as it was when the attempt of this number was decided, and its pod.

        Every process counts from 1: the newest is meant, if it began to write after `since`.
        """
        for number in reversed(range(len(self.files))):
            first = int(self.files[number].name.removesuffix(SUFFIX).rpartition("-")[2])
            if first > seq:
                continue
            state = JournalState()
            for line in self.lines(first_file=number, files=1):
                if line.journal and line.at < since:
                    break
                if line.decide is not None:
                    if line.decide.seq == seq:
                        pod = codec.decode(bytes(line.asked), core.Pod)
                        return state.snapshot(line.decide.at, seq, pod), pod
                    if line.decide.seq > seq:
                        break
                state.take(line)
        raise ConfigError([Problem("--at", f"the journal has no attempt {seq}, or not yet")])


class JournalState:
    """The objects of a cluster, as lines are taken."""

    def __init__(self) -> None:
        self.config: Any = None
        self.nodes: dict[str, core.Node] = {}
        self.pods: dict[str, core.Pod] = {}
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.nominated: dict[str, tuple[core.Pod, ...]] = {}

    def take(self, line: JournalLine) -> None:
        if line.journal:
            self.config = line.config
        elif line.node is not NOTHING:
            node = codec.decode(bytes(line.node), core.Node)
            self.nodes[node.metadata.name] = node
        elif line.no_node:
            self.nodes.pop(line.no_node, None)
        elif line.pod is not NOTHING:
            pod = codec.decode(bytes(line.pod), core.Pod)
            self.pods[pod.metadata.uid or pod.key] = pod
        elif line.no_pod:
            self.pods.pop(line.no_pod, None)
        elif line.object is not NOTHING:
            value = read_object(line.object)
            meta = value.metadata
            self.objects[value.KIND, meta.namespace, meta.name] = value
        elif line.no_object is not None:
            self.objects.pop(line.no_object, None)
        elif line.nominated:
            self.nominated[line.nominated] = tuple(
                codec.decode(bytes(one), core.Pod) for one in line.pods
            )

    def snapshot(self, at: float, seq: int, asked: core.Pod) -> Snapshot:
        """As a file would have it; nominated pods and the one that is asked about wait."""
        found: dict[str, list[Any]] = {}
        for value in self.objects.values():
            found.setdefault(_FIELD_OF[value.KIND], []).append(value)
        waiting = [pod for pods in self.nominated.values() for pod in pods if pod.uid != asked.uid]
        fields: dict[str, Any] = {field: tuple(values) for field, values in found.items()}
        fields["nodes"] = tuple(self.nodes.values())
        fields["pods"] = (*self.pods.values(), *waiting, asked)
        return Snapshot(
            cluster=ClusterState(**fields), config=self.config, at=at, seq=seq, is_past=True
        )


def kind_of(name: str) -> type[Object]:
    """The kind of that name."""
    return _KIND_OF[name]


def read_object(raw: msgspec.Raw) -> Object:
    kind = msgspec.json.decode(raw, type=_Kinded).kind
    return codec.decode(bytes(raw), _KIND_OF[kind])


def _texts(path: Path) -> Iterator[bytes]:
    """The lines of a file; what a kill left incomplete is not there."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    rest = b""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                *lines, rest = (rest + unpacker.decompress(chunk)).split(b"\n")
                yield from lines
    except (OSError, zlib.error) as error:
        raise ConfigError([Problem(str(path), f"can't be read: {error}")]) from error


def _decoded(decoder: msgspec.json.Decoder[JournalLine], text: bytes, path: Path) -> JournalLine:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise ConfigError([Problem(str(path), f"not a line of a journal: {error}")]) from error
