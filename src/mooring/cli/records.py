"""`mooring records`: what record files say, as a table or for other programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from mooring.api.meta import parse_time
from mooring.cli.live import one_line, table_of, wide_console
from mooring.cli.options import CommandOptions
from mooring.cli.sources import reported
from mooring.errors import ConfigError, Problem
from mooring.lens.record_export import (
    RecordFiles,
    Row,
    otlp_traces,
    write_csv,
    write_parquet,
    write_perfetto,
)

_SHOWN: Final = 50  # rows of the table, if no number is given


class RecordsOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring records` understands."""

    files: Sequence[str]
    pod: str
    outcome: str
    since: str
    limit: int
    export: str
    output: str


@reported
def run(options: RecordsOptions) -> int:
    """Show or export records."""
    files = RecordFiles([Path(name) for name in options.files])
    where, values = _condition(options)
    if not options.export:
        rows = list(files.rows(where, values, options.limit or _SHOWN))
        if options.output in ("json", "-"):
            print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        elif options.output:
            text = "a file needs --export; json is for standard output"
            raise ConfigError([Problem("-o", text)])
        else:
            _show(rows)
        return 0
    rows_of = files.rows(where, values, options.limit)
    count = _export(rows_of, options.export, options.output)
    if options.output not in ("", "-"):
        print(f"wrote {count:,} rows to {options.output}", file=sys.stderr)
    return 0


def _condition(options: RecordsOptions) -> tuple[str, list[object]]:
    parts: list[str] = []
    values: list[object] = []
    if options.pod:
        namespace, _, name = options.pod.rpartition("/")
        parts.append("pod = ?")
        values.append(name)
        if namespace:
            parts.append("namespace = ?")
            values.append(namespace)
    if options.outcome:
        parts.append("outcome = ?")
        values.append(options.outcome)
    if options.since:
        try:
            values.append(parse_time(options.since))
        except ValueError as error:
            raise ConfigError([Problem("--since", str(error))]) from None
        parts.append("at >= ?")
    return " AND ".join(parts), values


def _export(rows: Iterable[Row], kind: str, output: str) -> int:
    if kind == "parquet":
        if output in ("", "-"):
            raise ConfigError([Problem("-o", "a Parquet file needs a name")])
        with _writing(output):
            return write_parquet(rows, Path(output))
    with _opened(output) as out:
        if kind == "csv":
            return write_csv(rows, out)
        if kind == "perfetto":
            return write_perfetto(rows, out)
        every = list(rows)
        out.write(msgspec.json.encode(otlp_traces(every)).decode() + "\n")
        return len(every)


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    if output in ("", "-"):
        yield sys.stdout
        return
    with _writing(output), Path(output).open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def _writing(output: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Not `strerror`: pyarrow has a text of its own in it.
        why = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError([Problem("-o", f"{output}: {why}")]) from error


def _show(rows: Sequence[Row]) -> None:
    console = wide_console()
    if not rows:
        console.print("no records")
        return
    numbers = ("attempt", "feasible", "µs")
    table = table_of("time", "pod", "outcome", *numbers, last="node or reason", numbers=numbers)
    for row in rows:
        said = row["node"] or row["message"]
        if row["bind"] not in ("ok", ""):
            said = f"{row['node']}: {row['bind']}: {row['message']}"
        when = row["time"][5:19].replace("T", " ")
        cells = [when, f"{row['namespace']}/{row['pod']}", row["outcome"], str(row["attempt"])]
        cells += [f"{row['feasible']:,}", f"{row['took_us']:,.0f}"]
        table.add_row(*map(one_line, cells), one_line(said))
    console.print(table)
