"""`mooring snapshot`: what a scheduler reads of a cluster, in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from msgspec import structs

from mooring import __version__
from mooring.cli.sources import SourceOptions, load, reported
from mooring.errors import ConfigError, Problem, UsageError
from mooring.lens.exports import to_simulator, to_yaml
from mooring.lens.redaction import PARTS, redactor_for
from mooring.lens.snapshot import Snapshot
from mooring.lens.writing import encoded

_LEAST_KEY: Final = 16  # bytes
_DEVICE_WORDS: Final = (
    "not redacted: drivers, attributes and selectors of devices,"
    " because a selector reads them letter by letter"
)
_BY_SUFFIX: Final = {".json": "simulator", ".yaml": "yaml", ".yml": "yaml"}


class SnapshotOptions(SourceOptions, frozen=True, kw_only=True):
    """What `mooring snapshot` understands."""

    output: str
    format: str
    redact: str
    key_file: str


@reported
def run(options: SnapshotOptions) -> int:
    """Read a cluster and write a file; the exit code."""
    parts, key = _parts(options), _key(options)
    found = load(options)
    if not found.scheduler:
        found = structs.replace(found, scheduler=f"mooring {__version__}")
    if parts:
        redactor = redactor_for(found, parts, key=key)
        found = redactor.snapshot(found)
        if redactor.keeps_device_words:
            print(_DEVICE_WORDS, file=sys.stderr)
    kind = options.format or _BY_SUFFIX.get(Path(options.output).suffix, "snapshot")
    size = _write(found, kind, options.output)
    if options.output != "-":
        print(f"wrote {options.output}: {_described(found, size, parts)}")
    return 0


def _parts(options: SnapshotOptions) -> tuple[str, ...]:
    given = [part.strip() for part in options.redact.split(",") if part.strip()]
    if given == ["all"]:
        return PARTS
    for part in given:
        if part not in PARTS:
            text = f"expected {', '.join(PARTS)} or all, got {part!r}"
            raise UsageError([Problem("--redact", text)])
    if options.key_file and not given:
        raise UsageError([Problem("--key-file", "is for --redact, which is not given")])
    return tuple(given)


def _key(options: SnapshotOptions) -> bytes | None:
    if not options.key_file:
        return None
    try:
        key = Path(options.key_file).read_bytes()
    except OSError as error:
        raise ConfigError([Problem(options.key_file, error.strerror or str(error))]) from error
    if len(key) < _LEAST_KEY:
        text = f"expected at least {_LEAST_KEY} bytes, found {len(key)}; try: openssl rand -hex 32"
        raise ConfigError([Problem(options.key_file, text)])
    return key


def _write(snapshot: Snapshot, kind: str, output: str) -> int:
    if kind == "simulator":
        chunks = iter([to_simulator(snapshot)])
    elif kind == "yaml":
        chunks = to_yaml(snapshot)
    else:
        chunks = encoded(snapshot)
    size = 0
    if output == "-":
        for chunk in chunks:
            size += sys.stdout.buffer.write(chunk)
        return size
    try:
        with open(output, "wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
    except OSError as error:
        raise ConfigError([Problem(output, error.strerror or str(error))]) from error
    return size


def _described(snapshot: Snapshot, size: int, parts: tuple[str, ...]) -> str:
    cluster = snapshot.cluster
    counts = [f"{len(cluster.nodes):,} nodes", f"{len(cluster.pods):,} pods"]
    counts.append(f"{sum(1 for _ in cluster.other_objects()):,} other objects")
    amount = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
    redacted = f"; redacted: {', '.join(parts)}" if parts else ""
    return f"{', '.join(counts)}; {amount}{redacted}"
