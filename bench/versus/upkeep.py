"""What both schedulers cost when there is little to schedule: at their start, and in quiet hours.

    make bench-upkeep
    make bench-upkeep ARGS="--nodes 500 --existing 5000 --rounds 1 --seconds 10"
    make bench-upkeep ARGS="--existing 20000 --kubelet-status"

Start-up: the time from the start of the process to the first bind, on empty nodes and on nodes that
run many pods, small ones or such as a kubelet reports; the schedulers take turns. Quiet hours: both
run side by side and see the same updates, of nodes by their kubelets and of the status of running
pods, while nothing is pending.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Final

from msgspec import Struct
from tests.controlplane.admin import Object

from bench.versus.machine import wait_for_calm
from bench.versus.measure import cpu_seconds, measure
from bench.versus.pods import basic, node_name
from bench.versus.raw import NAMES, SCHEDULERS
from bench.versus.rig import Rig
from bench.versus.running_pods import deployed_pod
from bench.versus.surroundings import running_pods
from bench.versus.workloads import Workload
from bench.versus.writers import Writers, heartbeat, pod_status

_PENDING: Final = 5  # pods to be bound at each start
_DEADLINE: Final = 120.0  # seconds
_PODS_UPDATED: Final = 10_000  # one after the other


class Figure(Struct, frozen=True):
    """What one scheduler took in one round, in the unit of the workload."""

    workload: str
    scheduler: str
    value: float
    note: str


# --- start-up ------------------------------------------------------------------------------------


def start_up(rig: Rig, workload: Workload, rounds: int) -> list[Figure]:
    found = []
    for number, scheduler in product(range(1, rounds + 1), SCHEDULERS):
        name = workload.title
        run = measure(*(rig, name, workload, scheduler, number), pods=_PENDING, deadline=_DEADLINE)
        note = f"{run.cpu_first:.2f} s CPU, {run.peak_memory:.0f} MB"
        note += f", server {run.server_cpu:.2f} s; {run.outcome}".rstrip("; ")
        found.append(_told(Figure(name, scheduler, run.first_bind, note), "s"))
    return found


def in_use(running: int, *, kubelet_status: bool = False) -> Workload:
    """A few pods, and so many that run already, small ones or such as a kubelet reports."""

    def before(pods: int, nodes: int) -> Iterable[Object]:
        if kubelet_status:
            return (deployed_pod(i, node_name(i % nodes)) for i in range(running))
        return running_pods(running, nodes)

    return Workload(title=f"first bind, {running:,} pods (s)", pod=basic, before=before)


# --- quiet hours ---------------------------------------------------------------------------------


def quiet_hours(
    rig: Rig, name: str, update: Callable[[Rig, int], None], rate: int, seconds: float, rounds: int
) -> list[Figure]:
    """Shares of a core while so many updates per second go on."""
    found = []
    processes = {scheduler: rig.start(scheduler) for scheduler in SCHEDULERS}
    try:
        pids = [process.pid for process in processes.values()]
        wait_for_calm(lambda: rig.server_cpu_seconds + sum(map(cpu_seconds, pids)), _DEADLINE)
        done = 0
        for _ in range(rounds):
            began = time.monotonic()
            before = {who: cpu_seconds(process.pid) for who, process in processes.items()}
            with Writers(partial(update, rig), rate, done) as writers:
                time.sleep(seconds)
            passed = time.monotonic() - began
            done += writers.count
            for who, process in processes.items():
                used = cpu_seconds(process.pid) - before[who]
                each = used / writers.count * 1e6
                note = f"{writers.count / passed:.0f} updates/s, {each:.0f} us each"
                found.append(_told(Figure(name, who, 100 * used / passed, note), "% of a core"))
    finally:
        for process in processes.values():
            process.stop()
    return found


# --- all of it -----------------------------------------------------------------------------------


def _told(figure: Figure, unit: str) -> Figure:
    who = NAMES[figure.scheduler]
    print(f"{figure.workload}: {who} {figure.value:.2f} {unit} ({figure.note})", flush=True)
    return figure


def table(figures: Sequence[Figure]) -> str:
    """Medians, and the ratio of the first scheduler's to the second's."""
    lines = ["| workload | mooring | kube-scheduler | ratio |", "|---|--:|--:|--:|"]
    for workload in dict.fromkeys(figure.workload for figure in figures):
        ours, theirs = (
            statistics.median(
                f.value for f in figures if (f.workload, f.scheduler) == (workload, scheduler)
            )
            for scheduler in ("mooring", "kube")
        )
        lines.append(f"| {workload} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.versus.upkeep", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--existing", type=int, default=100_000, help="running pods")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each round of updates")
    parser.add_argument(
        "--kubelet-status",
        action="store_true",
        help="running pods of Deployments with the status a kubelet reports, no quiet hours",
    )
    options = parser.parse_args(arguments)
    rounds, seconds = options.rounds, options.seconds
    found: list[Figure] = []
    with Rig(options.nodes) as rig:
        empty = Workload(title="first bind, empty nodes (s)", pod=basic)
        used = in_use(options.existing, kubelet_status=options.kubelet_status)
        for workload in (empty, used):
            found += start_up(rig, workload, rounds)
        if options.kubelet_status:
            print(table(found))
            return 0
        updated = partial(pod_status, pods=min(options.existing, _PODS_UPDATED))
        for name, update, rate in (
            ("500 heartbeats/s (% of a core)", heartbeat, 500),
            ("300 pod status updates/s (% of a core)", updated, 300),
        ):
            found += quiet_hours(rig, name, update, rate, seconds, rounds)
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
