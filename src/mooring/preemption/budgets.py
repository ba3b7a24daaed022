"""Disruption budgets: which of them select a pod, and whose evictions would violate one.

Kept from one search to the next: selectors hardly ever change, while every eviction changes the
status of a budget. So the budgets of a pod are remembered (`ranks`), and their statuses read anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from mooring.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from mooring.api.selectors import Selector, SelectorError
from mooring.cache.pods import Pod

Matched = tuple[int, ...]
"""The numbers of the budgets that select a pod."""

_generations: Final = itertools.count()  # of all budgets, so that no two have the same


class DisruptionBudgets:
    """Disruption budgets by number; those of a pod are the same during one `generation`."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self.generation: int = next(_generations)
        self._selectors: dict[str, list[tuple[int, Selector]]] = {}  # by namespace
        self._statuses: list[PodDisruptionBudgetStatus] = []
        self._parsed: list[object] = []  # what the selectors were made of
        self.update(budgets)

    def update(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        """These are all budgets now."""
        known = list(budgets)
        self._statuses = [budget.status for budget in known]
        parsed: list[object] = [(budget.namespace, budget.spec.selector) for budget in known]
        if parsed == self._parsed:
            return
        self._parsed = parsed
        self.generation = next(_generations)
        self._selectors = {}
        for number, budget in enumerate(known):
            try:
                selector = Selector.from_label_selector(budget.spec.selector)
            except SelectorError:
                continue  # matches no pod
            if not (selector.matches_nothing or selector.is_empty):
                self._selectors.setdefault(budget.namespace, []).append((number, selector))

    def matching(self, pod: Pod) -> Matched:
        """The budgets that select a pod."""
        here = self._selectors.get(pod.namespace)
        if not here or not pod.labels:
            return ()
        labels = pod.labels
        return tuple([number for number, selector in here if selector.matches(labels)])

    def status(self, number: int) -> PodDisruptionBudgetStatus:
        return self._statuses[number]

    def split(
        self, pods: Sequence[Pod], matched: Sequence[Matched] | None = None
    ) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """Pods whose eviction would violate a budget, and the others; in the order given.

        Evictions are counted in the order given: a budget that allows two protects the third.
        `matched` are the budgets of each pod, if they are known.
        """
        violating: list[Pod] = []
        non_violating: list[Pod] = []
        spent: dict[int, int] = {}  # number of a budget -> evictions so far
        if matched is None:
            matched = [self.matching(pod) for pod in pods]
        for pod, numbers in zip(pods, matched, strict=True):
            breaks = False
            for number in numbers:
                status = self._statuses[number]
                # A pod that the budget counts as disrupted already costs nothing more.
                if pod.name not in status.disrupted_pods:
                    spent[number] = spent.get(number, 0) + 1
                    breaks |= spent[number] > status.disruptions_allowed
            (violating if breaks else non_violating).append(pod)
        return violating, non_violating
