"""`--record-file`: the record in SQLite, written by a thread in batches.

A transaction is complete or not there, so a process that is killed leaves a consistent file.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from mooring.errors import ConfigError, Problem
from mooring.lens.background import BackgroundWriter
from mooring.lens.record_entry import RecordEntry, Why, micros
from mooring.lens.record_schema import (
    INSERT_ATTEMPT,
    INSERT_BIND,
    INSERT_REASON,
    SCHEMA,
    VERSION,
)

LIMIT: Final = 1 << 30  # bytes, of the file and the one before it
MOST_WAITING: Final = 200_000  # attempts and binds that are not written yet; more are lost
_MOST_REASONS: Final = 10_000  # remembered, not to be written twice


class RecordFile(BackgroundWriter[tuple[RecordEntry, bool]]):
    """Fulfils `lens.record.RecordSink`. An item is an attempt, or the end of its bind.

    A bind that ended is not written before its attempt.
    """

    FAULT: ClassVar[str] = "recording to the file has ended; scheduling goes on"
    FAULTS: ClassVar[tuple[type[Exception], ...]] = (sqlite3.Error, OSError)

    def __init__(self, path: Path, *, now: float, version: str, limit: int = LIMIT) -> None:
        super().__init__(str(path), most=MOST_WAITING)
        self._path = path
        self._now = now
        self._version = version
        self._limit = limit
        self._reasons: dict[str, int] = {}
        self._run = 0
        self._database: sqlite3.Connection | None = None

    def start(self) -> None:
        """Open the file and begin to write; ConfigError if it is there and is no record."""
        self._refuse_other_files()
        super().start()

    # --- on the loop of the scheduler ----------------------------------------------------------

    def decided(self, entry: RecordEntry) -> None:
        self._put((entry, False))

    def ended(self, entry: RecordEntry) -> None:
        self._put((entry, True))

    def _count(self, items: Sequence[tuple[RecordEntry, bool]]) -> int:
        return sum(not has_ended for _, has_ended in items)

    # --- in the thread -------------------------------------------------------------------------

    def _refuse_other_files(self) -> None:
        try:
            with self._path.open("rb") as file:
                head = file.read(16)
        except OSError:
            return  # not there, or the thread will tell
        if head and head != b"SQLite format 3\0":
            text = f"{self._path} is not a record: not an SQLite file"
            raise ConfigError([Problem("--record-file", text)])

    def _open(self) -> None:
        database = sqlite3.connect(self._path, isolation_level=None, timeout=5.0)
        self._database = database
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        found = database.execute("PRAGMA user_version").fetchone()[0]
        if found > VERSION:
            raise sqlite3.DatabaseError(f"it is of version {found}, and {VERSION} is known")
        database.executescript(SCHEMA)
        database.execute(f"PRAGMA user_version = {VERSION}")
        insert = "INSERT INTO runs (started, version) VALUES (?, ?)"
        self._run = database.execute(insert, (self._now, self._version)).lastrowid or 0
        self._reasons.clear()

    def _write(self, items: Sequence[tuple[RecordEntry, bool]]) -> None:
        if self._size() * 2 > self._limit:
            self._rotate()
        database = self._database
        assert database is not None
        if len(self._reasons) > _MOST_REASONS:
            self._reasons.clear()
        attempts = [self._attempt(entry) for entry, has_ended in items if not has_ended]
        binds = [self._bind(entry) for entry, has_ended in items if has_ended]
        database.execute("BEGIN")
        database.executemany(INSERT_ATTEMPT, attempts)
        database.executemany(INSERT_BIND, binds)
        database.execute("COMMIT")

    def _attempt(self, entry: RecordEntry) -> tuple[Any, ...]:
        return (
            self._run,
            entry.seq,
            entry.at,
            entry.uid,
            entry.namespace,
            entry.pod,
            entry.profile,
            entry.attempt,
            entry.queued_at,
            entry.woken_by,
            entry.way,
            entry.outcome,
            micros(entry.took),
            entry.evaluated,
            entry.feasible,
            entry.node,
            None if entry.outcome == "scheduled" else self._reason(entry.why),
            entry.nominated,
            entry.victims,
            entry.points,
            entry.runner_up,
            entry.margin,
        )

    def _bind(self, entry: RecordEntry) -> tuple[Any, ...]:
        took = None if entry.bind_took is None else micros(entry.bind_took)
        reason = None if entry.bind == "ok" else self._reason(entry.why)
        waited = None if entry.permit_took is None else micros(entry.permit_took)
        return self._run, entry.seq, entry.bind, took, reason, waited

    def _reason(self, why: Why | None) -> int | None:
        if why is None:
            return None
        found = self._reasons.get(why.message)
        if found is None:
            assert self._database is not None
            row = (why.message, json.dumps(why.reasons), ",".join(why.refused_by))
            found = self._database.execute(INSERT_REASON, row).lastrowid or 0
            self._reasons[why.message] = found
        return found

    def _size(self) -> int:
        return sum(
            os.stat(name).st_size
            for name in (self._path, f"{self._path}-wal")
            if os.path.exists(name)
        )

    def _shut(self) -> None:
        if self._database is not None:
            self._database.close()

    def _rotate(self) -> None:
        """Begin a new file; the old one becomes FILE.1, and the one before it goes."""
        database = self._database
        assert database is not None
        is_busy = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if is_busy or self._size() * 2 <= self._limit:
            return  # a reader is at it: after the next batch
        database.close()
        self._database = None
        os.replace(self._path, f"{self._path}.1")
        self._open()
