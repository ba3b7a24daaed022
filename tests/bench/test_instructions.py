"""`bench.instructions` counts what each pod adds, and shows two trees side by side."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.instructions import CountError, plan, read, table
from bench.trees import HERE, ROOT

from bench import inprocess

# Does what valgrind and `bench/counted.py` do together: 400 pods cost 70,000 instructions each to
# be received and 450,000 to be placed; what is between does not count.
VALGRIND = f"""#!{sys.executable}
import json, sys
words = sys.argv[1:]
out = next(word for word in words if word.startswith("--cachegrind-out-file=")).partition("=")[2]
script = next(word for word in words if word.endswith("counted.py"))
nodes, pods, *names = words[words.index(script) + 1 :]
total = 1_000_000_000
for place, name in enumerate(names):
    moments = []
    for moment, cost in enumerate((0, 70_000, 9_999_999, 450_000)):
        total += cost * int(pods)
        moments.append(10 * place + moment)
        with open(out.replace("%p", str(moments[-1])), "w") as file:
            file.write(f"desc: ...\\nevents: Ir\\nfn=main\\n1 {{total}}\\nsummary: {{total}}\\n")
    print(json.dumps([name, moments, int(pods)]))
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


def test_counts_each_tree_by_the_workloads_that_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = {ROOT: ["basic", "new"], tmp_path: ["basic"]}
    monkeypatch.setattr("bench.instructions.prepared", known.__getitem__)
    paths = {HERE: ROOT, "old": tmp_path}
    processes = plan(paths, ["basic", "new"], [500, 5000])
    assert [(each.tree, each.nodes) for each in processes] == [
        (HERE, 500),
        ("old", 500),
        (HERE, 5000),
        ("old", 5000),
    ]
    assert {each.workloads for each in processes if each.tree == HERE} == {("basic", "new")}
    assert {each.workloads for each in processes if each.tree == "old"} == {("basic",)}


def test_shows_ratios_where_both_trees_have_the_workload_and_the_worst_at_the_end() -> None:
    here = {"basic @ 500": 520.0, "mixed @ 500": 880.0, "new @ 500": 700.0}
    there = {"basic @ 500": 500.0, "mixed @ 500": 800.0}
    _, basic, mixed, new, *_, worst = table(here, there, "3db2a99")
    assert basic.split() == ["basic", "@", "500", "520.0", "500.0", "1.040"]
    assert mixed.split()[-1] == "1.100"
    assert new.split() == ["new", "@", "500", "700.0"]
    assert worst == "worst ratio: 1.100, mixed @ 500"
    assert table({"basic @ 500": 520.0})[1:] == [basic[:49]]


def test_counts_what_happens_to_a_pod_from_receiving_it_to_its_placement(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, VALGRIND)
    asked = ["--instructions", "--nodes", "500", "--workload", "basic", "--workload", "mixed"]
    assert inprocess.main(asked) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1].split() == ["basic", "@", "500", "520.0"]
    assert told.out.splitlines()[2].split() == ["mixed", "@", "500", "520.0"]
    assert "here: mixed @ 500: 520.0" in told.err


def test_names_the_process_that_failed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "#!/bin/sh\necho broken >&2\nexit 3\n")
    asked = ["--instructions", "--nodes", "500", "--workload", "basic", "--jobs", "1"]
    assert inprocess.main(asked) == 2
    assert capsys.readouterr().err == "here @ 500: the process ended with 3:\nbroken\n"


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


def test_refuses_counts_that_are_incomplete(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    with pytest.raises(CountError, match="wrote no counts"):
        read(counts)
    counts.write_text("events: Ir\nsum 1\n")
    with pytest.raises(CountError, match="instead of a summary"):
        read(counts)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_reads_the_counts_of_moments_from_the_real_valgrind(tmp_path: Path) -> None:
    code = "from bench.counted import mark; print(mark()); sum(range(10**5)); print(mark())"
    options = ["--quiet", "--tool=cachegrind", "--cache-sim=no"]
    command = ["valgrind", *options, f"--cachegrind-out-file={tmp_path}/%p", sys.executable, "-c"]
    done = subprocess.run([*command, code], cwd=ROOT, capture_output=True, text=True, check=True)
    first, last = (read(tmp_path / name) for name in done.stdout.split())
    assert 10**6 < last - first < 10**8
