"""Microseconds per pod of the whole scheduler in this process: queue, cycle, cache, binding.

    make bench                     this tree
    make bench AGAINST=HEAD~1      this tree and another commit, turn by turn in one run
    make bench INSTRUCTIONS=1      instructions instead of microseconds: see bench.instructions
    python -m bench.inprocess --nodes 5000 --workload spread --workload mixed

Process CPU time is measured, which other load on the machine disturbs less than the wall clock.
The same benchmark measures both trees.

100 pods are scheduled before the clock starts. In most workloads these are pods of every class.
Other workloads go on with pods that differ from all pods before: every pod of "indexed job", both
"statefulset" workloads and "index label + spread" has a label value of its own, every pod of
"distinct requests" its own requests, and every pod of "own affinity" its own rule; "1000 classes"
and "realistic mix" have more labels than the warm-up has pods.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import mooring.framework as fw
from bench import instructions
from bench.goals import multiples
from bench.plugins import CONFIG, PLUGINS
from bench.trees import HERE, ROOT, trees
from bench.workloads import CLASSES, WORKLOADS, Shaped, basic, cluster
from mooring.framework.plugin import Base
from mooring.simulator import Simulation

SIZES = [500, 5_000, 15_000]
PODS = 1_000  # of each workload and round
PLUGIN = "user plugin"  # the workload that compares forms of a plugin instead of kinds of pods
PLUGIN_NODES = 5_000
WARM_UP = CLASSES  # pods: columns and classes are made on first use
Results = dict[str, float]  # "workload @ nodes" -> microseconds per pod


# --- one round -----------------------------------------------------------------------------------


def measure(names: Sequence[str], nodes: int, pods: int) -> Results:
    """One round over these workloads, on a fresh cluster each."""
    found = {name: cost(WORKLOADS[name], nodes, pods) for name in names if name in WORKLOADS}
    if PLUGIN in names and nodes == PLUGIN_NODES:
        for form, plugin in PLUGINS.items():
            few = pods if form != "per node, no depends_on" else max(pods // 20, 1)  # it is slow
            found[form] = cost(basic, nodes, few, plugin)
    return {f"{name} @ {nodes}": each for name, each in found.items()}


def cost(
    make: Callable[[int], fw.Pod], nodes: int, pods: int, plugin: type[Base] | None = None
) -> float:
    """Microseconds per pod."""
    gc.set_threshold(50_000)  # this, and to freeze what is there, as `mooring run` does
    plugins, config = ([plugin], CONFIG) if plugin is not None else ([], None)
    with Simulation(keep_attempts=False, plugins=plugins, config=config) as sim:
        sim.apply(*cluster(nodes))
        settle: Callable[[Simulation], None] = Simulation.settle
        if isinstance(make, Shaped):
            pods = min(pods, make.at_most(nodes) - WARM_UP)
            make.prepare(sim, nodes, WARM_UP + pods)
            settle = make.settle
        sim.apply(*(make(i) for i in range(WARM_UP)))
        settle(sim)
        sim.apply(*(make(i) for i in range(WARM_UP, WARM_UP + pods)))
        gc.collect()
        gc.freeze()
        began = time.process_time()
        settle(sim)
        spent = time.process_time() - began
    gc.unfreeze()
    return spent / pods * 1e6


def measure_elsewhere(tree: Path, names: Sequence[str], sizes: list[int], pods: int) -> Results:
    """One round in a process of its own, with the mooring of `tree`."""
    command = [sys.executable, "-m", "bench.inprocess", "--child", "--pods", str(pods)]
    command += [f"--nodes={size}" for size in sizes] + [f"--workload={name}" for name in names]
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, text=True, stdout=subprocess.PIPE)
    results: Results = json.loads(done.stdout)
    return results


# --- all of it -----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    known = [*WORKLOADS, PLUGIN]
    parser = argparse.ArgumentParser(prog="bench.inprocess", description=__doc__)
    parser.add_argument(
        "--nodes", type=int, action="append", help=f"may be repeated (default {SIZES})"
    )
    parser.add_argument(
        "--pods",
        type=int,
        help=f"pods per workload and round (default {PODS}); with --instructions, the number of"
        f" pods counted (default {instructions.PODS})",
    )
    parser.add_argument("--workload", choices=known, action="append", help="may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="not used with --instructions")
    parser.add_argument("--against", metavar="REV", default="", help="a commit to compare with")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions; needs valgrind"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes counted at a time with --instructions"
    )
    parser.add_argument(
        "--record",
        choices=("on", "margins"),
        help="with --instructions: keep a record of the attempts, as `mooring run` does",
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    sizes, pods = options.nodes or SIZES, options.pods or PODS
    os.environ["MOORING_BENCH_RECORD"] = options.record or ""
    if options.instructions:
        if PLUGIN in (options.workload or ()):
            parser.error(f"--instructions cannot count {PLUGIN!r}: one process runs all its forms")
        return count_instructions(options.workload or [*WORKLOADS], sizes, options)
    names = options.workload or known
    if options.child:
        found: Results = {}
        for size in sizes:
            found |= measure(names, size, pods)
        print(json.dumps(found))
        return 0

    with trees(options.against) as found_trees:
        samples: dict[str, list[Results]] = {name: [] for name in found_trees}
        for number in range(options.rounds):
            for name, tree in found_trees.items():
                print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
                samples[name].append(measure_elsewhere(tree, names, sizes, pods))
    print("\n".join(table(samples, options.against)))
    return 0


def count_instructions(
    names: Sequence[str], sizes: Sequence[int], options: argparse.Namespace
) -> int:
    try:
        lines = instructions.run(
            names,
            sizes,
            against=options.against,
            pods=options.pods or instructions.PODS,
            jobs=options.jobs,
        )
    except instructions.CountError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def table(samples: dict[str, list[Results]], against: str = "") -> list[str]:
    """The lines to print: medians and their spread, then what they say together."""
    other = f"{against:>14}{'ratio':>8}" if against else ""
    lines = [f"{'workload @ nodes':<34}{'us/pod':>9}{'spread':>15}{'pods/s':>9}{other}"]
    medians = {key: _median(samples[HERE], key) for key in samples[HERE][0]}
    for key, median in medians.items():
        mine = [result[key] for result in samples[HERE]]
        spread = f"{min(mine):.0f}-{max(mine):.0f}"
        line = f"{key:<34}{median:>9.0f}{spread:>15}{1e6 / median:>9.0f}"
        if any(key in result for result in samples.get(against, [])):
            theirs = _median(samples[against], key)
            line += f"{theirs:>14.0f}{median / theirs:>8.2f}"
        lines.append(line)
    return lines + growth(medians) + multiples(medians) + prices(medians)


def growth(medians: Results) -> list[str]:
    """How much more a pod costs on the largest cluster than on the smallest."""
    sizes = sorted({int(key.partition(" @ ")[2]) for key in medians})
    lines: list[str] = []
    for name in WORKLOADS:
        small, large = (medians.get(f"{name} @ {size}") for size in (sizes[0], sizes[-1]))
        if small and large and len(sizes) > 1:
            lines.append(f"{name:<34}{large / small:>8.2f}x")
    return ["", f"cost per pod, {sizes[-1]} nodes to {sizes[0]}", *lines] if lines else []


def prices(medians: Results) -> list[str]:
    """What the forms of a user's plugin take away from the throughput without one."""
    plain = medians.get(f"no plugin @ {PLUGIN_NODES}")
    if plain is None:
        return []
    lines = ["", f"throughput with a user's plugin, basic @ {PLUGIN_NODES}"]
    for form in PLUGINS:
        cost_of_form = medians[f"{form} @ {PLUGIN_NODES}"]
        lines.append(f"{form:<34}{100 * plain / cost_of_form:>8.0f}%")
    return lines


def _median(results: list[Results], key: str) -> float:
    return statistics.median(result[key] for result in results if key in result)


if __name__ == "__main__":
    sys.exit(main())
