"""`--record-file`: the record in SQLite, written by a thread in batches.

The loop of the scheduler only appends to two queues. A transaction is complete or not there, so a
process that is killed leaves a consistent file. Whatever goes wrong ends recording, with one
warning; scheduling goes on.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
from collections import deque
from pathlib import Path
from typing import Any, Final

from mooring.errors import ConfigError, Problem
from mooring.lens.record_entry import RecordEntry, Why, micros
from mooring.lens.record_schema import (
    INSERT_ATTEMPT,
    INSERT_BIND,
    INSERT_REASON,
    SCHEMA,
    VERSION,
)

log = logging.getLogger(__name__)

LIMIT: Final = 1 << 30  # bytes, of the file and the one before it
PERIOD: Final = 1.0  # seconds between two transactions
MOST_WAITING: Final = 100_000  # entries that are not written yet; more are lost
_MOST_REASONS: Final = 10_000  # remembered, not to be written twice


class RecordFile:
    """Fulfils `lens.record.RecordSink`. The file is opened by `start` and closed by `close`."""

    def __init__(self, path: Path, *, now: float, version: str, limit: int = LIMIT) -> None:
        self.lost: int = 0  # entries that were not written
        self._path = path
        self._now = now
        self._version = version
        self._limit = limit
        self._attempts: deque[RecordEntry] = deque()  # both filled by the loop, emptied here
        self._binds: deque[RecordEntry] = deque()
        self._reasons: dict[str, int] = {}
        self._run = 0
        self._ends = threading.Event()
        self._is_broken = False
        self._database: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._write_all, name="record", daemon=True)

    def start(self) -> None:
        """Open the file and begin to write; ConfigError if it is there and is no record."""
        self._refuse_other_files()
        self._thread.start()

    def close(self) -> None:
        """Write what is left."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    # --- on the loop of the scheduler ----------------------------------------------------------

    def decided(self, entry: RecordEntry) -> None:
        if self._is_broken or len(self._attempts) >= MOST_WAITING:
            self.lost += 1
        else:
            self._attempts.append(entry)

    def ended(self, entry: RecordEntry) -> None:
        if not self._is_broken and len(self._binds) < MOST_WAITING:
            self._binds.append(entry)

    # --- in the thread -------------------------------------------------------------------------

    def _write_all(self) -> None:
        try:
            self._open()
            while not self._ends.wait(PERIOD):
                self._write()
            self._write()
        except (sqlite3.Error, OSError) as error:
            self._is_broken = True
            self.lost += len(self._attempts)
            self._attempts.clear()
            self._binds.clear()
            text = "recording to the file has ended; scheduling goes on"
            log.warning(text, extra={"file": str(self._path), "error": str(error)})
        finally:
            if self._database is not None:
                self._database.close()

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

    def _write(self) -> None:
        # In this order: a bind that ended is not written before its attempt.
        binds = [self._binds.popleft() for _ in range(len(self._binds))]
        attempts = [self._attempts.popleft() for _ in range(len(self._attempts))]
        if not attempts and not binds:
            return
        database = self._database
        assert database is not None
        if len(self._reasons) > _MOST_REASONS:
            self._reasons.clear()
        database.execute("BEGIN")
        try:
            database.executemany(INSERT_ATTEMPT, [self._attempt(entry) for entry in attempts])
            database.executemany(INSERT_BIND, [self._bind(entry) for entry in binds])
            database.execute("COMMIT")
        except sqlite3.Error:
            self.lost += len(attempts)
            raise
        if self._size() * 2 > self._limit:
            self._rotate(database)

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
        return self._run, entry.seq, entry.bind, took, reason

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

    def _rotate(self, database: sqlite3.Connection) -> None:
        """Begin a new file; the old one becomes FILE.1, and the one before it goes."""
        is_busy = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if is_busy or self._size() * 2 <= self._limit:
            return  # a reader is at it: after the next batch
        database.close()
        self._database = None
        os.replace(self._path, f"{self._path}.1")
        self._open()
