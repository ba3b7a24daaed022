"""Instructions per pod of the whole scheduler, counted by valgrind.

    make bench INSTRUCTIONS=1                     this tree
    make bench INSTRUCTIONS=1 AGAINST=HEAD~1      this tree and another commit
    python -m bench.inprocess --instructions --nodes 500 --workload basic --workload mixed

A count does not depend on the load of the machine, so a change of one percent can be seen. It says
nothing about cache misses: `bench.inprocess` without `--instructions` measures time.

Each process under valgrind is counted as a whole. Set-up is subtracted: `bench.inprocess --child`
runs each workload twice, with `FEW` pods after the warm-up and with more, and the difference is
divided by the difference of the pods. The cost of building the pods is measured the same way, in
processes that only build them, and subtracted as well. What remains is the cost of receiving a
pod, queueing, deciding and binding it.

Each tree is measured with its own `bench/`, and only by what `bench/` has offered since commit
3db2a99: the `--child` mode and the names `WORKLOADS` and `WARM_UP`. A workload that the other tree
does not have is shown without a ratio.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from bench.goals import multiples
from bench.trees import HERE, trees

FEW = 200  # pods of the shorter run, after the warm-up
PODS = 400  # further pods of the longer run: those that are counted
Results = dict[str, float]  # "workload @ nodes" -> thousand instructions per pod

_VALGRIND = ("valgrind", "--quiet", "--tool=cachegrind", "--cache-sim=no", "--vgdb=no")
_REPEATABLE = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
_LIST = "import json, bench.workloads as w; print(json.dumps(list(w.WORKLOADS)))"
_BUILD = """
import gc, sys
from bench.inprocess import WARM_UP
from bench.workloads import WORKLOADS
gc.set_threshold(50_000)  # as the benchmark does
make = WORKLOADS[sys.argv[1]]
pods = [make(i) for i in range(WARM_UP + int(sys.argv[2]))]
"""


class CountError(Exception):
    """Instructions cannot be counted."""


class Process(NamedTuple):
    """One process to count; `nodes` is None for a process that only builds the pods."""

    tree: str
    workload: str
    nodes: int | None
    pods: int

    @property
    def words(self) -> list[str]:
        """The arguments of the interpreter."""
        if self.nodes is None:
            return ["-c", _BUILD, self.workload, str(self.pods)]
        asked = [f"--pods={self.pods}", f"--nodes={self.nodes}", f"--workload={self.workload}"]
        return ["-m", "bench.inprocess", "--child", *asked]

    def __str__(self) -> str:
        where = "pods built" if self.nodes is None else f"@ {self.nodes}"
        return f"{self.tree}: {self.workload} {where}, {self.pods} pods"


Counts = Mapping[Process, int]


def run(
    names: Sequence[str], sizes: Sequence[int], *, against: str = "", pods: int = PODS, jobs: int
) -> list[str]:
    """Count these workloads, `jobs` processes at a time; the lines to print."""
    if shutil.which(_VALGRIND[0]) is None:
        raise CountError("valgrind is not installed or not in PATH; it counts the instructions")
    with trees(against) as paths:
        known = {name: prepared(path) for name, path in paths.items()}
        processes = plan(known, names, sizes, pods)
        counts = count_all(processes, paths, jobs)
    found = {name: per_pod(counts, processes, name, pods) for name in paths}
    return table(found[HERE], found.get(against), against)


# --- counting ------------------------------------------------------------------------------------


def prepared(tree: Path) -> list[str]:
    """The workloads that a tree has; its bytecode is compiled, so that no count includes that."""
    _python(tree, "-m", "compileall", "-q", "src", "bench")
    workloads: list[str] = json.loads(_python(tree, "-c", _LIST))
    return workloads


def plan(
    known: Mapping[str, Sequence[str]], names: Sequence[str], sizes: Sequence[int], pods: int
) -> list[Process]:
    """The processes to count: of each tree, for the workloads that it has."""
    return [
        Process(tree, name, nodes, count)
        for name in names
        for nodes in (None, *sizes)
        for tree, workloads in known.items()
        if name in workloads
        for count in (FEW, FEW + pods)
    ]


def count_all(
    processes: Sequence[Process], paths: Mapping[str, Path], jobs: int
) -> dict[Process, int]:
    """Count them, `jobs` at a time, with a line of progress on stderr for each."""
    counts: dict[Process, int] = {}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(count, paths[each.tree], each.words): each for each in processes}
        try:
            for done in as_completed(running):
                process = running[done]
                try:
                    counts[process] = done.result()
                except CountError as error:
                    raise CountError(f"{process}: {error}") from None
                told = f"{len(counts)} of {len(processes)}: {process}"
                print(f"{told}: {counts[process] / 1e6:,.0f} million instructions", file=sys.stderr)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return counts


def count(tree: Path, words: Sequence[str]) -> int:
    """The instructions of one Python process with the mooring and the bench of `tree`."""
    with tempfile.TemporaryDirectory(prefix="mooring-instructions-") as scratch:
        out = Path(scratch) / "cachegrind.out"
        _python(tree, *words, under=(*_VALGRIND, f"--cachegrind-out-file={out}"))
        if not out.exists():
            raise CountError("valgrind wrote no counts")
        last = out.read_text(encoding="utf-8", errors="replace").splitlines()[-1]
    title, _, number = last.partition(":")
    if title != "summary":
        raise CountError(f"the counts of valgrind end with {last!r} instead of a summary")
    return int(number)


def _python(tree: Path, *words: str, under: Sequence[str] = ()) -> str:
    env = {**os.environ, **_REPEATABLE, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [*under, sys.executable, *words], cwd=tree, env=env, text=True, capture_output=True
    )
    if done.returncode:
        raise CountError(f"the process ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


# --- reading the counts --------------------------------------------------------------------------


def per_pod(counts: Counts, processes: Sequence[Process], tree: str, pods: int) -> Results:
    """Thousand instructions per pod of one tree, without set-up and without building the pods."""

    def between(workload: str, nodes: int | None) -> int:
        few, many = (Process(tree, workload, nodes, number) for number in (FEW, FEW + pods))
        return counts[many] - counts[few]

    return {
        f"{each.workload} @ {each.nodes}": (
            (between(each.workload, each.nodes) - between(each.workload, None)) / pods / 1e3
        )
        for each in processes
        if each.tree == tree and each.nodes is not None
    }


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
