"""The journal: what a scheduler knew at each decision, so that it can be decided again.

    header, all objects     once at the beginning of each file, hour by hour
    changes, a decision     changes, a decision     …

A line is one JSON object. Changes are found when a pod is decided: from the journals of the cache,
whose rows are compared with what was written before. So nothing is told to the journal but
decisions, and heartbeats are not in it. A thread encodes and writes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, structs

from mooring.api import codec, core
from mooring.api.meta import Object
from mooring.cache.internals import AnyMark, any_mark_of, epoch_of, listing_of, touched_since
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Mark
from mooring.lens.background import BackgroundWriter
from mooring.lens.record_entry import RecordEntry
from mooring.lens.snapshot import KINDS
from mooring.lens.writing import stripped
from mooring.scheduler.scheduler import Scheduler

VERSION: Final = 1
SUFFIX: Final = ".journal.gz"
HOUR: Final = 3600.0  # seconds of a file
MOST_FILES: Final = 48
_MOST_WAITING: Final = 500_000  # lines
_OTHERS: Final = tuple(kind for kind in KINDS.values() if kind not in (core.Node, core.Pod))


NOTHING: Final = Raw(b"")


class Decided(msgspec.Struct, frozen=True, rename="camel"):
    """What was decided, and when."""

    seq: int
    at: float
    outcome: str
    node: str
    nominated: str
    attempt: int


class JournalLine(msgspec.Struct, rename="camel", omit_defaults=True):
    """One line: one of these."""

    journal: int = 0  # the version, of the first line
    at: float = 0.0
    fresh: bool = False  # of the first line: a process begins, and earlier files do not continue
    config: Any = None
    node: Raw = NOTHING  # is there, or has changed
    no_node: str = ""
    pod: Raw = NOTHING  # on its node
    no_pod: str = ""  # uid
    object: Raw = NOTHING
    no_object: tuple[str, str, str] | None = None  # kind, namespace, name
    nominated: str = ""  # node
    pods: tuple[Raw, ...] = ()  # nominated for it
    decide: Decided | None = None  # now, with the pod as it was
    asked: Raw = NOTHING


JournalChange = tuple[str, Any]


class JournalTap:
    """Finds what changed since the last decision. On the loop of the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._nodes: dict[str, core.Node] = {}
        self._pods: dict[str, dict[str, Pod]] = {}  # by node
        self._mark = AnyMark(Mark(0, 0), 0)
        self._epoch = -1
        self._nominations = 0
        objects = scheduler.cache.objects
        self._unread = {kind: objects.unread(kind) for kind in _OTHERS if objects.is_declared(kind)}

    def changes(self) -> Iterator[JournalChange]:
        """What is new, and what is gone: that first."""
        gone: list[JournalChange] = []
        new: list[JournalChange] = []
        self._compare_rows(gone, new)
        yield from gone
        yield from new
        yield from self._other_objects()
        yield from self._nominated()

    def listed(self) -> tuple[str, ...]:
        """All nodes, in the order by which ties are broken."""
        nodes = self._scheduler.cache.nodes
        return tuple(nodes.names[row] for row in listing_of(nodes).tolist())

    def _compare_rows(self, gone: list[JournalChange], new: list[JournalChange]) -> None:
        cache = self._scheduler.cache
        nodes, table = cache.nodes, cache.table
        rows: Iterable[int] | None = None
        if self._epoch == epoch_of(nodes):
            rows = touched_since(nodes, self._mark)
        self._mark, self._epoch = any_mark_of(nodes), epoch_of(nodes)
        if rows is None:
            rows = listing_of(nodes).tolist()  # ties depend on the order in which nodes come
            for name in [name for name in self._nodes if name not in table.row_of]:
                gone += [("no pod", uid) for uid in self._pods.pop(name, {})]
                gone.append(("no node", name))
                del self._nodes[name]
        for row in dict.fromkeys(rows):
            name, api = table.names[row], table.api[row]
            known = self._nodes.get(name)
            if known is None or (known is not api and _differ(known, api)):
                new.append(("node", api))
            self._nodes[name] = api
            before, now = self._pods.get(name, {}), table.pods[row]
            gone += [("no pod", uid) for uid in before if uid not in now]
            new += [("pod", pod.api) for uid, pod in now.items() if before.get(uid) is not pod]
            self._pods[name] = dict(now)

    def _other_objects(self) -> Iterator[JournalChange]:
        objects = self._scheduler.cache.objects
        for kind, keys in self._unread.items():
            for namespace, name in sorted(keys):
                found = objects.get(kind, name, namespace)
                if found is None:
                    yield "no object", (kind.KIND, namespace, name)
                else:
                    yield "object", found
            keys.clear()

    def _nominated(self) -> Iterator[JournalChange]:
        nominator = self._scheduler.queue.nominator
        if nominator.position == self._nominations:
            return
        names = nominator.changed_since(self._nominations)
        self._nominations = nominator.position
        for name in dict.fromkeys(nominator.nominated_nodes() if names is None else names):
            yield "nominated", (name, tuple(pod.api for pod in nominator.nominated_on(name)))


