"""A snapshot as a file: JSON lines under gzip, made in slices.

    {"format": "mooring-snapshot", "version": 1, "at": …, "missing": […], …}
    {"config": {…}}
    {"apiVersion": "v1", "kind": "Node", …}        one object a line, in listing order
    {"queued": {…}}                                one pod of the queue a line
    {"end": 55000}                                 the number of objects

Only fields of our structs are written: no environment, no arguments, no Secrets, and of annotations
those that a plugin reads. `mooring snapshot` and the endpoint of a running scheduler call it; the
latter between decisions, hence the slices.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from mooring.api import codec, core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import Object, ObjectMeta
from mooring.errors import ConfigError, Problem
from mooring.lens.reading import FORMAT, VERSION, Header
from mooring.lens.snapshot import Snapshot

SLICE: Final = 0.002  # seconds after which a chunk ends; a chunk takes at most a little longer
_LOOK: Final = 8  # objects between two looks at the clock
_LEVEL: Final = 6  # of compression: 20 % smaller than level 1

READ_ANNOTATIONS: Final = frozenset(
    {
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "pv.kubernetes.io/provisioned-by",
        "storage.alpha.kubernetes.io/migrated-plugins",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
        "kubernetes.io/config.mirror",  # a pod of the kubelet, which a drain leaves alone
    }
)


def write_snapshot(snapshot: Snapshot, path: Path) -> int:
    """Write a file; the number of bytes."""
    size = 0
    try:
        with path.open("wb") as file:
            for chunk in encoded(snapshot):
                size += file.write(chunk)
    except OSError as error:
        raise ConfigError([Problem(str(path), error.strerror or str(error))]) from error
    return size


def encoded(snapshot: Snapshot, *, seconds: float = SLICE, strip: bool = True) -> Iterator[bytes]:
    """The compressed file in chunks; each takes about `seconds` to make and may be empty.

    Without `strip`, all fields of our structs are written: for another process, not for a file.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    until = time.perf_counter() + seconds
    lines = bytearray()
    for number, line in enumerate(_lines(snapshot, strip)):
        lines += line
        lines += b"\n"
        if number % _LOOK == 0:
            packed = packer.compress(bytes(lines))
            lines.clear()
            if packed or time.perf_counter() >= until:
                yield packed
                until = time.perf_counter() + seconds
    yield packer.compress(bytes(lines)) + packer.flush()


def _lines(snapshot: Snapshot, strip: bool) -> Iterator[bytes]:
    encode = msgspec.json.encode
    yield encode(
        Header(
            format=FORMAT,
            version=VERSION,
            at=snapshot.at,
            seq=snapshot.seq,
            redacted=snapshot.redacted,
            scheduler=snapshot.scheduler,
            missing=snapshot.missing,
            has_queue=snapshot.queue is not None,
        )
    )
    yield encode({"config": snapshot.config})
    count = 0
    for value in snapshot.cluster.objects():
        count += 1
        yield codec.encode(stripped(value) if strip else value)
    for queued in snapshot.queue or ():
        yield encode({"queued": queued})
    yield encode({"end": count})


def stripped(value: Object) -> Object:
    """The object without what no plugin reads and a file should not hold."""
    changes: dict[str, Any] = {}
    meta = _stripped_meta(value.metadata)
    if meta is not value.metadata:
        changes["metadata"] = meta
    if isinstance(value, core.Pod):
        spec = _stripped_spec(value.spec)
        if spec is not value.spec:
            changes["spec"] = spec
    return structs.replace(value, **changes) if changes else value


def _stripped_meta(meta: ObjectMeta) -> ObjectMeta:
    annotations = meta.annotations
    if not (annotations or meta.resource_version or meta.generation or meta.finalizers):
        return meta
    kept = FrozenDict({key: annotations[key] for key in annotations if key in READ_ANNOTATIONS})
    return structs.replace(meta, annotations=kept, resource_version="", generation=0, finalizers=())


def _stripped_spec(spec: core.PodSpec) -> core.PodSpec:
    spec = without_plain_volumes(spec)
    if not any(one.command or one.args for one in (*spec.containers, *spec.init_containers)):
        return spec
    return structs.replace(
        spec,
        containers=tuple(map(_stripped_container, spec.containers)),
        init_containers=tuple(map(_stripped_container, spec.init_containers)),
    )


def without_plain_volumes(spec: core.PodSpec) -> core.PodSpec:
    """Without volumes that influence no placement: their names make equal pods look different."""
    if all(volume.has_source for volume in spec.volumes):
        return spec
    return structs.replace(
        spec, volumes=tuple(volume for volume in spec.volumes if volume.has_source)
    )


def _stripped_container(container: core.Container) -> core.Container:
    return structs.replace(container, command=(), args=())
