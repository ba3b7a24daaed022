"""Answers as a scheduler keeps them for one cache key, beside those of an attempt of its own.

As in `decision.results`: PreFilter and PreScore are asked once, about all nodes; Filter and Score
once about every node, then about those that changed, with what was stored at first.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TypeVar

import numpy as np

from mooring.cache.snapshot import Nodes
from mooring.framework.results import OnlyNodes
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.testing._attempt import Attempt, Fault, by_name, describe, same
from mooring.testing._compare import compare_scores, compare_statuses

T = TypeVar("T")


class Kept:
    """What is known after the first pod with a key."""

    def __init__(self, attempt: Attempt) -> None:
        self.names: frozenset[str] = frozenset(attempt.nodes.names)
        self.state: CycleState = attempt.state
        self._is_filtered = attempt.prepare_filter()
        self._is_scored = attempt.pre_filter_passed and attempt.prepare_scores(attempt.nodes)
        self.pre_filter: Status | OnlyNodes = attempt.pre_filter
        self.pre_score: Status | None = attempt.pre_score
        self.statuses: dict[str, Status] = {}
        self.raw: dict[str, int] = {}
        self.statuses, self.raw = self._ask(attempt, attempt.candidates)

    def compare(
        self, fresh: Attempt, names: AbstractSet[str], this: str, that: str, claim: str
    ) -> None:
        """Do the answers kept for these nodes equal those of an attempt that has run?

        `this` says what is special about the attempt, `that` how it was when answers were kept.
        """
        that = f"{that}; {claim}"
        ours, theirs = fresh.pre_filter, self.pre_filter
        if not _same_pre_filter(ours, theirs, names):
            raise Fault(f"pre_filter gives {describe(ours)} {this}, but {describe(theirs)} {that}")
        compare_statuses(_only(fresh.statuses, names), _only(self.statuses, names), this, that)
        found, expected = fresh.pre_score, self.pre_score
        if found is not None and expected is not None and not same(found, expected):
            raise Fault(
                f"pre_score gives {describe(found)} {this}, but {describe(expected)} {that}"
            )
        compare_scores(_only(fresh.raw, names), _only(self.raw, names), this, that)

    def compare_again(self, fresh: Attempt, names: AbstractSet[str], this: str) -> None:
        """Would these nodes, asked about with what was stored at first, get the right answers?"""
        if not names:
            return
        nodes = fresh.nodes
        if len(names) < len(nodes):
            nodes = nodes.take(np.array([name in names for name in nodes.names], np.bool_))
        fresh.state = self.state
        statuses, raw = self._ask(fresh, nodes)
        this = f"{this} with what pre_filter and pre_score stored before"
        that = "when they are asked again; what they store is kept for pods that come later"
        compare_statuses(statuses, _only(fresh.statuses, names), this, that)
        compare_scores(raw, _only(fresh.raw, names), this, that)

    def _ask(self, attempt: Attempt, nodes: Nodes) -> tuple[dict[str, Status], dict[str, int]]:
        if isinstance(self.pre_filter, OnlyNodes):
            wanted = [name in self.pre_filter.names for name in nodes.names]
            nodes = nodes.take(np.array(wanted, np.bool_))
        statuses: dict[str, Status] = {}
        if self._is_filtered:
            statuses = attempt.filter(nodes)
            nodes = nodes.take(np.array([status.ok for status in statuses.values()], np.bool_))
        if not self._is_scored or not len(nodes):
            return statuses, {}
        return statuses, by_name(nodes, attempt.score(nodes))


def _only(answers: dict[str, T], names: AbstractSet[str]) -> dict[str, T]:
    return {name: answer for name, answer in answers.items() if name in names}


def _same_pre_filter(a: Status | OnlyNodes, b: Status | OnlyNodes, names: AbstractSet[str]) -> bool:
    if isinstance(a, OnlyNodes) and isinstance(b, OnlyNodes):
        return not (a.names ^ b.names).intersection(names)
    return isinstance(a, Status) and isinstance(b, Status) and same(a, b)
