"""`mooring records`: the same values for every reader."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.waiting import wait_until
from tests.docs.test_docs import ROOT, blocks
from tests.lens.test_record import fill

from mooring.cli import main
from mooring.framework.status import OK, Status
from mooring.lens import background
from mooring.lens.record import DecisionRecord
from mooring.lens.record_export import COLUMNS
from mooring.lens.record_file import RecordFile
from mooring.simulator import Simulation
from mooring.testing import node, pod


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "decisions.db"
    with Simulation(keep_attempts=False) as sim:
        record = DecisionRecord(sim.clock.now, margins=True)
        sim.scheduler.ledger = record
        file = RecordFile(path, now=1.0, version="1")
        file.start()
        record.add_sink(file)
        sim.apply(node("a", cpu=4), node("b", cpu=4))
        for i in range(8):
            sim.schedule(pod(f"web-{i}", cpu=1, namespace="shop"))
        sim.schedule(pod("vip", cpu=4, priority=9))
        sim.schedule(pod("[bold]huge", cpu=64))
        sim.advance(60)
        file.close()
    return path


def mooring(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def all_rows(path: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as database:
        found = database.execute(f"SELECT {', '.join(COLUMNS)} FROM records ORDER BY run, seq")
        return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def test_a_table_of_the_last_ones(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = mooring(capsys, "records", recorded)
    assert code == 0
    assert "shop/web-0" in out
    assert "default/[bold]huge" in out  # text, not markup
    code, out, _ = mooring(capsys, "records", recorded, "--pod", "default/vip", "-o", "json")
    rows = json.loads(out)
    assert [row["outcome"] for row in rows] == ["nominated", "scheduled"]
    _, out, _ = mooring(capsys, "records", recorded, "--limit", "2", "-o", "json")
    assert [row["seq"] for row in json.loads(out)] == [
        row["seq"] for row in all_rows(recorded)[-2:]
    ]
    _, out, _ = mooring(capsys, "records", recorded, "--since", "2999-01-01T00:00:00Z")
    assert out == "no records\n"


def test_only_attempts_with_one_outcome(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = mooring(capsys, "records", recorded, "--outcome", "nominated", "-o", "json")
    assert [(row["pod"], row["outcome"]) for row in json.loads(out)] == [("vip", "nominated")]


def test_a_bind_that_failed_says_where_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "decisions.db"
    record, file = DecisionRecord(lambda: 2e9), RecordFile(path, now=1.0, version="1")
    file.start()
    record.add_sink(file)
    (entry,) = fill(record, 1)
    record.ended(entry, Status.error("the server is away"), 1.0)
    file.close()
    _, out, _ = mooring(capsys, "records", path)
    assert f"{entry.node}: refused: the server is away" in out


def test_csv_and_parquet_have_the_values_of_the_file(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = all_rows(recorded)
    target = tmp_path / "out.csv"
    assert mooring(capsys, "records", recorded, "--export", "csv", "-o", target)[0] == 0
    with target.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["pod"] for row in found] == [row["pod"] for row in rows]
    assert [float(row["took_us"]) for row in found] == [row["took_us"] for row in rows]

    target = exported(recorded, tmp_path, capsys)
    assert pytest.importorskip("pyarrow.parquet").read_table(target).to_pylist() == rows


def exported(recorded: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """As Parquet."""
    pytest.importorskip("pyarrow", reason="mooring[records] is not installed")
    target = folder / "out.parquet"
    code, _, err = mooring(capsys, "records", recorded, "--export", "parquet", "-o", target)
    assert (code, err) == (0, f"wrote {len(all_rows(recorded))} rows to {target}\n")
    return target


# DuckDB, Polars and pandas take 330 MB: these tests are for machines that have them.


def test_duckdb_reads_the_parquet_file(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"SELECT * FROM '{exported(recorded, tmp_path, capsys)}'")
    assert tuple(found.columns) == COLUMNS
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in found.fetchall()]
    assert rows == all_rows(recorded)


def test_polars_reads_the_parquet_file(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    polars = pytest.importorskip("polars")
    found = polars.read_parquet(exported(recorded, tmp_path, capsys))
    assert found.to_dicts() == all_rows(recorded)


class GrowingFile:
    """A record file that is being written: every look at it has more rows, all of them whole."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "growing.db"
        self._record = DecisionRecord(lambda: 2e9)
        self._file = RecordFile(self.path, now=1.0, version="1")
        self._file.start()
        self._record.add_sink(self._file)

    def looks(self, read: Callable[[], list[int]]) -> None:
        """`read` returns the numbers of the rows in the file."""
        for _ in range(3):
            for entry in fill(self._record, 100):
                self._record.ended(entry, OK, 1.0)
            wait_until(lambda: len(read()) == self._record.seq, what="all rows are read")
            assert read() == list(range(1, self._record.seq + 1))
        self._file.close()


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GrowingFile:
    monkeypatch.setattr(background, "PERIOD", 0.01)
    return GrowingFile(tmp_path)


