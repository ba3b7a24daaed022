"""Instructions per pod of the whole scheduler, counted by valgrind.

    make bench INSTRUCTIONS=1                     this tree
    make bench INSTRUCTIONS=1 AGAINST=HEAD~1      this tree and another commit
    python -m bench.inprocess --instructions --nodes 500 --workload basic --workload mixed

A count does not depend on the load of the machine, so a change of one percent can be seen. It says
nothing about cache misses: `bench.inprocess` without `--instructions` measures time. Counts of two
machines differ: numpy chooses its code by the processor.

One process per tree and number of nodes runs `bench/counted.py` under valgrind: it adds the nodes
once and forks a process per workload. Counted is what happens between the moments when pods, built
already, are given to the cluster, and when all of them are placed: receiving a pod, queueing,
deciding and binding it. The first pods of a workload are not counted.

Each tree is measured with its own workloads, and only by what it has offered since commit 3db2a99:
`WORKLOADS` and `cluster` of `bench.workloads`, `WARM_UP` of `bench.inprocess`, and `Simulation`. A
workload that the other tree does not have is shown without a ratio.

Noise: with a fixed hash seed and one OpenBLAS thread, repeated runs of one tree on a busy machine
differed by less than 0.05 %, and the same commit in another folder by 0.1 to 0.2 %. With as many
OpenBLAS threads as cores, repeated runs differed by 1 to 2 %.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.goals import multiples
from bench.trees import HERE, ROOT, trees

PODS = 400  # counted, of each workload
Results = dict[str, float]  # "workload @ nodes" -> thousand instructions per pod

_VALGRIND = ("valgrind", "--quiet", "--tool=cachegrind", "--cache-sim=no", "--vgdb=no")
_REPEATABLE = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
_COUNTED = ROOT / "bench" / "counted.py"
_LIST = "import json, bench.workloads as w; print(json.dumps(list(w.WORKLOADS)))"


class CountError(Exception):
    """Instructions cannot be counted."""


class Process(NamedTuple):
    """One process to count: these workloads of a tree, on so many nodes."""

    tree: str
    path: Path
    nodes: int
    workloads: tuple[str, ...]


def run(
    names: Sequence[str], sizes: Sequence[int], *, against: str = "", pods: int = PODS, jobs: int
) -> list[str]:
    """Count these workloads, `jobs` processes at a time; the lines to print."""
    if shutil.which(_VALGRIND[0]) is None:
        raise CountError("valgrind is not installed or not in PATH; it counts the instructions")
    found: dict[str, Results] = {}
    with trees(against) as paths, ThreadPoolExecutor(jobs) as pool:
        processes = plan(paths, names, sizes)
        try:
            counts = pool.map(lambda process: count(process, pods), processes)
            for process, counted in zip(processes, counts, strict=True):
                found.setdefault(process.tree, {}).update(counted)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return table(found[HERE], found.get(against), against)


def plan(paths: Mapping[str, Path], names: Sequence[str], sizes: Sequence[int]) -> list[Process]:
    """The processes to count: of each tree, with those of the workloads that it has."""
    known = {tree: prepared(path) for tree, path in paths.items()}
    return [
        Process(tree, path, nodes, tuple(name for name in names if name in known[tree]))
        for nodes in sizes
        for tree, path in paths.items()
    ]


# --- counting ------------------------------------------------------------------------------------


def prepared(tree: Path) -> list[str]:
    """The workloads that a tree has; its bytecode is compiled, so that no count includes that."""
    python = [sys.executable]
    _complete([*python, "-m", "compileall", "-q", "src", "bench"], tree)
    workloads: list[str] = json.loads(_complete([*python, "-c", _LIST], tree))
    return workloads


def count(process: Process, pods: int) -> Results:
    """Thousand instructions per pod of each workload, with a line of progress on stderr."""
    tree, path, nodes, workloads = process
    found: Results = {}
    with tempfile.TemporaryDirectory(prefix="mooring-instructions-") as scratch:
        out = Path(scratch) / "counts"
        command = [*_VALGRIND, f"--cachegrind-out-file={out}.%p", sys.executable, str(_COUNTED)]
        try:
            lines = _complete([*command, str(nodes), str(pods), *workloads], path).splitlines()
            for workload, moments, counted in map(json.loads, lines):
                first, applied, ready, last = (read(Path(f"{out}.{each}")) for each in moments)
                key = f"{workload} @ {nodes}"
                found[key] = (applied - first + last - ready) / counted / 1e3
                print(f"{tree}: {key}: {found[key]:.1f}", file=sys.stderr)
        except CountError as error:
            raise CountError(f"{tree} @ {nodes}: {error}") from None
    return found


def read(counts: Path) -> int:
    """The instructions that a process had counted when it ended."""
    if not counts.exists():
        raise CountError("valgrind wrote no counts")
    last = counts.read_text(encoding="utf-8", errors="replace").splitlines()[-1]
    title, _, number = last.partition(":")
    if title != "summary":
        raise CountError(f"the counts of valgrind end with {last!r} instead of a summary")
    return int(number)


def _complete(command: Sequence[str], tree: Path) -> str:
    """What a command prints, run with the mooring and the bench of a tree."""
    env = {**os.environ, **_REPEATABLE, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    done = subprocess.run(command, cwd=tree, env=env, text=True, capture_output=True)
    if done.returncode:
        raise CountError(f"the process ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


# --- showing the counts --------------------------------------------------------------------------


def table(here: Results, there: Results | None = None, against: str = "") -> list[str]:
    """The lines to print: each workload and size, multiples of basic, and the worst ratio."""
    other = f"{against[:12]:>14}{'ratio':>8}" if there is not None else ""
    lines = [f"{'workload @ nodes':<34}{'1000 instr/pod':>15}{other}"]
    ratios: dict[str, float] = {}
    for key, mine in here.items():
        line = f"{key:<34}{mine:>15.1f}"
        if there is not None and key in there:
            ratios[key] = mine / there[key]
            line += f"{there[key]:>14.1f}{ratios[key]:>8.3f}"
        lines.append(line)
    lines += multiples(here)
    if ratios:
        worst = max(ratios, key=lambda key: ratios[key])
        lines += ["", f"worst ratio: {ratios[worst]:.3f}, {worst}"]
    return lines
