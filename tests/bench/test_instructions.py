"""`bench.instructions` counts what each pod adds, and shows two trees side by side."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from bench.instructions import FEW, CountError, Process, count, per_pod, plan, table
from bench.trees import HERE, ROOT

from bench import inprocess

# Writes counts as cachegrind does: a pod costs 590,000 instructions, 70,000 of them to build it.
VALGRIND = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
out = next(word for word in words if word.startswith("--cachegrind-out-file=")).partition("=")[2]
is_child = "bench.inprocess" in words
pods = next(word for word in words if word.startswith("--pods=")) if is_child else words[-1]
cost = int(pods.rpartition("=")[2]) * (590_000 if is_child else 70_000) + 1_000_000_000
open(out, "w").write(f"desc: ...\\nevents: Ir\\nfn=main\\n1 {{cost}}\\nsummary: {{cost}}\\n")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first in PATH."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def install(folder: Path, text: str) -> None:
    path = folder / "valgrind"
    path.write_text(text)
    path.chmod(0o755)


def test_counts_each_tree_by_the_workloads_that_it_has() -> None:
    known = {HERE: ["basic", "new"], "old": ["basic"]}
    processes = plan(known, ["basic", "new"], [500, 5000], 400)
    assert len(processes) == len(set(processes)) == 3 * 3 * 2
    assert {each.workload for each in processes if each.tree == "old"} == {"basic"}
    assert {each.pods for each in processes} == {FEW, FEW + 400}


def test_subtracts_set_up_and_the_building_of_pods() -> None:
    processes = plan({HERE: ["basic"]}, ["basic"], [500], 400)
    building = {FEW: 1_000_000, FEW + 400: 1_000_000 + 400 * 70_000}
    whole = {FEW: 3_000_000_000, FEW + 400: 3_000_000_000 + 400 * 590_000}
    counts = {p: (building if p.nodes is None else whole)[p.pods] for p in processes}
    assert per_pod(counts, processes, HERE, 400) == {"basic @ 500": pytest.approx(520.0)}


def test_shows_ratios_where_both_trees_have_the_workload_and_the_worst_at_the_end() -> None:
    here = {"basic @ 500": 520.0, "mixed @ 500": 880.0, "new @ 500": 700.0}
    there = {"basic @ 500": 500.0, "mixed @ 500": 800.0}
    _, basic, mixed, new, *_, worst = table(here, there, "3db2a99")
    assert basic.split() == ["basic", "@", "500", "520.0", "500.0", "1.040"]
    assert mixed.split()[-1] == "1.100"
    assert new.split() == ["new", "@", "500", "700.0"]
    assert worst == "worst ratio: 1.100, mixed @ 500"
    assert table({"basic @ 500": 520.0})[1:] == [basic[:49]]


def test_runs_all_processes_under_valgrind(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, VALGRIND)
    asked = ["--instructions", "--nodes", "500", "--workload", "basic"]
    assert inprocess.main(asked) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1].split() == ["basic", "@", "500", "520.0"]
    assert "4 of 4: here: basic" in told.err


def test_names_the_process_that_failed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "#!/bin/sh\necho broken >&2\nexit 3\n")
    asked = ["--instructions", "--nodes", "500", "--workload", "basic", "--jobs", "1"]
    assert inprocess.main(asked) == 2
    assert capsys.readouterr().err == (
        "here: basic pods built, 200 pods: the process ended with 3:\nbroken\n"
    )


def test_says_in_a_line_that_valgrind_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert inprocess.main(["--instructions"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "valgrind" in line


def test_refuses_the_workload_that_cannot_be_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        inprocess.main(["--instructions", "--workload", inprocess.PLUGIN])
    assert inprocess.PLUGIN in capsys.readouterr().err


def test_refuses_counts_that_are_incomplete(folder: Path) -> None:
    install(folder, VALGRIND.replace("summary:", "sum"))
    with pytest.raises(CountError, match="instead of a summary"):
        count(ROOT, Process(HERE, "basic", None, FEW).words)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_reads_the_count_of_the_real_valgrind() -> None:
    assert count(ROOT, ["-S", "-c", "pass"]) > 1_000_000
