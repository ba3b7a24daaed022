"""The tables of a record file: SQLite, version 1.

attempts   one row per attempt         binds     one row per bind that ended
reasons    why attempts failed, once   runs      one row per process that wrote
records    all of it joined, a view: what to ask in most cases
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (
  run INTEGER PRIMARY KEY, started REAL NOT NULL, version TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS reasons (
  id INTEGER PRIMARY KEY, message TEXT NOT NULL, reasons TEXT NOT NULL, refused_by TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
  run INTEGER NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, uid TEXT NOT NULL,
  namespace TEXT NOT NULL, pod TEXT NOT NULL, profile TEXT NOT NULL, attempt INTEGER NOT NULL,
  queued_at REAL NOT NULL, woken_by TEXT NOT NULL, way TEXT NOT NULL, outcome TEXT NOT NULL,
  took_us REAL NOT NULL, evaluated INTEGER NOT NULL, feasible INTEGER NOT NULL, node TEXT NOT NULL,
  reason INTEGER, nominated TEXT NOT NULL, victims INTEGER NOT NULL, points INTEGER,
  runner_up TEXT NOT NULL, margin INTEGER, PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS attempts_by_pod ON attempts (namespace, pod);
CREATE INDEX IF NOT EXISTS attempts_by_time ON attempts (at);
CREATE TABLE IF NOT EXISTS binds (
  run INTEGER NOT NULL, seq INTEGER NOT NULL, bind TEXT NOT NULL, bind_us REAL, reason INTEGER,
  permit_us REAL, PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS records AS
  SELECT a.run, a.seq, a.at, strftime('%Y-%m-%dT%H:%M:%fZ', a.at, 'unixepoch') AS time, a.uid,
    a.namespace, a.pod, a.profile, a.attempt, a.queued_at, a.woken_by, a.way, a.outcome, a.took_us,
    a.evaluated, a.feasible, a.node, a.points, a.runner_up, a.margin,
    coalesce(r.reasons, '{}') AS reasons, coalesce(f.message, r.message, '') AS message,
    coalesce(r.refused_by, '') AS refused_by, a.nominated, a.victims,
    coalesce(b.bind, '') AS bind, b.bind_us, b.permit_us
  FROM attempts a
  LEFT JOIN reasons r ON r.id = a.reason
  LEFT JOIN binds b ON b.run = a.run AND b.seq = a.seq
  LEFT JOIN reasons f ON f.id = b.reason;
"""

INSERT_ATTEMPT: Final = f"INSERT OR REPLACE INTO attempts VALUES ({', '.join('?' * 22)})"
INSERT_BIND: Final = "INSERT OR REPLACE INTO binds VALUES (?, ?, ?, ?, ?, ?)"
INSERT_REASON: Final = "INSERT INTO reasons (message, reasons, refused_by) VALUES (?, ?, ?)"
