"""The rows of record files, and what other programs read: CSV, Parquet, Perfetto, OTLP."""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

from mooring.errors import ConfigError, Problem
from mooring.lens.record_schema import VERSION

Row = dict[str, Any]

COLUMNS: Final = (
    *("run", "seq", "at", "time", "uid", "namespace", "pod", "profile", "attempt", "queued_at"),
    *("woken_by", "way", "outcome", "took_us", "evaluated", "feasible", "node", "points"),
    *("runner_up", "margin", "reasons", "message", "refused_by", "nominated", "victims", "bind"),
    *("bind_us", "permit_us"),
)
FORMATS: Final = ("csv", "parquet", "perfetto", "otlp")
_QUERY: Final = f"SELECT {', '.join(COLUMNS)} FROM records"
_BATCH: Final = 10_000


class RecordFiles:
    """Some record files, read as one; they may be growing."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def rows(self, where: str = "", values: Sequence[Any] = (), limit: int = 0) -> Iterator[Row]:
        """All rows of all files in their order; with a limit, the last of them."""
        order = "ORDER BY run DESC, seq DESC" if limit else "ORDER BY run, seq"
        query = f"{_QUERY} {f'WHERE {where}' if where else ''} {order}"
        if limit:
            found = self._last(query, values, limit)
            yield from reversed(found)
            return
        for path in self._paths:
            yield from _read(path, query, values)

    def _last(self, query: str, values: Sequence[Any], limit: int) -> list[Row]:
        found: list[Row] = []
        for path in reversed(self._paths):
            left = limit - len(found)
            if left > 0:
                found += _read(path, f"{query} LIMIT {left}", values)
        return found


def _read(path: Path, query: str, values: Sequence[Any]) -> Iterator[Row]:
    if not path.is_file():
        raise ConfigError([Problem(str(path), "there is no such file")])
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                text = f"it is of version {version}, and this program knows {VERSION}"
                raise ConfigError([Problem(str(path), text)])
            for row in database.execute(query, values):
                yield dict(zip(COLUMNS, row, strict=True))
        finally:
            database.close()
    except sqlite3.Error as error:
        raise ConfigError([Problem(str(path), f"not a record of mooring run: {error}")]) from error


# --- formats --------------------------------------------------------------------------------------


def write_csv(rows: Iterable[Row], out: IO[str]) -> int:
    """One line a row; how many."""
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    count = 0
    for row in rows:
        writer.writerow(row)
        count += 1
    return count


def write_parquet(rows: Iterable[Row], path: Path) -> int:
    """Columns compressed with zstd; how many rows. Needs pyarrow."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        text = "needs pyarrow: pip install 'mooring[records]'"
        raise ConfigError([Problem("--export parquet", text)]) from None
    whole = {"run", "seq", "attempt", "evaluated", "feasible", "points", "margin", "victims"}
    numbers = {"at", "queued_at", "took_us", "bind_us", "permit_us"}
    schema = pa.schema(
        [
            (
                name,
                pa.int64() if name in whole else pa.float64() if name in numbers else pa.string(),
            )
            for name in COLUMNS
        ]
    )
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def write_perfetto(rows: Iterable[Row], out: IO[str]) -> int:
    """Chrome's trace events: asynchronous, as attempts overlap."""
    out.write('{"displayTimeUnit":"ms","traceEvents":[')
    count = 0
    for row in rows:
        for event in _trace_events(row):
            out.write(("," if count else "") + json.dumps(event, separators=(",", ":")))
            count += 1
    out.write("]}\n")
    return count


def _trace_events(row: Row) -> Iterator[dict[str, Any]]:
    known = f"{row['run']}.{row['seq']}"
    name = f"{row['namespace']}/{row['pod']}"
    common = {"pid": row["profile"] or "mooring", "tid": row["outcome"], "cat": "attempt"}
    for part, begin, end in phases(row):
        about = {key: row[key] for key in ("node", "way", "outcome", "feasible", "message", "bind")}
        begins = {"ph": "b", "ts": begin * 1e6, "name": part, "id": known, "args": about}
        yield {**common, **begins, "args": {"pod": name, **about}}
        yield {**common, "ph": "e", "ts": end * 1e6, "name": part, "id": known}


def phases(row: Row) -> Iterator[tuple[str, float, float]]:
    """The parts of an attempt with their begin and end, in seconds since 1970; the whole first."""
    decided, took = row["at"], row["took_us"] / 1e6
    began = decided - took
    queued = min(row["queued_at"], began)
    bound = decided + (row["bind_us"] or 0.0) / 1e6
    yield "attempt", queued, bound
    yield "queue wait", queued, began
    yield "decision", began, decided
    permitted = decided + (row["permit_us"] or 0.0) / 1e6
    if permitted > decided:
        yield "permit", decided, permitted
    if row["bind"]:
        yield "bind", permitted, bound


def otlp_traces(rows: Iterable[Row], service: str = "mooring") -> dict[str, Any]:
    """OTLP/JSON: a trace of each attempt, its children queue wait, decision, permit and bind."""
    spans = [span for row in rows for span in _spans(row)]
    resource = {"attributes": [_attribute("service.name", service)]}
    scope = {"scope": {"name": "mooring.record"}, "spans": spans}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _spans(row: Row) -> Iterator[dict[str, Any]]:
    key = f"{row['run']}/{row['seq']}/{row['uid']}/{row['at']}"
    trace = hashlib.blake2b(key.encode(errors="replace"), digest_size=16).hexdigest()
    root = ""
    for part, begin, end in phases(row):
        known = hashlib.blake2b(f"{key}/{part}".encode(errors="replace"), digest_size=8).hexdigest()
        span: dict[str, Any] = {
            "traceId": trace,
            "spanId": known,
            "name": part,
            "kind": 1,
            "startTimeUnixNano": str(int(begin * 1e9)),
            "endTimeUnixNano": str(int(end * 1e9)),
        }
        if not root:
            root = known
            span["attributes"] = [
                _attribute(name, row[column])
                for name, column in (
                    ("k8s.namespace.name", "namespace"),
                    ("k8s.pod.name", "pod"),
                    ("k8s.pod.uid", "uid"),
                    ("k8s.node.name", "node"),
                    ("mooring.outcome", "outcome"),
                    ("mooring.way", "way"),
                    ("mooring.attempt", "attempt"),
                    ("mooring.feasible_nodes", "feasible"),
                    ("mooring.message", "message"),
                )
            ]
            failed = row["outcome"] == "error" or row["bind"] in ("refused", "conflict")
            span["status"] = {"code": 2, "message": row["message"]} if failed else {"code": 1}
        else:
            span["parentSpanId"] = root
        yield span


def _attribute(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": str(value)}}


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
