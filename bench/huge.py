"""A cluster larger than any: does it complete, how long does it take, how large do we become.

    python -m bench.huge --nodes 100000 --pods 500000

In process, on virtual time. Pods come in batches, share all they have in common, and what a local
cluster only remembers for tests is thrown away, so that the memory shown is the scheduler's and
that of one object per pod and node. Takes minutes.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

import mooring.framework as fw
from bench.workloads import CLASSES, WORKLOADS, cluster
from mooring.api import core
from mooring.simulator import Simulation


def light_pods(make: Callable[[int], fw.Pod], count: int) -> Iterator[core.Pod]:
    """Pods of which only the names are their own."""
    patterns = [make(number).api for number in range(min(count, CLASSES))]
    for number in range(count):
        pattern = patterns[number % len(patterns)]
        meta = msgspec.structs.replace(pattern.metadata, name=f"p{number}", uid="")
        yield msgspec.structs.replace(pattern, metadata=meta)


def megabytes() -> float:
    """The most this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Clock:
    """Prints what was done since the line before."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        print(f"{'':<28}{'wall s':>9}{'cpu s':>9}{'us/pod':>9}{'MB':>8}", flush=True)

    def line(self, what: str, per_pod: float | None = None) -> None:
        wall, cpu = time.perf_counter() - self._began, time.process_time()
        each = f"{per_pod:.0f}" if per_pod is not None else ""
        print(f"{what:<28}{wall:>9.1f}{cpu:>9.1f}{each:>9}{megabytes():>8.0f}", flush=True)


def run(nodes: int, pods: int, batch: int, workload: str) -> int:
    """Schedule them all; how many found no node."""
    clock = Clock()
    bound = 0
    with Simulation(keep_attempts=False) as sim:
        for first in range(0, nodes, batch):
            sim.apply(*cluster(min(batch, nodes - first), first))
        sim.settle()
        gc.collect()
        gc.freeze()  # as `mooring run` does once it knows the cluster
        clock.line(f"{nodes:,} nodes")
        coming = light_pods(WORKLOADS[workload], pods)
        steps = 10
        for done in range(1, steps + 1):
            share = pods * done // steps - pods * (done - 1) // steps
            before = time.process_time()
            for size in _parts(share, batch):
                sim.schedule(*islice(coming, size))
                bound += len(sim.cluster.bindings)
                sim.cluster.bindings.clear()
                sim.cluster.events.clear()
            spent = time.process_time() - before
            clock.line(f"{bound:,} pods bound", spent / max(share, 1) * 1e6)
    gc.unfreeze()
    return pods - bound


def _parts(count: int, size: int) -> Iterator[int]:
    for first in range(0, count, size):
        yield min(size, count - first)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.huge", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--pods", type=int, default=500_000)
    parser.add_argument("--batch", type=int, default=5_000, help="objects created at a time")
    parser.add_argument("--workload", choices=WORKLOADS, default="basic")
    options = parser.parse_args(arguments)
    left = run(options.nodes, options.pods, options.batch, options.workload)
    if left:
        print(f"{left:,} pods found no node")
    return 0


if __name__ == "__main__":
    sys.exit(main())
