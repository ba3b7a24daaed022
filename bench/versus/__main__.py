"""Measures both schedulers, run by run, and writes each result at once.

    make bench-vs
    make bench-vs ARGS="--nodes 500 --pods 300 --rounds 1 --workload basic"
    make bench-vs ARGS="--shapes --nodes 1000 --pods 500 --rounds 2"
    make bench-vs ARGS="--surroundings --pods 2000 --rounds 2 --deadline 60"
    python -m bench.versus --resume raw.jsonl       # goes on after an interruption

Needs Go the first time, to build the control plane; about an hour with 5,000 nodes.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.controlplane.build import ControlPlaneError

from bench.device_shapes import DEVICE_SHAPES
from bench.shapes import SHAPES
from bench.versus import raw
from bench.versus.machine import machine, versions
from bench.versus.measure import measure
from bench.versus.raw import NAMES, SCHEDULERS, Run, Setup
from bench.versus.rig import Rig, open_files
from bench.versus.summary import cell, ratio
from bench.versus.workloads import SURROUNDINGS, USUAL, WORKLOADS

_UNKNOWN = 40.0  # seconds that a run may take, for all we know before the first


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end in good order
    try:
        path, setup, runs = _continued(options.resume) if options.resume else _begun(options)
        _say(f"raw data: {path}")
        _all_runs(path, setup, runs, audit=options.audit)
    except (ControlPlaneError, raw.RawError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        _say("interrupted; go on with --resume and the file named above")
        return 130
    _say(f"done; for the table and the picture: python -m bench.versus.report {path}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.versus", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=3_000, help="of each run; some take fewer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--workload",
        choices=WORKLOADS,
        action="append",
        help="may be repeated (default: usual)",
    )
    parser.add_argument(
        "--shapes",
        action="store_true",
        help="preemption on a full cluster and volumes, instead of the usual workloads",
    )
    parser.add_argument(
        "--devices", action="store_true", help="claims to devices, instead of the usual workloads"
    )
    parser.add_argument(
        "--surroundings",
        action="store_true",
        help="clusters in use, writers beside, Services, taints, instead of the usual workloads",
    )
    parser.add_argument("--only", choices=SCHEDULERS, help="measure one of the two")
    parser.add_argument("--deadline", type=float, default=300.0, help="seconds for each run")
    parser.add_argument("--folder", type=Path, help="for the raw data (default: a new one)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="raw data to go on with")
    parser.add_argument("--audit", action="store_true", help="let the API server keep a log, too")
    return parser.parse_args(arguments)


def _begun(options: argparse.Namespace) -> tuple[Path, Setup, list[Run]]:
    folder = options.folder or Path(tempfile.mkdtemp(prefix="mooring-versus-"))
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    open_files()
    path = folder / f"versus-{now:%Y%m%d-%H%M%S}.jsonl"
    groups: dict[str, Iterable[str]] = {
        "shapes": SHAPES,
        "devices": DEVICE_SHAPES,
        "surroundings": SURROUNDINGS,
    }
    asked = [name for name in groups if getattr(options, name)]
    usual = [name for group in asked for name in groups[group]] or USUAL
    workloads = tuple(options.workload or usual)
    said = f"--nodes {options.nodes} --pods {options.pods} --rounds {options.rounds}"
    said += "".join(f" --workload {name}" for name in options.workload or ())
    said += "".join(f" --{name}" for name in asked)
    said += f" --only {options.only}" if options.only else ""
    setup = Setup(
        nodes=options.nodes,
        pods=options.pods,
        rounds=options.rounds,
        workloads=workloads,
        schedulers=(options.only,) if options.only else SCHEDULERS,
        deadline=options.deadline,
        command=f"python -m bench.versus {said}",
        date=f"{now:%Y-%m-%d}",
        machine=machine(),
        versions=versions(),
    )
    raw.write(path, setup)
    return path, setup, []


def _continued(path: Path) -> tuple[Path, Setup, list[Run]]:
    setup, runs = raw.read(path)
    raw.mend(path)
    if setup.versions != versions():
        _say("note: this is not the version that the runs in the file were made with")
    return path, setup, runs


def _all_runs(path: Path, setup: Setup, runs: list[Run], *, audit: bool) -> None:
    left = raw.remaining(setup, runs)
    if not left:
        return
    _say(f"{len(left)} runs on {setup.nodes:,} nodes, each from a backup of its workload")
    with Rig(setup.nodes, audit=audit) as rig:
        for done, (workload, scheduler, number) in enumerate(left):
            rest = sum(expected(runs, *key[:2]) for key in left[done:])
            next_ = expected(runs, workload, scheduler)
            _say(
                f"{done + 1} of {len(left)}: {workload}, {NAMES[scheduler]}, round {number}"
                f" (about {next_:.0f} s, at most {setup.deadline:.0f} s of scheduling;"
                f" about {max(rest / 60, 1):.0f} min left)"
            )
            run = measure(
                *(rig, workload, WORKLOADS[workload], scheduler, number),
                pods=setup.pods,
                deadline=setup.deadline,
            )
            raw.write(path, run)
            runs.append(run)
            _say(f"   {summary(run)}")
    for line in ratios(setup, runs):
        _say(line)


def expected(runs: Sequence[Run], workload: str, scheduler: str) -> float:
    """How many seconds a run may take, judged by those before it that are most like it."""
    same = [run.took for run in runs if (run.workload, run.scheduler) == (workload, scheduler)]
    alike = [run.took for run in runs if run.scheduler == scheduler]
    known = same or alike
    return statistics.mean(known) if known else _UNKNOWN


def ratios(setup: Setup, runs: Sequence[Run]) -> Iterator[str]:
    """A line about each workload that both schedulers completed: medians, ours to the other's."""
    for workload in setup.workloads:
        ours, theirs = (cell(runs, workload, scheduler) for scheduler in SCHEDULERS)
        sooner = ratio(theirs.last_bind, ours.last_bind)
        work = ratio(ours.cpu_per_pod, theirs.cpu_per_pod)
        if sooner is not None and work is not None:
            yield f"{workload}: last bind {sooner:.2f}x as soon, CPU {work:.2f}x"


def summary(run: Run) -> str:
    """A line about a run."""
    told = (
        f"{run.bound:,} of {run.asked:,} bound, {run.pods_per_second:.0f} pods/s,"
        f" {run.cpu_per_pod:.2f} ms CPU/pod ({run.all_cpu_per_pod:.2f} with the rest),"
        f" {run.peak_memory:.0f} MB, first after {run.first_bind:.2f} s,"
        f" last after {run.last_bind:.2f} s,"
        f" others had {100 * run.others:.0f} %"
    )
    return f"{told}; {run.outcome}" if run.outcome else told


def _say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
