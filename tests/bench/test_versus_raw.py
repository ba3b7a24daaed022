"""Raw data of `bench.versus`: what is there is kept, what is missing is made up for."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from bench.versus import raw
from bench.versus.__main__ import expected, summary
from bench.versus.machine import busy_seconds
from bench.versus.measure import cpu_seconds, peak_megabytes, twentieths
from bench.versus.raw import Run, Setup
from bench.versus.summary import Spread, cell, ratio
from tests.bench.data import SETUP, run


def test_reads_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    runs = [run("basic", "mooring", 1), run("basic", "kube", 1, bound=10)]
    raw.write(path, SETUP)
    for each in runs:
        raw.write(path, each)
    assert raw.read(path) == (SETUP, runs)


def test_changes_who_begins_from_round_to_round() -> None:
    order = [(scheduler, number) for name, scheduler, number in raw.plan(SETUP) if name == "basic"]
    assert order == [
        ("mooring", 1),
        ("kube", 1),
        ("kube", 2),
        ("mooring", 2),
        ("mooring", 3),
        ("kube", 3),
    ]


def test_goes_on_with_the_runs_that_are_missing() -> None:
    done = [run("basic", "mooring", 1), run("spread", "kube", 2, bound=7)]
    left = raw.remaining(SETUP, done)
    assert len(left) == len(list(raw.plan(SETUP))) - 2
    assert ("basic", "mooring", 1) not in left
    assert ("spread", "kube", 2) not in left  # it did not finish, which is a result, too
    assert left[0] == ("basic", "kube", 1)


def test_forgets_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    raw.write(path, SETUP)
    raw.write(path, run("basic", "mooring", 1))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"what":"run","workl')
    assert len(raw.read(path)[1]) == 1
    raw.mend(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("content", ["", "nonsense\n{}\n", '{"what":"run"}\n{}\n'])
def test_says_which_file_is_not_one_of_ours(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(raw.RawError, match=r"other\.jsonl"):
        raw.read(path)


def test_counts_a_run_from_its_first_bind() -> None:
    one = run("basic", "mooring", 1, bound=101, span=2.0, cpu=0.202, cpu_quiet=0.303)
    assert one.pods_per_second == 50.0
    assert one.cpu_per_pod == pytest.approx(2.0)
    assert one.all_cpu_per_pod == pytest.approx(3.0)


def test_divides_by_nothing() -> None:
    empty = run("basic", "mooring", 1, bound=0, span=0.0)
    assert (empty.pods_per_second, empty.cpu_per_pod, empty.all_cpu_per_pod) == (0.0, 0.0, 0.0)
    assert ratio(Spread(1, 1, 1), Spread(0, 0, 0)) is None
    assert ratio(None, Spread(1, 1, 1)) is None


def test_leaves_unfinished_runs_out_of_the_medians() -> None:
    spans = (1.0, 2.0, 4.0)
    runs = [run("basic", "kube", i + 1, bound=101, span=span) for i, span in enumerate(spans)]
    runs = [msgspec.structs.replace(each, asked=101) for each in runs]
    runs.append(run("basic", "kube", 4, bound=50, span=1000.0))
    found = cell(runs, "basic", "kube")
    assert found.pods_per_second == Spread(50.0, 25.0, 100.0)
    assert cell(runs, "basic", "mooring").pods_per_second is None


def test_judges_how_long_a_run_takes_by_those_most_like_it() -> None:
    runs = [run("basic", "kube", 1, took=10.0), run("spread", "kube", 1, took=30.0)]
    assert expected(runs, "spread", "kube") == 30.0
    assert expected(runs, "affinity", "kube") == 20.0
    assert expected(runs, "affinity", "mooring") == 40.0


def test_tells_in_a_line_what_went_wrong() -> None:
    assert summary(run("basic", "kube", 1, bound=7, outcome="it ended")).endswith("; it ended")


def test_marks_each_twentieth() -> None:
    times = [10.0 + number / 10 for number in range(100)]
    assert twentieths(times, 10.0)[:2] == (0.4, 0.9)
    assert twentieths(times, 10.0)[-1] == 9.9
    assert twentieths(times[:5], 10.0) == ()


def test_looks_at_a_process_from_outside() -> None:
    assert busy_seconds() > cpu_seconds(os.getpid()) > 0
    assert peak_megabytes(os.getpid()) > 1
    gone = 2**22 + 1  # beyond the greatest process id
    assert (cpu_seconds(gone), peak_megabytes(gone)) == (0.0, 0.0)


def test_keeps_the_setup_readable() -> None:
    line = msgspec.json.decode(msgspec.json.encode(SETUP))
    assert line["what"] == "setup"
    assert msgspec.convert(line, Setup) == SETUP
    assert msgspec.json.decode(msgspec.json.encode(run("basic", "kube", 1)), type=Run).round == 1
