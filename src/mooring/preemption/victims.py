"""The pods to evict from one node so that a pod fits: as few and as unimportant as possible.

All potential victims are removed from a hypothetical node. If the pod fits then, they are added
back one by one, those protected by a disruption budget first and the important before the others,
as long as the pod still fits: that is the *reprieve*. Pods that can't be added back are victims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from mooring.cache.internals import pods_of
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework._internal import InternalWhatIf
from mooring.framework.results import Candidate
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.known_victims import KnownVictims, SearchResults
from mooring.preemption.ranks import RankedPods, Ranks, started_at

# The condition that marks a pod as evicted by a scheduler.
DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")


class PreemptionRequest(msgspec.Struct, frozen=True):
    """The pod to make room for, and the pods that may be evicted for it."""

    state: CycleState
    pod: Pod
    what_if: InternalWhatIf
    budgets: DisruptionBudgets
    spares: Callable[[Pod], bool]  # pods that must stay, whatever their priority
    now: float  # seconds; the start of pods without a start time
    fixed: frozenset[str] = frozenset()  # filters that need not run on a node more than once
    # From earlier searches:
    ranks: Ranks = msgspec.field(default_factory=Ranks)
    known: KnownVictims = msgspec.field(default_factory=KnownVictims)

    def potential_victims(self, node: Node) -> list[Pod]:
        limit, spares = self.pod.priority, self.spares
        return [other for other in node.pods if other.priority < limit and not spares(other)]

    def ranked(self, nodes: Nodes, row: int) -> RankedPods:
        """The pods of a node by importance; cheap for a node that has not changed."""
        return self.ranks.of(nodes.names[row], pods_of(nodes, row), self._rank)

    def split(self, ranked: RankedPods) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """The potential victims: those protected by a disruption budget, and the others."""
        first = ranked.below(self.pod.priority)
        pods, matched = ranked.by_importance, ranked.matched(self.budgets)
        if not any(matched):
            return (), pods[first:] if first else pods
        return self.budgets.split(pods[first:], matched[first:])

    def results(self, nodes: Nodes) -> SearchResults:
        """Those of earlier searches for pods that the filters can't tell from this one."""
        what_if = self.what_if
        basis = what_if.basis(self.state, self.pod, nodes)
        return self.known.of(basis, self.pod, nodes, self.budgets, what_if.nominator)

    def _rank(self, pods: Iterable[Pod]) -> list[Pod]:
        spares = self.spares
        return self.by_importance(other for other in pods if not spares(other))

    def by_importance(self, pods: Iterable[Pod]) -> list[Pod]:
        """Higher priority first, then earlier start, then by name."""
        now = self.now
        return sorted(pods, key=lambda p: (-p.priority, started_at(p, now), p.key))

    def candidate(
        self, node_name: str, victims: Sequence[Pod], violations: int
    ) -> Candidate | Status:
        """A candidate; an error if there are no victims, because the pod did not fit before.

        The first `violations` victims violate a budget; both groups are given by importance.
        """
        if not victims:
            return Status.error(f'expected at least one victim pod on node "{node_name}"')
        if 0 < violations < len(victims):
            victims = self.by_importance(victims)
        return Candidate(node_name, tuple(victims), violations)


class _HypotheticalNode:
    """One node with pods removed or added, and the plugins' state for it."""

    def __init__(self, request: PreemptionRequest, node: Node) -> None:
        self._request = request
        self._state = request.state.clone()
        self._node = node

    def remove_pod(self, other: Pod) -> Status:
        self._node = self._node.without_pod(other)
        tell = self._request.what_if.remove_pod
        return _as_error(tell(self._state, self._request.pod, other, self._node))

    def add_pod(self, other: Pod) -> Status:
        self._node = self._node.with_pod(other)
        tell = self._request.what_if.add_pod
        return _as_error(tell(self._state, self._request.pod, other, self._node))

    def fits(self) -> Status:
        request = self._request
        status = request.what_if.fits(self._state, request.pod, self._node)
        if status.ok:
            # From here on, only pods change.
            self._state.skip_filter.update(request.fixed)
        return status


def find_victims(request: PreemptionRequest, node: Node) -> Candidate | Status:
    """The pods to evict from this node, or a status that says why evictions would not help."""
    potential_victims = request.potential_victims(node)
    if not potential_victims:
        return NO_VICTIMS
    hypothetical = _HypotheticalNode(request, node)
    for other in potential_victims:
        status = hypothetical.remove_pod(other)
        if not status.ok:
            return status
    status = hypothetical.fits()
    if not status.ok:
        return status
    violating, non_violating = request.budgets.split(request.by_importance(potential_victims))
    violating_victims, status = _not_reprieved(hypothetical, violating)
    victims: list[Pod] = []
    if status.ok:
        victims, status = _not_reprieved(hypothetical, non_violating)
    if not status.ok:
        return status
    return request.candidate(node.name, (*violating_victims, *victims), len(violating_victims))


def _not_reprieved(
    hypothetical: _HypotheticalNode, pods: Sequence[Pod]
) -> tuple[list[Pod], Status]:
    """Add pods back as long as the preemptor fits; returns the others."""
    victims = []
    for other in pods:
        status = hypothetical.add_pod(other)
        if status.ok and not hypothetical.fits().ok:
            victims.append(other)
            status = hypothetical.remove_pod(other)
        if not status.ok:
            return victims, status
    return victims, OK


def _as_error(status: Status) -> Status:
    """An error for a plugin whose `add_pod` or `remove_pod` failed: no refusal of the node."""
    return OK if status.ok else Status.error(*status.reasons, cause=status.cause)
