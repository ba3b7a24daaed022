"""Microseconds per pod of the whole scheduler in this process: queue, cycle, cache, binding.

    make bench                     this tree
    make bench AGAINST=HEAD~1      this tree and another commit, turn by turn in one run

Process CPU time is measured, which other load on the machine disturbs less than the wall clock.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Results = dict[str, float]  # "workload @ nodes" -> microseconds per pod


def measure(nodes: int, pods: int) -> Results:
    """One round over all workloads, on a fresh cluster each."""
    from bench.workloads import WORKLOADS, cluster
    from mooring.simulator import Simulation

    results: Results = {}
    for name, make in WORKLOADS.items():
        with Simulation(keep_attempts=False) as sim:
            sim.apply(*cluster(nodes))
            sim.schedule(*(make(i) for i in range(50)))  # columns and caches made on first use
            batch = [make(i) for i in range(50, 50 + pods)]
            sim.apply(*batch)
            gc.collect()
            began = time.process_time()
            sim.settle()
            results[f"{name} @ {nodes}"] = (time.process_time() - began) / pods * 1e6
    return results


def rounds_elsewhere(tree: Path, sizes: list[int], pods: int) -> Results:
    """One round in a process of its own, with the code of `tree`."""
    command = [sys.executable, "-m", "bench.inprocess", "--child", "--pods", str(pods)]
    command += [f"--nodes={size}" for size in sizes]
    env = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    done = subprocess.run(command, cwd=tree, env=env, check=True, text=True, stdout=subprocess.PIPE)
    results: Results = json.loads(done.stdout)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.inprocess", description=__doc__)
    parser.add_argument("--nodes", type=int, action="append", help="default: 500 and 5,000")
    parser.add_argument("--pods", type=int, default=500, help="pods per workload and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", metavar="REV", default="", help="a commit to compare with")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = options.nodes or [500, 5_000]
    if options.child:
        found: Results = {}
        for size in sizes:
            found |= measure(size, options.pods)
        print(json.dumps(found))
        return 0

    with tempfile.TemporaryDirectory(prefix="mooring-bench-") as scratch:
        trees = {"here": ROOT}
        if options.against:
            trees[options.against] = Path(scratch) / "tree"
            _checkout(options.against, trees[options.against])
        samples: dict[str, list[Results]] = {name: [] for name in trees}
        for number in range(options.rounds):
            for name, tree in trees.items():
                print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
                samples[name].append(rounds_elsewhere(tree, sizes, options.pods))
        if options.against:
            _git("worktree", "remove", "--force", str(trees[options.against]))
    _print_table(samples, options.against)
    return 0


def _print_table(samples: dict[str, list[Results]], against: str) -> None:
    print(f"{'workload @ nodes':<26}{'us/pod':>9}{'spread':>15}", end="")
    print(f"{against:>14}{'ratio':>8}" if against else "")
    for key in samples["here"][0]:
        mine = [result[key] for result in samples["here"]]
        spread = f"{min(mine):.0f}-{max(mine):.0f}"
        print(f"{key:<26}{statistics.median(mine):>9.0f}{spread:>15}", end="")
        theirs = [result[key] for result in samples.get(against, []) if key in result]
        if theirs:
            other = statistics.median(theirs)
            print(f"{other:>14.0f}{statistics.median(mine) / other:>8.2f}", end="")
        print()


def _checkout(revision: str, tree: Path) -> None:
    _git("worktree", "add", "--detach", str(tree), revision)


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
