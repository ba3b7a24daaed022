"""What was measured, as JSON lines: how it was measured first, then one line for each run.

A line is written as soon as a run is over, so an interrupted benchmark can be continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

SCHEDULERS = ("mooring", "kube")
NAMES = {"mooring": "mooring", "kube": "kube-scheduler"}


class Setup(msgspec.Struct, frozen=True, kw_only=True, tag="setup", tag_field="what"):
    """On what, with what and how it was measured."""

    nodes: int
    pods: int
    rounds: int
    workloads: tuple[str, ...]
    schedulers: tuple[str, ...] = SCHEDULERS
    deadline: float  # seconds for each run
    command: str
    date: str
    machine: dict[str, str]
    versions: dict[str, str]


class Run(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="what"):
    """One scheduler, one workload, once."""

    workload: str
    scheduler: str
    round: int
    asked: int  # pods to be bound
    bound: int  # pods that were
    outcome: str = ""  # empty if all went well, else what happened
    first_bind: float = 0.0  # seconds after the start of the process
    last_bind: float = 0.0  # likewise
    span: float = 0.0  # seconds from the first bind, or the end of the first victim, to the last
    timeline: tuple[float, ...] = ()  # seconds from there to each further 5 % of the binds
    cpu_first: float = 0.0  # seconds of the scheduler, from its start to the first bind
    cpu: float = 0.0  # to the last bind
    cpu_quiet: float = 0.0  # until it had nothing left to do, such as Events
    server_cpu: float = 0.0  # seconds of kube-apiserver and etcd meanwhile, until then
    others: float = 0.0  # share of the machine that programs without a part in this had meanwhile
    peak_memory: float = 0.0  # MB
    events: int = 0  # of the cluster afterwards
    nodes_used: int = 0
    most_on_a_node: int = 0
    took: float = 0.0  # seconds for all of it, with setting up the cluster

    @property
    def key(self) -> tuple[str, str, int]:
        return self.workload, self.scheduler, self.round

    @property
    def is_complete(self) -> bool:
        return self.bound >= self.asked

    @property
    def pods_per_second(self) -> float:
        """Of what was bound, also if not all of it was."""
        return (self.bound - 1) / self.span if self.bound > 1 and self.span > 0 else 0.0

    @property
    def cpu_per_pod(self) -> float:
        """Milliseconds until the last bind."""
        return 1000 * self.cpu / self.bound if self.bound else 0.0

    @property
    def all_cpu_per_pod(self) -> float:
        """Milliseconds, with what was left to do after the last bind."""
        return 1000 * self.cpu_quiet / self.bound if self.bound else 0.0


class RawError(ValueError):
    """A file that is not one of ours, or not all of it."""


_decoder = msgspec.json.Decoder(Setup | Run)


def write(path: Path, line: Setup | Run) -> None:
    """Append a line."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def read(path: Path) -> tuple[Setup, list[Run]]:
    """All of a file; a last line that was cut off by an interruption is left out."""
    lines = path.read_bytes().split(b"\n")
    setup: Setup | None = None
    runs: list[Run] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = _decoder.decode(line)
        except msgspec.MsgspecError as error:
            if number == len(lines):
                break
            raise RawError(f"{path}, line {number}: {error}") from error
        if isinstance(value, Run):
            runs.append(value)
        elif setup is None:
            setup = value
    if setup is None:
        raise RawError(f"{path}: expected a first line that says how it was measured")
    return setup, runs


def mend(path: Path) -> None:
    """Cut off what an interruption left of a last line, so that lines can follow."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)


def plan(setup: Setup) -> Iterator[tuple[str, str, int]]:
    """All runs in their order: who begins changes from round to round."""
    for number in range(1, setup.rounds + 1):
        order: Sequence[str] = setup.schedulers if number % 2 else setup.schedulers[::-1]
        for workload in setup.workloads:
            for scheduler in order:
                yield workload, scheduler, number


def remaining(setup: Setup, runs: Sequence[Run]) -> list[tuple[str, str, int]]:
    """The runs that are still to be made."""
    done = {run.key for run in runs}
    return [key for key in plan(setup) if key not in done]
