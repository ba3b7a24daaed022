"""`make parity-fuzz`: random scenarios, decided by kube-scheduler's own code and by ours.

Prints how many differ in each family and, for every way of differing, the smallest scenario that
shows it; those are written to a folder outside the tree as lines that `tests/parity` could replay.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.golang import cache_folder
from tests.oracle.compare import differences
from tests.oracle.generate import generate, line
from tests.oracle.oracle import Oracle, OracleError, Result
from tests.oracle.reduce import Reducer
from tests.oracle.scenarios.dice import Object
from tests.oracle.scenarios.families import FAMILIES

_BATCH = 200
_REPEATS = 8  # how often a doubtful question is put again


def ours(scenarios: Iterable[Object]) -> Iterator[Result]:
    """Our answers; the only place that knows how they are got."""
    from mooring.simulator.evaluate import Evaluator

    evaluator = Evaluator()
    for scenario in scenarios:
        try:
            yield next(iter(evaluator.lines([line(scenario)])))
        except Exception as accident:
            # A crash is a difference like any other, and is reduced like any other.
            yield {"error": f"{type(accident).__name__}: {accident}"}


class Finding(NamedTuple):
    """A scenario that the two sides answer differently, and how."""

    scenario: Object
    found: list[str]

    @property
    def way(self) -> str:
        return signature(self.found[0], self.scenario)


class Fuzz:
    """One run: compares, sorts the differences by their kind and reduces one of each."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.asked: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.seconds = {"oracle": 0.0, "ours": 0.0}

    def run(self, scenarios: Iterable[Object]) -> None:
        scenarios = iter(scenarios)
        while batch := list(islice(scenarios, _BATCH)):
            for scenario, expected, got in self._both(batch):
                self.asked[scenario["family"]] += 1
                found = differences(expected, got)
                if not found:
                    continue
                if self._kube_wavers(scenario, got):
                    self.undecided[scenario["family"]] += 1
                else:
                    self.findings.append(Finding(scenario, found))

    def _both(self, batch: Sequence[Object]) -> Iterator[tuple[Object, Result, Result]]:
        start = time.perf_counter()
        expected = list(self._oracle.answers(batch))
        middle = time.perf_counter()
        got = list(ours(batch))
        self.seconds["oracle"] += middle - start
        self.seconds["ours"] += time.perf_counter() - middle
        return zip(batch, expected, got, strict=True)

    def _kube_wavers(self, scenario: Object, got: Result) -> bool:
        """kube-scheduler walks Go maps: asked again, it may well say what we said."""
        again = list(self._oracle.answers([scenario] * _REPEATS))
        return any(not differences(expected, got) for expected in again)

    def ways(self) -> dict[str, list[Finding]]:
        """The findings by their kind, most frequent first."""
        grouped: dict[str, list[Finding]] = {}
        for finding in self.findings:
            grouped.setdefault(finding.way, []).append(finding)
        return dict(sorted(grouped.items(), key=lambda item: -len(item[1])))

    def smallest(self, findings: Sequence[Finding]) -> Object:
        """The smallest scenario that differs in the way of these, with kube-scheduler's answer."""
        start = min(findings, key=lambda finding: len(line(finding.scenario)))
        way = start.way

        def still_differs(scenario: Object) -> bool:
            ((_, expected, got),) = self._both([scenario])
            return any(signature(text, scenario) == way for text in differences(expected, got))

        reduced = Reducer(still_differs).reduce(start.scenario)
        expected = self._oracle.answer(reduced)
        return {**reduced, "expect": {k: v for k, v in expected.items() if k != "id"}}


def signature(difference: str, scenario: Object) -> str:
    """The difference without names of nodes and pods and without numbers: its kind."""
    cluster = scenario["cluster"]
    named = [item["metadata"]["name"] for kind in ("nodes", "pods") for item in cluster[kind]]
    if named:
        longest_first = sorted(set(named), key=len, reverse=True)
        difference = re.sub("|".join(map(re.escape, longest_first)), "*", difference)
    return re.sub(r"\d+", "#", difference)


def recorded(path: Path) -> Iterator[Object]:
    """The scenarios of a file of lines, packed or not."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        yield from map(json.loads, lines)


def report(fuzz: Fuzz, folder: Path, most: int) -> None:
    """Print the table and the ways; write the smallest scenario of each."""
    differing = Counter(finding.scenario["family"] for finding in fuzz.findings)
    print(f"{'family':14}{'scenarios':>10}{'differ':>8}{'undecided':>11}")
    for family, asked in fuzz.asked.items():
        print(f"{family:14}{asked:>10}{differing[family]:>8}{fuzz.undecided[family]:>11}")
    total = sum(fuzz.asked.values())
    print(f"{'all':14}{total:>10}{differing.total():>8}{fuzz.undecided.total():>11}")
    print(f"kube-scheduler {fuzz.seconds['oracle']:.1f} s, ours {fuzz.seconds['ours']:.1f} s")
    if fuzz.undecided:
        print("undecided: kube-scheduler itself gives several answers, ours is one of them")
    ways = fuzz.ways()
    for number, findings in enumerate(islice(ways.values(), most), start=1):
        smallest = fuzz.smallest(findings)
        cluster = smallest["cluster"]
        (got,) = ours([smallest])
        print(f"\n{number}. {len(findings)} scenarios, such as {findings[0].scenario['id']}:")
        print(f"   {findings[0].found[0]}")
        for text in differences(smallest["expect"], got)[:3]:
            print(f"   smallest: {text}")
        path = folder / f"{number:02}-{smallest['id']}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(line(smallest) + "\n")
        print(f"   {path} ({len(cluster['nodes'])} nodes, {len(cluster['pods'])} pods)")
    if len(ways) > most:
        print(f"\n{len(ways) - most} more ways of differing are not reduced; see --ways")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all answers agree, 1 when some differ, 2 when there is nobody to ask."""
    parser = argparse.ArgumentParser(description="Compare random decisions with kube-scheduler's.")
    parser.add_argument("--n", type=int, default=2000, help="how many scenarios (default 2000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--family", choices=list(FAMILIES), help="default: all in turn")
    parser.add_argument("--ways", type=int, default=10, help="reduce so many kinds (default 10)")
    parser.add_argument("--replay", type=Path, help="the scenarios of this file instead")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # odd profiles are the point; a crash is in the answer
    try:
        with Oracle() as oracle:
            fuzz = Fuzz(oracle)
            if options.replay:
                fuzz.run(recorded(options.replay))
            else:
                fuzz.run(generate(options.n, options.seed, options.family))
            folder = cache_folder() / "parity" / f"seed-{options.seed}"
            report(fuzz, folder, options.ways)
    except OracleError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if fuzz.findings else 0


if __name__ == "__main__":
    sys.exit(main())
