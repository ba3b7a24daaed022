"""Persistence of the store in one SQLite file.

The file follows the store. Changes are collected, the last one of each object wins, and a thread
writes them in one transaction every few hundredths of a second; no request waits for a disk. A
process that is killed loses at most the changes since the last transaction: the file always holds
the state at one resourceVersion.

If a transaction fails, as on a full disk, its changes are kept and tried again every second, and
the store says so in `unsaved`: until one succeeds, the API server refuses writes.

The history is not kept: after a restart resourceVersions continue, and watches that want to resume
have to list again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mooring.cluster.apiserver.store import Store, StoreChange
from mooring.errors import ConfigError, Problem

log = logging.getLogger(__name__)

_OURS: Final = 0x6D6F6F72  # "moor", in the header of the file
_FORMAT: Final = 1
_INTERVAL: Final = 0.05  # seconds between transactions
_PAUSE: Final = 1.0  # seconds after one that failed

_TABLES: Final = """
CREATE TABLE objects (
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE state (version INTEGER NOT NULL);
INSERT INTO state VALUES (0);
"""

_Key = tuple[str, str, str]  # resource, namespace, name


class Persistence:
    """One file and the store it follows. Raises ConfigError if the file can't be used."""

    def __init__(self, path: str | Path, *, interval: float = _INTERVAL) -> None:
        self.path: str = str(path)
        self._interval = interval
        self._database = _opened(self.path)
        self._condition = threading.Condition()
        self._pending: dict[_Key, StoreChange] = {}
        self._version = 0  # of the last change that is pending or written
        self._written = 0  # of the last one that is written
        self._in_a_hurry = False
        self._is_closing = False
        self._error: sqlite3.Error | None = None  # of the last transaction
        self._store: Store | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Persistence:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def attach(self, store: Store) -> int:
        """Fill an empty store from the file and follow it; the number of objects read."""
        if self._thread is not None or store.version:
            raise ValueError("expected a store that is empty, and a file that follows none yet")
        (version,) = self._database.execute("SELECT version FROM state").fetchone()
        (count,) = self._database.execute("SELECT count(*) FROM objects").fetchone()
        store.restore(
            version, self._database.execute("SELECT resource, version, value FROM objects")
        )
        self._store = store
        self._version = self._written = version
        store.listen(self._notice)
        self._thread = threading.Thread(target=self._follow, name="persistence", daemon=True)
        self._thread.start()
        return int(count)

    def flush(self) -> None:
        """Wait until all changes so far are in the file; raises sqlite3.Error."""
        with self._condition:
            wanted, self._error = self._version, None
            self._in_a_hurry = self._written < wanted and self._thread is not None
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._written >= wanted or self._error)
            if self._error is not None:
                raise self._error

    def close(self) -> None:
        """Write the rest and sync it to disk; ConfigError if changes could not be saved."""
        with self._condition:
            self._is_closing = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        try:
            if self._pending and self._error is not None:
                text = f"changes of {len(self._pending)} objects could not be saved: {self._error}"
                raise ConfigError([Problem(self.path, text)]) from self._error
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:  # the write-ahead log still has them
            extra = {"file": self.path, "error": str(error)}
            log.warning("could not checkpoint the write-ahead log", extra=extra)
        finally:
            self._database.close()

    def _notice(self, change: StoreChange) -> None:
        """Collect a change; the store calls this during a request, so nothing is written here."""
        key = (change.resource, change.new.namespace, change.new.name)
        with self._condition:
            if not self._pending:
                self._condition.notify_all()
            self._pending[key] = change
            self._version = change.version

    # --- the thread ----------------------------------------------------------------------------

    def _follow(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._pending or self._is_closing)
                self._condition.wait_for(
                    lambda: self._in_a_hurry or self._is_closing, timeout=self._interval
                )
                batch, self._pending = self._pending, {}
                version, self._in_a_hurry = self._version, False
            error = self._write(batch, version)
            self._tell(error, len(batch))
            with self._condition:
                if error is None:
                    self._written = version
                else:
                    self._pending = {**batch, **self._pending}
                self._error = error
                self._condition.notify_all()
                if self._is_closing and (error is not None or not self._pending):
                    return
                if error is not None:
                    self._condition.wait_for(
                        lambda: self._in_a_hurry or self._is_closing, timeout=_PAUSE
                    )

    def _write(self, batch: Mapping[_Key, StoreChange], version: int) -> sqlite3.Error | None:
        """Write a batch in one transaction."""
        gone = [key for key, change in batch.items() if change.type == "DELETED"]
        there = [
            (*key, change.version, change.new.raw)
            for key, change in batch.items()
            if change.type != "DELETED"
        ]
        try:
            with self._database as database:
                database.execute("BEGIN")
                database.executemany(
                    "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone
                )
                database.executemany("REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", there)
                database.execute("UPDATE state SET version = ?", (version,))
        except sqlite3.Error as error:
            return error
        return None

    def _tell(self, error: sqlite3.Error | None, objects: int) -> None:
        """Report to the store and in the log whether changes are saved."""
        assert self._store is not None
        before, self._store.unsaved = self._store.unsaved, str(error) if error else ""
        if error and not before:
            extra = {"file": self.path, "objects": objects, "error": str(error)}
            log.error("could not save changes; they are kept and tried again", extra=extra)
        elif before and not error:
            log.info("changes are saved again", extra={"v": 0, "file": self.path})


def _opened(path: str) -> sqlite3.Connection:
    """The file, locked until it is closed; created if it does not exist."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # it holds Secrets
        database = sqlite3.connect(path, timeout=0.5, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise ConfigError([Problem(path, why or str(error))]) from error
    try:
        _prepare(database, path)
    except sqlite3.Error as error:
        database.close()
        is_locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        why = "is in use by another process" if is_locked else str(error)
        raise ConfigError([Problem(path, why)]) from error
    except ConfigError:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: str) -> None:
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (owner,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if tables and (owner, version) != (_OURS, _FORMAT):
        text = "expected a file made by mooring, found a database of something else"
        if owner == _OURS:
            text = f"expected format {_FORMAT}, found {version}: made by another mooring"
        raise ConfigError([Problem(path, text)])
    # With a write-ahead log no commit waits for the disk, and a partial commit is ignored.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    with database:
        database.execute("BEGIN EXCLUSIVE")
        if not tables:
            for statement in filter(str.strip, _TABLES.split(";")):
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {_OURS}")
            database.execute(f"PRAGMA user_version = {_FORMAT}")
