"""The page and the picture that `bench.versus.report` makes of raw data."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from bench.versus import raw
from bench.versus.chart import chart
from bench.versus.report import BEGIN, END, main, report
from bench.versus.workloads import WORKLOADS
from tests.bench.data import SETUP, all_runs, run

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def lines_about(page: str, workload: str) -> list[str]:
    title = WORKLOADS[workload].title
    return [line for line in page.splitlines() if line.startswith(f"| {title} |")]


def test_shows_medians_spreads_and_ratios() -> None:
    speed, size = lines_about(report(SETUP, all_runs()), "basic")
    assert "| 3,000 | 294 (291–297) | 99 (99–100) | 2.96x |" in speed  # noqa: RUF001 - dashes
    assert "| 1.00 | 4.00 | 0.25x |" in speed
    assert "| 100 | 100 | 1.0 | 1.0 |" in size


def test_names_machine_versions_and_command() -> None:
    page = report(SETUP, all_runs())
    for told in ("| cores | 2 |", "| mooring | 1.0 |", SETUP.command, SETUP.date):
        assert told in page


def test_tells_which_runs_did_not_finish() -> None:
    late = run("spread", "kube", 2, bound=1234, outcome="too late")
    runs = [each if each.key != late.key else late for each in all_runs()]
    page = report(SETUP, runs)
    title = WORKLOADS["spread"].title
    assert f"- {title}, kube-scheduler, round 2: 1,234 of 3,000 bound; too late" in page


def test_shows_a_dash_where_nothing_finished() -> None:
    runs = [
        each if each.scheduler != "kube" else msgspec.structs.replace(each, bound=5)
        for each in all_runs()
    ]
    speed, _ = lines_about(report(SETUP, runs), "basic")
    assert "| – | – |" in speed  # noqa: RUF001 - dashes
    assert "did not finish" in chart(SETUP, runs)


def test_tells_what_has_not_been_measured_yet() -> None:
    assert "9 of the runs planned have not been made." in report(SETUP, all_runs()[:3])


def test_tells_that_other_programs_had_a_part_of_the_machine() -> None:
    quiet, *rest = all_runs()
    assert "Other programs" not in report(SETUP, [quiet, *rest])
    page = report(SETUP, [msgspec.structs.replace(quiet, others=0.314), *rest])
    assert "used 0 % of the machine during the median run, 31 % during the worst" in page


def test_reports_one_scheduler_alone() -> None:
    alone = msgspec.structs.replace(SETUP, schedulers=("mooring",))
    page = report(alone, all_runs(alone))
    assert "kube-scheduler" not in page
    assert "ratio" not in page
    ElementTree.fromstring(chart(alone, all_runs(alone)))


def test_draws_a_bar_for_each_median() -> None:
    drawn = ElementTree.fromstring(chart(SETUP, all_runs()))
    bars = [each for each in drawn.iter(f"{SVG}rect") if each.get("class") in SETUP.schedulers]
    widths = [float(bar.get("width", "0")) for bar in bars[2:]]  # two are the legend's
    assert len(widths) == 2 * 2 * len(SETUP.workloads)
    assert widths[0] == pytest.approx(2.96 * widths[1], rel=0.01)
    right = max(float(bar.get("x", "0")) + float(bar.get("width", "0")) for bar in bars)
    assert right < float(drawn.get("width", "0"))


def test_draws_text_that_is_not_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = msgspec.structs.replace(WORKLOADS["basic"], title='a < b & "c"')
    monkeypatch.setitem(WORKLOADS, "basic", odd)
    texts = [each.text for each in ElementTree.fromstring(chart(SETUP, all_runs())).iter()]
    assert odd.title in texts


def test_writes_only_between_the_markers(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    raw.write(path, SETUP)
    for each in all_runs():
        raw.write(path, each)
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):  # again is the same
        assert main([str(path), "--docs", str(tmp_path)]) == 0
    text = page.read_text()
    assert text.startswith(f"# Before\n{BEGIN}\n![")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert (tmp_path / "performance.jsonl").read_bytes() == path.read_bytes()
    ElementTree.parse(tmp_path / "images" / "performance.svg")


def test_refuses_a_page_without_markers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "raw.jsonl"
    raw.write(path, SETUP)
    (tmp_path / "performance.md").write_text("nothing here")
    assert main([str(path), "--docs", str(tmp_path)]) == 2
    assert "performance.md: expected a line" in capsys.readouterr().err


def test_has_markers_in_the_page_we_ship() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page.index(BEGIN) < page.index(END)
