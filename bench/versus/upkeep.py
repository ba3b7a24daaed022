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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct
from tests.controlplane.admin import STRATEGIC_PATCH, Object

from bench.versus.measure import cpu_seconds, measure
from bench.versus.raw import NAMES, SCHEDULERS
from bench.versus.rig import Rig
from bench.versus.running_pods import deployed_pod
from bench.versus.workloads import node_name, pod

EXISTING = "existing"  # the namespace of running pods
_PENDING = 5  # pods to be bound at each start
_DEADLINE = 120.0  # seconds
_AT_ONCE = 2_000  # pods created before the next ones are made
_WRITERS = 6
_CALM = 0.05  # share of a core, below which a scheduler has done its work
_PODS_UPDATED = 10_000  # one after the other


class Figure(Struct, frozen=True):
    """What one scheduler took in one round, in the unit of the workload."""

    workload: str
    scheduler: str
    value: float
    note: str


# --- start-up ------------------------------------------------------------------------------------


def start_up(rig: Rig, name: str, rounds: int) -> list[Figure]:
    found = []
    for number in range(1, rounds + 1):
        for scheduler in SCHEDULERS:
            run = measure(rig, "basic", scheduler, number, pods=_PENDING, deadline=_DEADLINE)
            note = f"{run.cpu_first:.2f} s CPU, {run.peak_memory:.0f} MB"
            note += f", server {run.server_cpu:.2f} s; {run.outcome}".rstrip("; ")
            found.append(_told(Figure(name, scheduler, run.first_bind, note), "s"))
    return found


def run_pods(rig: Rig, pods: int, *, kubelet_status: bool = False) -> None:
    """Let nodes run pods: they were bound before."""
    rig.add_namespace(EXISTING)
    make = deployed_pod if kubelet_status else _running
    for first in range(0, pods, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, pods))
        rig.create((make(i, node_name(i % rig.nodes)) for i in numbers), EXISTING)


def _running(i: int, node: str) -> Object:
    return pod(_running_name(i), {"app": f"app-{i % 50}"}, measured=False, nodeName=node)


def _running_name(i: int) -> str:
    return f"running-{i:06d}"


# --- quiet hours ---------------------------------------------------------------------------------


def heartbeat(rig: Rig, i: int) -> None:
    """What a kubelet says of its node all the time."""
    now = _now()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    memory = {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"}
    conditions = [{**condition, "lastHeartbeatTime": now} for condition in (ready, memory)]
    _patch_status(rig, "Node", node_name(i % rig.nodes), conditions=conditions)


def pod_status(pods: int, rig: Rig, i: int) -> None:
    """What a kubelet says of a pod whose container was restarted."""
    now, restarts = _now(), i // pods
    is_ready = restarts % 2 == 1
    condition = {"status": str(is_ready), "lastTransitionTime": now}
    conditions = [{**condition, "type": kind} for kind in ("Ready", "ContainersReady")]
    state = {"running": {"startedAt": now}}
    container = {"name": "main", "image": "i", "imageID": "i", "ready": is_ready, "state": state}
    _patch_status(
        rig,
        "Pod",
        _running_name(i % pods),
        EXISTING,
        phase="Running",
        podIP="10.0.0.1",
        conditions=conditions,
        containerStatuses=[{**container, "restartCount": restarts}],
    )


def _patch_status(rig: Rig, kind: str, name: str, namespace: str = "", **status: object) -> None:
    rig.plane.admin.patch(
        kind,
        name,
        {"status": status},
        namespace,
        subresource="status",
        content_type=STRATEGIC_PATCH,
    )


def quiet_hours(
    rig: Rig, name: str, update: Callable[[Rig, int], None], rate: int, seconds: float, rounds: int
) -> list[Figure]:
    """Shares of a core while so many updates per second go on."""
    found = []
    processes = {scheduler: rig.start(scheduler) for scheduler in SCHEDULERS}
    try:
        for process in processes.values():
            _wait_for_calm(process.pid)
        done = 0
        for _ in range(rounds):
            began = time.monotonic()
            before = {who: cpu_seconds(process.pid) for who, process in processes.items()}
            count = _paced(lambda i: update(rig, i), done, rate, seconds)
            passed = time.monotonic() - began
            done += count
            for who, process in processes.items():
                used = cpu_seconds(process.pid) - before[who]
                note = f"{count / passed:.0f} updates/s, {used / count * 1e6:.0f} us each"
                found.append(_told(Figure(name, who, 100 * used / passed, note), "% of a core"))
    finally:
        for process in processes.values():
            process.stop()
    return found


def _paced(act: Callable[[int], None], first: int, rate: int, seconds: float) -> int:
    """Act so often per second, with rising numbers; how often it was."""
    end = time.monotonic() + seconds

    def work(writer: int) -> int:
        count, due = 0, time.monotonic()
        while (now := time.monotonic()) < end:
            if now < due:
                time.sleep(due - now)
            act(first + writer + count * _WRITERS)
            count += 1
            due = max(due + _WRITERS / rate, now - 1.0)
        return count

    with ThreadPoolExecutor(_WRITERS) as threads:
        return sum(threads.map(work, range(_WRITERS)))


def _wait_for_calm(pid: int) -> None:
    used = -1.0
    while (now := cpu_seconds(pid)) - used > _CALM * 2 or now == 0:
        used = now
        time.sleep(2)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


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
        found += start_up(rig, "first bind, empty nodes (s)", rounds)
        print(f"creating {options.existing:,} running pods", flush=True)
        run_pods(rig, options.existing, kubelet_status=options.kubelet_status)
        found += start_up(rig, f"first bind, {options.existing:,} pods (s)", rounds)
        if options.kubelet_status:
            print(table(found))
            return 0
        updated = partial(pod_status, min(options.existing, _PODS_UPDATED))
        for name, update, rate in (
            ("500 heartbeats/s (% of a core)", heartbeat, 500),
            ("300 pod status updates/s (% of a core)", updated, 300),
        ):
            found += quiet_hours(rig, name, update, rate, seconds, rounds)
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
