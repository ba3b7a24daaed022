"""The record in SQLite: complete, consistent, and never in the way of scheduling."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.waiting import wait_until
from tests.lens.test_record import fill, rows
from tests.scheduler.recording import probe, world

from mooring.errors import ConfigError
from mooring.framework import Wait
from mooring.framework.status import OK, Status
from mooring.lens import background
from mooring.lens.record import DecisionRecord
from mooring.lens.record_export import RecordFiles, phases
from mooring.lens.record_file import RecordFile
from mooring.simulator import Simulation
from mooring.testing import node, pod


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PERIOD", 0.01)


def written(path: Path, query: str = "SELECT * FROM records ORDER BY seq") -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query)]


def file_at(path: Path, **options: Any) -> RecordFile:
    file = RecordFile(path, now=5.0, version="1", **options)
    file.start()
    return file


def test_it_says_what_the_ring_says(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    with Simulation(keep_attempts=False) as sim:
        record = DecisionRecord(sim.clock.now, margins=True)
        sim.scheduler.ledger = record
        file = file_at(path)
        record.add_sink(file)
        sim.apply(node("a", cpu=2), node("b", cpu=2))
        sim.schedule(pod("low", cpu=2, priority=1), pod("other", cpu=2, priority=2))
        sim.schedule(pod("vip", cpu=2, priority=9, namespace="shop"))
        sim.schedule(pod("never", cpu=50))
        sim.advance(30)
        file.close()
        expected = list(reversed(rows(record)))
    found = written(path)
    assert [row["seq"] for row in found] == [row.seq for row in expected]
    assert len(found) >= 5
    for mine, row in zip(expected, found, strict=True):
        for field in (
            *("uid", "namespace", "pod", "profile", "attempt", "woken_by", "way", "outcome"),
            *("took_us", "evaluated", "feasible", "node", "points", "runner_up", "margin"),
            *("message", "nominated", "victims", "bind", "bind_us", "permit_us"),
        ):
            assert row[field] == getattr(mine, field), field
        assert json.loads(row["reasons"]) == mine.reasons
        assert tuple(filter(None, row["refused_by"].split(","))) == mine.refused_by
        assert row["time"][:22] == mine.at[:22]
    assert written(path, "SELECT count(*) AS n FROM runs") == [{"n": 1}]


def test_a_wait_at_permit_is_a_span_between_decision_and_bind(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    with world(probe("Holds", [], permit=Wait(60))) as sim:
        sim.scheduler.guard.timer = sim.clock.now  # as the clock of the record
        record, file = DecisionRecord(sim.clock.now), file_at(path)
        sim.scheduler.ledger = record
        record.add_sink(file)
        sim.schedule(pod("allowed"))
        sim.advance(20)
        for waiting in list(sim.scheduler.waiting):
            waiting.allow("Holds")
        sim.schedule(pod("late"))
        sim.advance(60)
        file.close()
        expected = {row.pod: row.permit_us for row in rows(record) if row.attempt == 1}
    assert expected == {"allowed": 20e6, "late": 60e6}
    found = {row["pod"]: row for row in written(path) if row["attempt"] == 1}
    assert {name: row["permit_us"] for name, row in found.items()} == expected
    assert [row["bind"] for row in found.values()] == ["ok", "refused"]
    for row in found.values():
        by_name = {part: end - begin for part, begin, end in phases(row)}
        assert list(by_name) == ["attempt", "queue wait", "decision", "permit", "bind"]
        assert by_name["permit"] == pytest.approx(row["permit_us"] / 1e6)
        assert by_name["attempt"] == pytest.approx(by_name["permit"] + by_name["bind"])


def test_a_later_process_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    for _ in range(2):
        record, file = DecisionRecord(lambda: 1.0), file_at(path)
        record.add_sink(file)
        for entry in fill(record, 30):
            record.ended(entry, Status.error("no") if entry.seq == 3 else OK, 1.0)
        file.close()
    found = written(path, "SELECT run, count(*) AS n, max(seq) AS last FROM records GROUP BY run")
    assert found == [{"run": 1, "n": 30, "last": 30}, {"run": 2, "n": 30, "last": 30}]
    refused = written(path, "SELECT message FROM records WHERE run = 2 AND bind = 'refused'")
    assert refused == [{"message": "no"}]


def test_it_begins_anew_when_it_is_large(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    record, file = DecisionRecord(lambda: 1.0), file_at(path, limit=400_000)
    record.add_sink(file)
    for _ in range(40):
        fill(record, 200)
        wait_until(lambda: not file._waiting, what="the batch is taken")
    file.close()
    assert file.lost == 0
    older = tmp_path / "decisions.db.1"
    assert path.stat().st_size + older.stat().st_size < 900_000
    newest = [
        written(each, "SELECT max(seq) AS seq FROM records")[0]["seq"] for each in (path, older)
    ]
    assert 8_000 in newest  # in the older one, if the last batch was the one too many
    assert written(older, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


@pytest.mark.parametrize("folder", ["missing", "/sys"], ids=["missing", "read-only"])
def test_a_folder_that_cannot_be_written_ends_recording_with_one_warning(
    folder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if folder == "/sys" and not Path(folder).exists():
        pytest.skip("there is no folder that cannot be written, by root either")
    with caplog.at_level(logging.WARNING), Simulation(keep_attempts=False) as sim:
        record, file = DecisionRecord(sim.clock.now), file_at(tmp_path / folder / "x.db")
        record.add_sink(file)
        sim.scheduler.ledger = record
        sim.apply(node("a"))
        sim.schedule(pod("p0"))
        wait_until(lambda: file.lost == 1, what="the file could not be made")
        sim.schedule(*(pod(f"p{i}") for i in range(1, 20)))
        file.close()
        assert all(sim.node_of(f"p{i}") == "a" for i in range(20))
    told = [one for one in caplog.records if "recording" in one.message]
    assert len(told) == 1
    assert file.lost == 20
    assert len(rows(record)) == 20


def test_a_file_of_another_kind_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database")
    with pytest.raises(ConfigError, match=r"notes.txt is not a record: not an SQLite file"):
        file_at(path)


WRITER = textwrap.dedent(
    """
    import resource, signal, sys, time
    from pathlib import Path
    from tests.lens.test_record import fill
    from mooring.lens import background, record_file
    from mooring.lens.record import DecisionRecord

    background.PERIOD = 0.01
    if sys.argv[2] != "0":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
    record = DecisionRecord(time.time)
    file = record_file.RecordFile(Path(sys.argv[1]), now=1.0, version="1")
    file.start()
    record.add_sink(file)
    print("begun", flush=True)
    until = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < until and file.lost < 1_000:
        fill(record, 100)
        while file._waiting:  # until they are written, or lost
            time.sleep(0.001)
    file.close()
    print(record.seq, file.lost, flush=True)
    """
)


def writer(path: Path, limit: int, seconds: float) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, "-c", WRITER, str(path), str(limit), str(seconds)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, text=True, stdout=pipe, stderr=pipe, cwd=root)


def test_a_killed_process_leaves_a_consistent_file(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    with writer(path, 0, 60.0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"

        def count() -> int:
            if not path.exists():
                return 0
            try:
                found: int = written(path, "SELECT count(*) AS n FROM attempts")[0]["n"]
            except sqlite3.Error:  # not made yet
                return 0
            return found

        wait_until(lambda: count() > 1_000, what="some attempts are written")
        process.send_signal(signal.SIGKILL)
    assert written(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    (found,) = written(path, "SELECT count(*) AS n, max(seq) AS last FROM records")
    assert found["n"] == found["last"] > 1_000  # no gap


def test_a_full_disk_ends_recording_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    with writer(path, 200_000, 30.0) as process:
        out, err = process.communicate(timeout=60)
    recorded, lost = map(int, out.split()[1:])
    assert recorded > lost > 0
    assert err.count("recording to the file has ended; scheduling goes on") == 1
    assert written(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


def test_time_that_goes_back_is_recorded_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    times = iter([100.0, 50.0, 200.0])
    record, file = DecisionRecord(lambda: next(times)), file_at(path)
    record.add_sink(file)
    fill(record, 3)
    file.close()
    found = written(path, "SELECT seq, at FROM records ORDER BY seq")
    assert [(row["seq"], row["at"]) for row in found] == [(1, 100.0), (2, 50.0), (3, 200.0)]
    assert record.rates(200.0).decisions_per_second >= 0


def test_a_record_of_a_newer_version_is_neither_read_nor_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "decisions.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError) as refused:
        list(RecordFiles([path]).rows())
    assert str(refused.value) == f"{path}: it is of version 99, and this program knows 1"
    with caplog.at_level(logging.WARNING), Simulation(keep_attempts=False) as sim:
        record = DecisionRecord(sim.clock.now)
        record.add_sink(file_at(path))
        sim.scheduler.ledger = record
        sim.apply(node("a"))
        sim.schedule(pod("p"))
        wait_until(lambda: bool(caplog.records), what="the fault is told")
        assert sim.node_of("p") == "a"
    assert written(path, "SELECT name FROM sqlite_master") == []
