"""Breaks the code in many small ways and runs the tests on each: `python tools/mutants.py FOLDER`.

    python tools/mutants.py src/mooring/decision --tests tests/decision tests/parity --count 300

A mutant is the source with one small change, such as `<=` for `<`. If all tests pass on it, the
mutant survived: a test is missing, or the change makes no difference. The same sources, seed and
count give the same mutants. Run it from the root of the repository; it changes no file there.

The tests run in the order given and stop at the first failure, so name quick ones first. A mutant
whose tests do not end in time counts as caught.

Mutants that behave as the original does are listed in the file of `--known`, one per line:

    file ## kind ## line of source ## line of the mutant ## reason

The JSON of `--survivors` holds the first four fields of such a line as `id`. Known mutants take the
longest, since all tests pass on them: with `--trust-known` they are counted, and not tried, unless
their line is in the file more than once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.mutation.finding import Mutant, find
from tools.mutation.running import SOURCES, Interrupted, Outcome, Signals, Worker, workers
from tools.mutation.sampling import sample

# --- the results ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Results:
    """The outcome of every mutant tried so far; the reasons of the known ones by id."""

    known: Mapping[str, str]
    trusted: int = 0  # known ones that are not tried
    outcomes: list[tuple[Mutant, Outcome]] = field(default_factory=list)

    @property
    def caught(self) -> list[Mutant]:
        return [mutant for mutant, outcome in self.outcomes if outcome != "SURVIVED"]

    @property
    def survived(self) -> list[Mutant]:
        """Those that are not known."""
        return [mutant for mutant in self._survived if mutant.id not in self.known]

    @property
    def same(self) -> list[Mutant]:
        """Those that are known to give the same answers."""
        return [mutant for mutant in self._survived if mutant.id in self.known]

    @property
    def _survived(self) -> list[Mutant]:
        return [mutant for mutant, outcome in self.outcomes if outcome == "SURVIVED"]

    @property
    def stale(self) -> list[str]:
        """Known mutants that the tests notice after all."""
        caught = {mutant.id for mutant in self.caught if mutant.id in self.known}
        return sorted(caught - {mutant.id for mutant in self.same})

    @property
    def percentage(self) -> float:
        """Of those that are not known survivors."""
        counted = len(self.caught) + len(self.survived)
        return 100 * len(self.caught) / counted if counted else 100.0

    def summary(self) -> str:
        late = sum(outcome == "timeout" for _, outcome in self.outcomes)
        return (
            f"{len(self.outcomes) + self.trusted} mutants: {len(self.caught)} caught "
            f"({late} by timeout), {len(self.survived)} survived, "
            f"{len(self.same) + self.trusted} known (same answer): {self.percentage:.1f}% caught"
        )


def read_known(path: Path) -> dict[str, str]:
    """The reasons of the known mutants by id. Raises ValueError."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [part.strip() for part in line.split(" ## ")]
        if len(fields) != 5 or not all(fields):
            form = "file ## kind ## line ## mutant ## reason"
            raise ValueError(f"{path}:{number}: expected {form}")
        found[" ## ".join(fields[:4])] = fields[4]
    return found


def trusted(
    mutants: Iterable[Mutant], known: Mapping[str, str], sources: Mapping[str, bytes]
) -> list[Mutant]:
    """The known ones of these, unless their line is in the file more than once."""
    found = (mutant.id for file, source in sources.items() for mutant in find(file, source))
    places = Counter(found)
    return [mutant for mutant in mutants if mutant.id in known and places[mutant.id] == 1]


def gone(known: Iterable[str], sources: Mapping[str, bytes]) -> list[str]:
    """The known mutants that can no longer be made from the sources."""
    possible = {mutant.id for file, source in sources.items() for mutant in find(file, source)}
    return [
        one
        for one in known
        if one not in possible
        and ((file := one.partition(" ## ")[0]) in sources or not Path(file).exists())
    ]


# --- the command ---------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if enough mutants were caught, 1 if not, 2 if the tests fail without any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, help="files and folders under src/")
    parser.add_argument("--tests", nargs="+", required=True, help="for pytest, quick ones first")
    parser.add_argument("--count", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=1, help="which of them (1)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (1)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run (300)")
    parser.add_argument("--only", action="append", type=Path, help="only this file; repeatable")
    parser.add_argument("--survivors", type=Path, help="write the survivors to this JSON file")
    parser.add_argument("--known", type=Path, help="list of mutants that behave as the original")
    parser.add_argument("--trust-known", action="store_true", help="do not try those of the list")
    parser.add_argument("--at-least", type=float, default=92, help="percentage to catch (92)")
    args = parser.parse_args(arguments)
    try:
        sources = read_sources(args.paths, args.only or [])
        known = read_known(args.known) if args.known else {}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    mutants = sample(sources, args.count, args.seed)
    if len(mutants) < args.count:
        _tell(f"only {len(mutants)} different mutants of {len(sources)} files")
    untried = trusted(mutants, known, sources) if args.trust_known else []
    mutants = [mutant for mutant in mutants if mutant not in untried]
    results = Results(known, len(untried))
    tests = in_order(args.tests)
    signals = Signals()
    interrupted = False
    with signals.caught(), workers(max(args.jobs, 1), tests, args.timeout) as some:
        try:
            if not _is_green(some[0], next(iter(sources)), signals):
                return 2
            for _ in _try_all(mutants, some, results, signals):
                _write_survivors(results, sources, args.survivors)
        except Interrupted:
            interrupted = True
    _report(results, sources)
    if interrupted:
        print(f"interrupted after {len(results.outcomes)} of {len(mutants)} mutants")
        return 130
    return 0 if results.percentage >= args.at_least else 1


