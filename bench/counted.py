"""The part of `bench.instructions` that runs under valgrind, with the mooring of any tree.

    valgrind --tool=cachegrind --cachegrind-out-file=counts.%p python bench/counted.py 500 400 basic

The nodes are added once; each workload continues from there in a process of its own, made by
`fork`. To read the counts of a moment, a process is forked that ends at once: valgrind writes what
had been counted until then to the file of that process.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

FEW = 200  # pods after the warm-up that are not counted


def main(nodes: int, pods: int, names: list[str]) -> None:
    """Print one JSON line per workload: its name, the processes whose counts to compare, and pods.

    A workload may have fewer pods than asked for, if there are too few nodes for them.
    """
    # Not at the top: without them a test under valgrind takes a second.
    from bench.inprocess import WARM_UP
    from bench.workloads import WORKLOADS, cluster
    from mooring.simulator import Simulation

    gc.set_threshold(50_000)  # this, and to freeze what is there, as `mooring run` does
    with Simulation(keep_attempts=False) as sim:
        _record(sim, os.environ.get("MOORING_BENCH_RECORD", ""))
        sim.apply(*cluster(nodes))
        for name in names:
            child = os.fork()
            if not child:
                _run(sim, WORKLOADS[name], name, WARM_UP + FEW, pods, nodes)
            _, status = os.waitpid(child, 0)
            if status:
                raise SystemExit(
                    f"{name}: the process ended with {os.waitstatus_to_exitcode(status)}"
                )


def _record(sim: Any, how: str) -> None:
    """Keep a record of the attempts: "on", or with "margins"; few as objects, so that many fold."""
    if how:
        from mooring.lens import record

        record.NEWEST = 128  # type: ignore[misc]
        sim.scheduler.ledger = record.DecisionRecord(sim.clock.now, margins=how == "margins")


def _run(sim: Any, make: Any, name: str, before: int, pods: int, nodes: int) -> None:
    settle = type(sim).settle
    # Other trees may have functions only.
    if hasattr(make, "prepare"):
        pods = min(pods, make.at_most(nodes) - before)
        make.prepare(sim, nodes, before + pods)
        settle = make.settle
    sim.apply(*(make(i) for i in range(before)))
    settle(sim)
    counted = [make(i) for i in range(before, before + pods)]
    marks = [mark()]
    sim.apply(*counted)
    marks.append(mark())
    gc.collect()
    gc.freeze()
    marks.append(mark())
    settle(sim)
    marks.append(mark())
    print(json.dumps([name, marks, pods]), flush=True)
    os._exit(0)


def mark() -> int:
    """The id of a process that has counted what this one has counted until now."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return child


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
