"""`mooring evaluate`: would these pods fit, where, and why, in bulk and for scripts."""

from __future__ import annotations

import copy
import gzip
import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import msgspec

from mooring import config as cfg
from mooring.cli.config import file_name, print_problems, read_configuration, registry_with
from mooring.cli.options import CommandOptions
from mooring.errors import ConfigError, Problem, UsageError
from mooring.lens.reading import is_snapshot, read_snapshot
from mooring.lens.snapshot import Snapshot
from mooring.observe import garbage_collection
from mooring.simulator.evaluate import Evaluator

_CHUNK = 100  # lines per task of a process
_AHEAD = 4  # chunks per process read ahead of the output

Answers = tuple[bytes, int, int]  # result lines, how many, how many of them are errors


class EvaluateOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring evaluate` understands."""

    files: Sequence[str]
    config: str | None
    jobs: int
    plugin: Sequence[str]


def run(options: EvaluateOptions) -> int:
    """One line of JSON per scenario; 1 if a file or a scenario could not be read."""
    try:
        worker = _worker(options)
    except ConfigError as error:
        return print_problems(error, "mooring evaluate")
    jobs = options.jobs or os.cpu_count() or 1
    answered = failed = 0
    for file in options.files or ["-"]:
        for text, count, missed in _answers_of(file, worker, jobs):
            sys.stdout.buffer.write(text)
            sys.stdout.flush()
            answered += count
            failed += missed
            if sys.stderr.isatty():
                print(f"\r{answered} scenarios", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"\r{answered} scenarios, {failed} not answered", file=sys.stderr)
    return 1 if failed else 0


def _answers_of(file: str, worker: _Worker, jobs: int) -> Iterator[Answers]:
    """The results of a file; what cannot be read is a line on standard error, and counts as one."""
    try:
        answers = _snapshot_answers if _is_cluster(file) else _scenario_answers
        yield from answers(worker, file, jobs)
    except ConfigError as error:
        print(*error.lines, sep="\n", file=sys.stderr)
        yield b"", 0, 1
    except (OSError, EOFError) as error:
        shown = getattr(error, "strerror", None) or error
        print(f"{file_name(file)}: {shown}", file=sys.stderr)
        yield b"", 0, 1


def _worker(options: EvaluateOptions) -> _Worker:
    if not options.config:
        return _Worker(None, options.plugin)
    if options.config == "-" and "-" in (options.files or ["-"]):
        raise UsageError([Problem("--config -", "standard input has the scenarios already")])
    loaded = read_configuration(options.config, registry_with(options.plugin))
    return _Worker(loaded.config, options.plugin)


class _Worker:
    """Evaluates chunks of lines, in this process or a child."""

    def __init__(
        self, config: cfg.KubeSchedulerConfiguration | None, plugins: Sequence[str]
    ) -> None:
        self.config = config
        self.plugins = tuple(plugins)
        self._evaluator = Evaluator(config, registry=registry_with(plugins))
        self._encoder = msgspec.json.Encoder()
        garbage_collection.freeze_existing_objects()  # each scenario leaves a few cycles behind

    def __reduce__(self) -> tuple[type[_Worker], tuple[object, ...]]:
        return _Worker, (self.config, self.plugins)

    def with_config(self, text: str, name: str) -> _Worker:
        other = copy.copy(self)
        config = cfg.load_text(text, name)
        other._evaluator = Evaluator(config, registry=registry_with(self.plugins))
        return other

    def waiting_pods(self, snapshot: Snapshot) -> Iterator[Answers]:
        for result in self._evaluator.waiting_pods(snapshot.cluster):
            yield self._encoder.encode(result) + b"\n", 1, "error" in result

    def answer(self, chunk: list[bytes], first_line: int) -> Answers:
        text, failed = bytearray(), 0
        for result in self._evaluator.lines(chunk, first_line):
            failed += "error" in result
            text += self._encoder.encode(result)
            text += b"\n"
        return bytes(text), text.count(b"\n"), failed


def _is_cluster(file: str) -> bool:
    """Whether a file is a snapshot or a dump of objects; else it has scenarios."""
    path = Path(file)
    if file == "-" or not path.is_file():
        return False
    if path.suffix in (".yaml", ".yml") or is_snapshot(path):
        return True
    with path.open("rb") as opened:
        return re.match(rb'\s*\{[^{}\[]*"kind"\s*:\s*"', opened.read(1000)) is not None


def _snapshot_answers(worker: _Worker, file: str, jobs: int) -> Iterator[Answers]:
    """One result for each pod that waits."""
    snapshot = read_snapshot(Path(file))
    for note in snapshot.notes:
        print(note, file=sys.stderr)
    if worker.config is None and snapshot.config is not None:
        worker = worker.with_config(json.dumps(snapshot.config), file)
    yield from worker.waiting_pods(snapshot)


def _scenario_answers(worker: _Worker, file: str, jobs: int) -> Iterator[Answers]:
    return _answers(worker, _lines(file), jobs)


def _answers(worker: _Worker, lines: Iterator[bytes], jobs: int) -> Iterator[Answers]:
    """Results in the order of the lines; one chunk or one job needs no child process."""
    chunks = _chunks(lines)
    first = list(islice(chunks, 2))
    if jobs == 1 or len(first) < 2:
        for chunk, line in (*first, *chunks):
            yield worker.answer(chunk, line)
        return
    with ProcessPoolExecutor(jobs, initializer=_start, initargs=(worker,)) as processes:
        under_way: deque[Future[Answers]] = deque()
        for chunk, line in (*first, *chunks):
            under_way.append(processes.submit(_answer, chunk, line))
            if len(under_way) >= jobs * _AHEAD:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _chunks(lines: Iterator[bytes]) -> Iterator[tuple[list[bytes], int]]:
    line = 1
    while chunk := list(islice(lines, _CHUNK)):
        yield chunk, line
        line += len(chunk)


_here: list[_Worker] = []  # the worker of a child process


def _start(worker: _Worker) -> None:
    _here.append(worker)


def _answer(chunk: list[bytes], first_line: int) -> Answers:
    return _here[0].answer(chunk, first_line)


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    with gzip.open(file) if file.endswith(".gz") else open(file, "rb") as source:
        yield from source