QUERY = "SELECT seq FROM records WHERE bind = 'ok' ORDER BY seq"


def test_the_sqlite3_shell_reads_the_file_while_it_grows(growing: GrowingFile) -> None:
    shell = shutil.which("sqlite3")
    if shell is None:
        pytest.skip("there is no sqlite3")
    command = [shell, "-readonly", "-json", str(growing.path), QUERY]

    def read() -> list[int]:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return [row["seq"] for row in json.loads(found.stdout or "[]")]  # it may not be there yet

    growing.looks(read)


def test_pandas_reads_the_file_while_it_grows(growing: GrowingFile, recorded: Path) -> None:
    pandas = pytest.importorskip("pandas")

    def read() -> list[int]:
        with closing(sqlite3.connect(growing.path)) as database:
            try:
                found: list[int] = pandas.read_sql(QUERY, database)["seq"].to_list()
            except pandas.errors.DatabaseError:  # it is empty yet
                return []
            return found

    growing.looks(read)
    with closing(sqlite3.connect(recorded)) as database:
        frame = pandas.read_sql("SELECT * FROM records ORDER BY run, seq", database)
    expected = all_rows(recorded)
    assert list(frame.columns) == list(COLUMNS)
    for name in COLUMNS:
        values = [None if pandas.isna(one) else one for one in frame[name].to_list()]
        assert values == [row[name] for row in expected], name


def test_perfetto_events_come_in_pairs(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = mooring(capsys, "records", recorded, "--export", "perfetto")
    assert code == 0
    events = json.loads(out)["traceEvents"]
    begun = [(one["id"], one["name"]) for one in events if one["ph"] == "b"]
    ended = [(one["id"], one["name"]) for one in events if one["ph"] == "e"]
    assert sorted(begun) == sorted(ended)
    assert len(begun) == len(set(begun)) >= 3 * len(all_rows(recorded))


def test_otlp_spans_are_children_of_their_attempt(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = mooring(capsys, "records", recorded, "--export", "otlp")
    spans = json.loads(out)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    roots = {one["traceId"]: one for one in spans if "parentSpanId" not in one}
    assert len(roots) == len(all_rows(recorded))
    for span in spans:
        root = roots[span["traceId"]]
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
        assert span.get("parentSpanId", root["spanId"]) == root["spanId"]


def test_several_files_are_read_as_one_while_one_grows(
    recorded: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "PERIOD", 0.01)
    path = tmp_path / "growing.db"
    record, file = DecisionRecord(lambda: 2e9), RecordFile(path, now=1.0, version="1")
    file.start()
    record.add_sink(file)
    fill(record, 50)

    def last() -> list[int]:
        code, out, _ = mooring(capsys, "records", recorded, path, "--limit", "60", "-o", "json")
        return [row["seq"] for row in json.loads(out)] if code == 0 else []

    wait_until(lambda: last()[-50:] == list(range(1, 51)), what="both files are read")
    assert len(last()) == 60
    file.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.db"], "missing.db: there is no such file"),
        ([__file__], "not a record of mooring run: file is not a database"),
        (["FILE", "--since", "now"], "--since: expected an RFC 3339 time"),
        (["FILE", "--export", "parquet"], "-o: a Parquet file needs a name"),
        (["FILE", "-o", "out.csv"], "-o: a file needs --export; json is for standard output"),
        (
            ["FILE", "--export", "csv", "-o", "/nowhere/out.csv"],
            "-o: /nowhere/out.csv: No such file or directory",
        ),
    ],
)
def test_what_is_wrong_is_one_line(
    recorded: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(recorded) if one == "FILE" else one for one in arguments]
    code, _, err = mooring(capsys, "records", *given)
    assert code == 1
    assert message in err
    assert err.count("\n") == 1


def test_a_parquet_file_that_can_not_be_written_is_one_line(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", reason="mooring[records] is not installed")
    words = ("records", recorded, "--export", "parquet", "-o", "/nowhere/out.parquet")
    code, _, err = mooring(capsys, *words)
    assert (code, err) == (1, "-o: /nowhere/out.parquet: No such file or directory\n")


def test_the_sql_of_the_how_to_runs(recorded: Path) -> None:
    queries = list(blocks(ROOT / "docs/howto/query-the-record.md", "sql"))
    assert len(queries) == 6
    with closing(sqlite3.connect(recorded)) as database:
        found = [database.execute(query).fetchall() for query in queries]
    assert all(rows for rows in found[:-1])  # no bind failed


def test_its_table_has_every_column() -> None:
    page = (ROOT / "docs/howto/query-the-record.md").read_text()
    assert not [name for name in COLUMNS if f"`{name}`" not in page]