def read_sources(paths: Iterable[Path], only: Sequence[Path]) -> dict[str, bytes]:
    """The files by their paths from the root of the repository. Raises ValueError."""
    root = Path.cwd()
    found: dict[str, bytes] = {}
    unmatched = set(only)
    for path in paths:
        if not path.resolve().is_relative_to(root / SOURCES):
            raise ValueError(f"{path} is not under {root / SOURCES}")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            named = {one for one in only if file.match(str(one))}
            unmatched -= named
            if named or not only:
                found[file.resolve().relative_to(root).as_posix()] = file.read_bytes()
    if unmatched or not found:
        raise ValueError("no such file: " + ", ".join(map(str, unmatched or paths)))
    return found


def in_order(tests: Iterable[str]) -> list[str]:
    """The test files, those of folders included, each where it is first named.

    pytest itself would drop a file that is named together with its folder.
    """
    files: dict[str, None] = {}
    for test in tests:
        inside = sorted(map(str, Path(test).rglob("test_*.py"))) if Path(test).is_dir() else []
        files.update(dict.fromkeys(inside or [test]))
    return list(files)


def _is_green(worker: Worker, file: str, signals: Signals) -> bool:
    """Whether the tests pass on the sources as they are, by the way that mutants take."""
    if not worker.imports(file):
        _tell(f"{file} is not imported from the copy of the sources that the mutants are made in")
        return False
    worker.start(None)
    while (outcome := worker.ended()) is None:
        signals.sleep()
    seconds = worker.seconds
    if outcome != "SURVIVED":
        _tell(worker.output)
        what = "do not end in time" if outcome == "timeout" else "fail"
        _tell(f"the tests {what} without any mutant; output above")
        return False
    _tell(f"without any mutant the tests pass in {seconds:.1f}s")
    if seconds * 2 > worker.timeout:
        _tell("a run that is only slow may count as caught: raise --timeout")
    return True


def _try_all(
    mutants: Sequence[Mutant], workers: Sequence[Worker], results: Results, signals: Signals
) -> Iterator[None]:
    """Run the tests on every mutant, one per worker at a time; yields after each.

    Raises Interrupted.
    """
    waiting = iter(mutants)
    free, busy = list(workers), list[Worker]()
    while True:
        while free and (mutant := next(waiting, None)) is not None:
            free[-1].start(mutant)
            busy.append(free.pop())
        if not busy:
            return
        signals.sleep()
        for worker in list(busy):
            if (outcome := worker.ended()) is not None:
                assert worker.mutant is not None
                results.outcomes.append((worker.mutant, outcome))
                _tell_progress(results, len(mutants), worker.seconds)
                busy.remove(worker)
                free.append(worker)
                yield


def _tell_progress(results: Results, total: int, seconds: float) -> None:
    mutant, outcome = results.outcomes[-1]
    known = " (known)" if outcome == "SURVIVED" and mutant.id in results.known else ""
    number = f"{len(results.outcomes):>{len(str(total))}}/{total}"
    _tell(f"{number} {mutant.file}:{mutant.line} {mutant.kind} {outcome}{known} {seconds:.1f}s")


def _report(results: Results, sources: Mapping[str, bytes]) -> None:
    for mutant in _in_order_of_lines(results.survived):
        print(f"\nSURVIVED {mutant.file}:{mutant.line} {mutant.kind}")
        print(mutant.diff(sources[mutant.file]), end="")
    for one in results.stale:
        print(f"\nknown, but caught: remove it from the list\n{one}")
    for one in gone(results.known, sources):
        print(f"\nknown, but no longer in the source: remove it from the list\n{one}")
    print(f"\n{results.summary()}")


def _write_survivors(results: Results, sources: Mapping[str, bytes], path: Path | None) -> None:
    """After every mutant: a run that takes an hour may be ended from outside."""
    if path is None:
        return
    found = [
        {
            "file": mutant.file,
            "line": mutant.line,
            "kind": mutant.kind,
            "id": mutant.id,
            "diff": mutant.diff(sources[mutant.file]),
        }
        for mutant in _in_order_of_lines(results.survived)
    ]
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _in_order_of_lines(mutants: Iterable[Mutant]) -> list[Mutant]:
    return sorted(mutants, key=lambda mutant: (mutant.file, mutant.start))


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