class DecisionJournal(BackgroundWriter[JournalChange]):
    """Fulfils `lens.record.RecordSink`: writes a folder of files."""

    FAULT: ClassVar[str] = "the journal has ended; scheduling goes on"

    def __init__(self, folder: Path, scheduler: Scheduler, config: Any = None) -> None:
        super().__init__(str(folder), most=_MOST_WAITING, patience=30.0)
        self.folder: Path = folder
        self.since: float = scheduler.now()  # other processes wrote what is older
        self._scheduler = scheduler
        self._tap = JournalTap(scheduler)
        self._next_file = 0.0  # the scheduler's time
        self._writer = _JournalFiles(folder, config)

    def decided(self, entry: RecordEntry) -> None:
        if self._is_broken:
            return
        if len(self._waiting) > self._most:
            self._break("the disk is too slow")
            return
        self._waiting.extend(self._tap.changes())
        if entry.at >= self._next_file:
            self._next_file = entry.at + HOUR
            self._waiting.append(("file", (entry.seq, entry.at, self._tap.listed())))
        pod = self._scheduler.queue.in_flight[entry.uid].api
        decided = Decided(
            entry.seq, entry.at, entry.outcome, entry.node, entry.nominated, entry.attempt
        )
        self._waiting.append(("decide", (decided, pod)))

    def ended(self, entry: RecordEntry) -> None:
        """The end of a bind changes nothing that is not seen otherwise."""

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def _write(self, items: Sequence[JournalChange]) -> None:
        for kind, value in items:
            self._writer.take(kind, value)
        self._writer.flush()

    def _shut(self) -> None:
        self._writer.close()


class _JournalFiles:
    """Writes changes, and begins each file with all that is there. In the thread."""

    def __init__(self, folder: Path, config: Any) -> None:
        self._folder = folder
        self._config = config
        self._nodes: dict[str, core.Node] = {}
        self._pods: dict[str, core.Pod] = {}
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._nominated: dict[str, tuple[core.Pod, ...]] = {}
        self._file: Any = None
        self._packer: Any = None
        self._is_first = True

    def take(self, kind: str, value: Any) -> None:
        match kind:
            case "file":
                self._begin(*value)
            case "node":
                self._nodes[value.metadata.name] = value
                self._put(JournalLine(node=_raw(value)))
            case "no node":
                self._nodes.pop(value, None)
                self._put(JournalLine(no_node=value))
            case "pod":
                self._pods[value.metadata.uid or value.key] = value
                self._put(JournalLine(pod=_raw(value)))
            case "no pod":
                self._pods.pop(value, None)
                self._put(JournalLine(no_pod=value))
            case "object":
                meta = value.metadata
                self._objects[value.KIND, meta.namespace, meta.name] = value
                self._put(JournalLine(object=_raw(value)))
            case "no object":
                self._objects.pop(value, None)
                self._put(JournalLine(no_object=value))
            case "nominated":
                name, pods = value
                self._nominated[name] = pods
                self._put(JournalLine(nominated=name, pods=tuple(map(_raw, pods))))
            case "decide":
                decided, pod = value
                self._put(JournalLine(decide=decided, asked=_raw(pod)))

    def flush(self) -> None:
        if self._file is not None:
            self._file.write(self._packer.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with file:
                file.write(self._packer.flush())

    def _begin(self, seq: int, at: float, listed: tuple[str, ...]) -> None:
        self.close()
        old = sorted(self._folder.glob(f"*{SUFFIX}"))
        for path in old[: max(len(old) - MOST_FILES + 1, 0)]:
            path.unlink()
        self._file = (self._folder / f"{int(at):012d}-{seq:012d}{SUFFIX}").open("wb")
        self._packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        self._put(JournalLine(journal=VERSION, at=at, fresh=self._is_first, config=self._config))
        self._is_first = False
        for name in listed:
            self._put(JournalLine(node=_raw(self._nodes[name])))
        for value in self._objects.values():
            self._put(JournalLine(object=_raw(value)))
        for pod in self._pods.values():
            self._put(JournalLine(pod=_raw(pod)))
        for name, pods in self._nominated.items():
            if pods:
                self._put(JournalLine(nominated=name, pods=tuple(map(_raw, pods))))

    def _put(self, line: JournalLine) -> None:
        if self._file is not None:  # else it is in the first lines of the first file
            self._file.write(self._packer.compress(msgspec.json.encode(line) + b"\n"))


def _raw(value: Object) -> Raw:
    return Raw(codec.encode(stripped(value)))


def _differ(one: core.Node, other: core.Node) -> bool:
    """Whether two states of a node differ in more than a heartbeat."""
    return (
        one.spec != other.spec
        or one.metadata.labels != other.metadata.labels
        or one.metadata.annotations != other.metadata.annotations
        or structs.replace(one.status, conditions=())
        != structs.replace(other.status, conditions=())
    )
