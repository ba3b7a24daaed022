"""A scenario: one pod, one frozen cluster and a profile, as one line of JSON.

The format is that of the recorded decisions of kube-scheduler: recordings, generated scenarios and
snapshots of real clusters are read alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from mooring.api import codec, core
from mooring.api.resource import AllocationResult
from mooring.lens.snapshot import ClusterState


class InFlightClaim(msgspec.Struct, frozen=True):
    """An allocation that was chosen for another pod and is not written yet."""

    namespace: str
    name: str  # of the claim
    allocation: AllocationResult


class Scenario(msgspec.Struct, frozen=True):
    """One pod and its cluster."""

    pod: core.Pod
    id: str = ""
    family: str = ""
    profile: dict[str, Any] | None = None  # a fragment of a KubeSchedulerProfile; None: the default
    cluster: ClusterState = ClusterState()
    in_flight: tuple[InFlightClaim, ...] = msgspec.field(default=(), name="inFlight")


class BadLine(ValueError):
    """A line that is not a scenario: its number and the problem."""

    def __init__(self, line: int, problem: str, id_: str = "") -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.id = id_
        self.problem = problem


def read_scenarios(
    lines: Iterable[bytes | str], first_line: int = 1
) -> Iterator[Scenario | BadLine]:
    """Read lines of JSON; an invalid one is returned as a BadLine in its place."""
    for number, line in enumerate(lines, start=first_line):
        if not line.strip():
            continue
        try:
            yield codec.decode(line, Scenario)
        except codec.DecodeError as error:
            problem = f"{error.path}: {error.problem}" if error.path else error.problem
            yield BadLine(number, problem, _id_of(line))


def _id_of(line: bytes | str) -> str:
    """The id of a line that could not be read, if it has one."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    found = raw.get("id") if isinstance(raw, dict) else None
    return found if isinstance(found, str) else ""
