"""Which pods of one node have to go so that a pod fits there: as few and as unimportant as can be.

All pods that may go are taken away in thought. If the pod fits then, they are put back one by one,
those protected by a disruption budget first and the important before the others, as long as the
pod still fits: that is the *reprieve*. Who can't be put back is a victim.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from mooring.api.meta import parse_time
from mooring.api.policy import PodDisruptionBudget
from mooring.api.selectors import Selector, SelectorError
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.framework._internal import InternalWhatIf
from mooring.framework.results import Candidate
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.preemption.ranks import Ranks

# The condition that marks a pod as evicted by a scheduler.
DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"

# Of pods that are looked at again and again.
_seconds: Final = lru_cache(maxsize=65_536)(parse_time)

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")


class DisruptionBudgets:
    """Disruption budgets, parsed once for a search."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        for budget in budgets:
            try:
                selector = Selector.from_label_selector(budget.spec.selector)
            except SelectorError:
                continue  # matches nobody
            if not (selector.matches_nothing or selector.is_empty):
                here = self._by_namespace.setdefault(budget.namespace, [])
                here.append((budget, selector))

    def split(self, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Those whose eviction would break a budget, and the others; the order stays.

        Evictions are counted in the order given: a budget that allows two protects the third.
        """
        if not self._by_namespace:
            return [], list(pods)
        violating: list[Pod] = []
        non_violating: list[Pod] = []
        spent: dict[int, int] = {}  # id of a budget -> evictions so far
        for pod in pods:
            breaks = False
            for budget, selector in self._by_namespace.get(pod.namespace, ()) if pod.labels else ():
                status = budget.status
                # A pod that the budget counts as disrupted already costs nothing more.
                if pod.name in status.disrupted_pods or not selector.matches(pod.labels):
                    continue
                spent[id(budget)] = spent.get(id(budget), 0) + 1
                breaks |= spent[id(budget)] > status.disruptions_allowed
            (violating if breaks else non_violating).append(pod)
        return violating, non_violating


class PreemptionRequest(msgspec.Struct, frozen=True):
    """For whom room is to be made, and at whose expense."""

    state: CycleState
    pod: Pod
    what_if: InternalWhatIf
    budgets: DisruptionBudgets
    spares: Callable[[Pod], bool]  # pods that must stay, however unimportant they are
    now: float  # seconds; when pods started that do not say
    fixed: frozenset[str] = frozenset()  # filters that need not see a node more than once
    ranks: Ranks = msgspec.field(default_factory=Ranks)  # what earlier searches left

    def potential_victims(self, node: Node) -> list[Pod]:
        """Whoever may be evicted from a node."""
        limit, spares = self.pod.priority, self.spares
        return [other for other in node.pods if other.priority < limit and not spares(other)]

    def ranked(self, node: Node) -> Sequence[Pod]:
        """Likewise, by importance; hardly any work for a node that is as it was last time."""
        found = self.ranks.of(node, self._rank)
        limit = self.pod.priority
        if not found or found[0].priority < limit:
            return found
        return found[bisect_right(found, -limit, key=lambda other: -other.priority) :]

    def _rank(self, pods: Iterable[Pod]) -> list[Pod]:
        spares = self.spares
        return self.by_importance(other for other in pods if not spares(other))

    def started(self, other: Pod) -> float:
        text = other.status.start_time
        return self.now if text is None else _seconds(text)

    def by_importance(self, pods: Iterable[Pod]) -> list[Pod]:
        """Higher priority first, then whoever runs longer; by name if there is no difference."""
        return sorted(pods, key=lambda p: (-p.priority, self.started(p), p.key))

    def candidate(self, node_name: str, victims: Sequence[Pod], broken: int) -> Candidate | Status:
        """A node and who has to leave it; a search that finds nobody has gone wrong.

        Of the victims those come first whose eviction breaks a budget, so many are `broken`; both
        parts are given by importance.
        """
        if not victims:
            return Status.error(f'expected at least one victim pod on node "{node_name}"')
        if 0 < broken < len(victims):
            victims = self.by_importance(victims)
        return Candidate(node_name, tuple(victims), broken)


class _HypotheticalNode:
    """One node as it might be, with what the plugins remember of it."""

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
            # Only pods will come and go from here on.
            self._state.skip_filter.update(request.fixed)
        return status


def find_victims(request: PreemptionRequest, node: Node) -> Candidate | Status:
    """Whom to evict from this node; a status says why that would not help."""
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
    broken, status = _not_reprieved(hypothetical, violating)
    victims: list[Pod] = []
    if status.ok:
        victims, status = _not_reprieved(hypothetical, non_violating)
    if not status.ok:
        return status
    return request.candidate(node.name, (*broken, *victims), len(broken))


def _not_reprieved(
    hypothetical: _HypotheticalNode, pods: Sequence[Pod]
) -> tuple[list[Pod], Status]:
    """Put back whom there is room for; returns the others."""
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
    """A plugin that can't follow a what-if is no refusal of the node, and nobody's verdict."""
    return OK if status.ok else Status.error(*status.reasons, cause=status.cause)
