"""Puts what was measured into the documentation: tables, a picture and the raw data.

    python -m bench.versus.report raw.jsonl

Of docs/performance.md only what stands between two markers is replaced.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.versus import raw
from bench.versus.chart import chart
from bench.versus.raw import NAMES, Run, Setup
from bench.versus.summary import Cell, Spread, cell, ratio, unfinished
from bench.versus.workloads import WORKLOADS

BEGIN = "<!-- written by bench.versus.report: begin -->"
END = "<!-- written by bench.versus.report: end -->"
_BUSY = 10  # percent of the machine for others that a reader should know of
_DOCS = Path(__file__).resolve().parents[2] / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.versus.report", description=__doc__)
    parser.add_argument("raw", type=Path, metavar="RAW.jsonl")
    parser.add_argument("--docs", type=Path, default=_DOCS, help="the folder to write into")
    options = parser.parse_args(arguments)
    try:
        for path in publish(options.raw, options.docs):
            print(f"wrote {path}")
    except (raw.RawError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def publish(path: Path, docs: Path) -> list[Path]:
    """Write page, picture and data; where they are."""
    setup, runs = raw.read(path)
    page, picture, data = (
        docs / "performance.md",
        docs / "images" / "performance.svg",
        docs / "performance.jsonl",
    )
    page.write_text(replaced(page.read_text(encoding="utf-8"), report(setup, runs), str(page)))
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(chart(setup, runs))
    if path.resolve() != data.resolve():
        shutil.copyfile(path, data)
    return [page, picture, data]


def replaced(page: str, text: str, name: str) -> str:
    """The page with another text between the markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise raw.RawError(f"{name}: expected a line {BEGIN!r} and later a line {END!r}")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def report(setup: Setup, runs: Sequence[Run]) -> str:
    """The part of the page that was measured, as Markdown."""
    lines = [
        f"![Pods per second and CPU per pod, {setup.nodes:,} nodes](images/performance.svg)",
        "",
        *_speed(setup, runs),
        "",
        *_size(setup, runs),
        "",
        *_doubts(setup, runs),
        f"Measured on {setup.date} with `{setup.command}`; a cell is the median of the rounds,"
        " with the lowest and the highest in parentheses.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in setup.machine.items()),
        *(f"| {name} | {value} |" for name, value in setup.versions.items()),
        "",
        "Raw data: [performance.jsonl](performance.jsonl), a line for each run.",
    ]
    return "\n".join(lines) + "\n"


def _speed(setup: Setup, runs: Sequence[Run]) -> list[str]:
    names = [NAMES[scheduler] for scheduler in setup.schedulers]
    both = len(names) == 2
    speeds = [f"{name}, pods/s" for name in names] + ["ratio"] * both
    costs = [f"{name}, CPU ms/pod" for name in names] + ["ratio"] * both
    lines = _head(["workload", "pods", *speeds, *costs])
    for name in setup.workloads:
        cells = _cells(setup, runs, name)
        pods = max((run.asked for each in cells for run in each.runs), default=0)
        rates = [each.pods_per_second for each in cells]
        work = [each.cpu_per_pod for each in cells]
        row = [WORKLOADS[name].title, f"{pods:,}"]
        row += [_spread(each, "{:,.0f}") for each in rates] + _times(rates)
        row += [_spread(each, "{:.2f}") for each in work] + _times(work)
        lines.append(_row(row))
    return lines


def _size(setup: Setup, runs: Sequence[Run]) -> list[str]:
    names = [NAMES[scheduler] for scheduler in setup.schedulers]
    lines = _head(
        [
            "workload",
            *(f"{name}, peak MB" for name in names),
            *(f"{name}, first bind s" for name in names),
            *(f"{name}, CPU ms/pod with Events" for name in names),
        ]
    )
    for name in setup.workloads:
        cells = _cells(setup, runs, name)
        row = [WORKLOADS[name].title]
        row += [_spread(each.peak_memory, "{:.0f}") for each in cells]
        row += [_spread(each.first_bind, "{:.1f}") for each in cells]
        row += [_spread(each.all_cpu_per_pod, "{:.2f}") for each in cells]
        lines.append(_row(row))
    return lines


def _doubts(setup: Setup, runs: Sequence[Run]) -> list[str]:
    """What a reader must know before believing the tables."""
    lines = [
        f"- {WORKLOADS[run.workload].title}, {NAMES[run.scheduler]}, round {run.round}:"
        f" {run.bound:,} of {run.asked:,} bound; {run.outcome}"
        for run in unfinished(runs)
    ]
    if lines:
        lines = ["Runs that did not finish and are not in the medians:", "", *lines, ""]
    busy = [100 * run.others for run in runs]
    if busy and max(busy) >= _BUSY:
        lines += [
            f"Other programs used {statistics.median(busy):.0f} % of the machine during the median"
            f" run, {max(busy):.0f} % during the worst.",
            "",
        ]
    left = len(raw.remaining(setup, runs))
    if left:
        lines += [f"{left} of the runs planned have not been made.", ""]
    return lines


def _cells(setup: Setup, runs: Sequence[Run], workload: str) -> list[Cell]:
    return [cell(runs, workload, scheduler) for scheduler in setup.schedulers]


def _spread(value: Spread | None, form: str) -> str:
    if value is None:
        return "–"  # noqa: RUF001 - a dash in print
    median, least, most = (form.format(each) for each in (value.median, value.least, value.most))
    return median if least == most else f"{median} ({least}–{most})"  # noqa: RUF001 - likewise


def _times(values: Sequence[Spread | None]) -> list[str]:
    """How many times the other's ours is; nothing to say of one alone."""
    if len(values) < 2:
        return []
    found = ratio(values[0], values[1])
    return [f"{found:.2f}x" if found is not None else "–"]  # noqa: RUF001 - likewise


def _head(names: Sequence[str]) -> list[str]:
    return [_row(names), "|".join(["", "---", *["--:"] * (len(names) - 1), ""])]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
