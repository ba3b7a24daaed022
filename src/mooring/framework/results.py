"""Answers that carry more than a status, and the queue's record of a pod."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

import msgspec

from mooring.cache.pods import Pod
from mooring.framework.status import OK, Status


class OnlyNodes(msgspec.Struct, frozen=True):
    """The result of a PreFilter that admits only these nodes; sets of several are intersected."""

    names: frozenset[str]

    def __post_init__(self) -> None:
        if not isinstance(self.names, frozenset) or not all(
            isinstance(name, str) for name in self.names
        ):
            raise TypeError(f"OnlyNodes needs a frozenset of node names, not {self.names!r}")

    @classmethod
    def of(cls, names: Iterable[str]) -> OnlyNodes:
        return cls(frozenset(names))


class Wait(msgspec.Struct, frozen=True):
    """The result of a Permit that makes the pod wait, at most this many seconds."""

    timeout: float

    def __post_init__(self) -> None:
        if not isinstance(self.timeout, int | float) or math.isnan(self.timeout):
            raise TypeError(f"Wait needs a number of seconds, not {self.timeout!r}")


class Candidate(msgspec.Struct, frozen=True):
    """A node that a pod fits on once these pods are evicted."""

    node_name: str
    victims: tuple[Pod, ...]  # most important first, never empty
    pdb_violations: int = 0  # victims whose eviction no budget allows


class Nominate(msgspec.Struct, frozen=True):
    """The result of a PostFilter that nominates a node for the pod; "" withdraws a nomination.

    `victims` are the pods to evict; the scheduler evicts them. With a status that is not OK it is a
    refusal that also sets or withdraws the nomination. `report` explains the decision; the
    scheduler does not read it.

    If extenders have a preempt verb, they get all `candidates`, and `choose` is called with the
    remaining ones, or with the error of the extenders; its result replaces this one.
    """

    node_name: str
    status: Status = OK
    victims: tuple[Pod, ...] = ()
    report: object | None = None
    candidates: tuple[Candidate, ...] = ()
    choose: Callable[[Sequence[Candidate] | Status], Nominate] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.node_name, str) or not isinstance(self.status, Status):
            raise TypeError(
                "Nominate needs the name of a node and a Status,"
                f" not {self.node_name!r} and {self.status!r}"
            )
        if not isinstance(self.victims, tuple) or not all(
            isinstance(victim, Pod) for victim in self.victims
        ):
            raise TypeError(f"the victims of Nominate must be a tuple of Pod, not {self.victims!r}")


NOTHING_DECLINED: Final[dict[Hashable, tuple[int, float, object]]] = {}


class QueuedPod:
    """A pod in the scheduling queue, with its history. Plugins read it in `QueueSort`."""

    __slots__ = (
        "attempts",
        "backoff_until",
        "consecutive_errors",
        "declined",
        "first_attempt_at",
        "gated_by",
        "pending_plugins",
        "pod",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
        "woken_by",
    )

    def __init__(self, pod: Pod, timestamp: float) -> None:
        self.pod: Pod = pod
        self.timestamp: float = timestamp  # seconds; when it entered the queue this time
        self.first_attempt_at: float | None = None  # when it first became active
        self.attempts: int = 0
        self.backoff_until: float | None = None
        self.unschedulable_count: int = 0
        self.consecutive_errors: int = 0
        self.unschedulable_plugins: frozenset[str] = frozenset()
        self.pending_plugins: frozenset[str] = frozenset()
        self.gated_by: str = ""  # the PreEnqueue plugin that gates it
        self.was_flushed: bool = False
        self.woken_by: str = ""  # the event that put it into its sub-queue
        # By what was asked: how often a hint said no since the last attempt, the last time and
        # what had changed then. Replaced, never changed in place, by an empty one.
        self.declined: dict[Hashable, tuple[int, float, object]] = NOTHING_DECLINED

    def __copy__(self) -> QueuedPod:
        # Every queued pod is copied, and `copy.copy` is ten times as slow.
        other = QueuedPod(self.pod, self.timestamp)
        other.first_attempt_at = self.first_attempt_at
        other.attempts = self.attempts
        other.backoff_until = self.backoff_until
        other.unschedulable_count = self.unschedulable_count
        other.consecutive_errors = self.consecutive_errors
        other.unschedulable_plugins = self.unschedulable_plugins
        other.pending_plugins = self.pending_plugins
        other.gated_by = self.gated_by
        other.was_flushed = self.was_flushed
        other.woken_by = self.woken_by
        other.declined = self.declined
        return other
