"""The disruption controller: the status of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from mooring.api.meta import parse_time
from mooring.api.selectors import Selector
from mooring.cluster.apiserver.pods import selector_of
from mooring.cluster.apiserver.resources import BUDGETS, PODS, Resource, by_kind
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import (
    STATUS_DELAY,
    BuiltInController,
    ControllerContext,
    int_or_percent,
    with_condition,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.replicasets import REPLICASETS
from mooring.cluster.controllers.views import Owner, PodView

_NOTED: Final = 120.0  # seconds until an eviction that deleted no pod is forgotten


class DisruptionController(BuiltInController):
    """Keeps the status of PodDisruptionBudgets."""

    watches: ClassVar[tuple[Resource, ...]] = (BUDGETS, PODS)
    name: ClassVar[str] = "disruption-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._selectors: dict[Key, Selector] = {}

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            if self._selectors:
                self._on_pod_change()
        elif change.type == "DELETED":
            self._selectors.pop(change.new.key, None)
        else:
            self._selectors[change.new.key] = selector_of(
                change.new.decoded().get("spec", {}).get("selector")
            )
            self.enqueue(change.new.key)

    def _on_pod_change(self) -> None:
        for pod in (self.pods.latest, self.pods.before):
            if pod is None:
                continue
            meta = pod.metadata
            for key, selector in self._selectors.items():
                if key[0] == meta.namespace and selector.matches(meta.labels):
                    self.enqueue(key, STATUS_DELAY)

    def reconcile(self, key: Key) -> float | None:
        budget = self.read(BUDGETS, key)
        selector = self._selectors.get(key)
        if budget is None or selector is None:
            return None
        pods = [
            pod
            for pod in self.pods
            if pod.metadata.namespace == key[0]
            and not pod.is_finished
            and selector.matches(pod.metadata.labels)
        ]
        disrupted, next_in = self._disrupted(budget, pods)
        healthy = sum(
            pod.is_ready and not pod.is_terminating and pod.name not in disrupted for pod in pods
        )
        expected, desired = self._goals(budget["spec"], pods)
        allowed = max(healthy - desired, 0) if expected else 0
        known = (budget.get("status") or {}).get("conditions")
        said = ("True", "SufficientPods", "") if allowed else ("False", "InsufficientPods", "")
        conditions = with_condition(known, "DisruptionAllowed", *said, self.verbs.now())
        generation = budget["metadata"].get("generation")
        conditions[-1]["observedGeneration"] = generation
        status = {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptedPods": disrupted or None,
            "observedGeneration": generation,
            "conditions": conditions,
        }
        self.write_status(BUDGETS, budget, status)
        return next_in

    def _disrupted(
        self, budget: Object, pods: list[PodView]
    ) -> tuple[dict[str, str], float | None]:
        """Evictions in progress: allowed, but the pod is not terminating yet."""
        noted = (budget.get("status") or {}).get("disruptedPods") or {}
        by_name = {pod.name: pod for pod in pods}
        kept: dict[str, str] = {}
        next_in: float | None = None
        for name, time in noted.items():
            left = parse_time(time) + _NOTED - self.clock.now()
            if name in by_name and not by_name[name].is_terminating and left > 0:
                kept[name] = time
                next_in = left if next_in is None else min(next_in, left)
        return kept, next_in

    def _goals(self, spec: Object, pods: list[PodView]) -> tuple[int, int]:
        """The expected number of pods, and how many of them must be healthy."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is not None:
            expected = self._expected(pods)
            return expected, max(expected - int_or_percent(most, expected, up=True), 0)
        if isinstance(least, str):
            expected = self._expected(pods)
            return expected, int_or_percent(least, expected, up=True)
        return len(pods), int_or_percent(least, len(pods), up=True)

    def _expected(self, pods: Iterable[PodView]) -> int:
        """The replicas that the controllers of these pods ask for, in total."""
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None:
                continue
            above = self._top_owner(pod.metadata.namespace, owner)
            if above is not None and above.uid not in sizes:
                sizes[above.uid] = self._size(pod.metadata.namespace, above)
        return sum(sizes.values())

    def _top_owner(self, namespace: str, owner: Owner) -> Owner | None:
        if owner.kind != REPLICASETS.kind:
            return owner
        meta = self.owner_graph.meta((REPLICASETS.key, namespace, owner.name))
        return meta.controller or owner if meta is not None else owner

    def _size(self, namespace: str, owner: Owner) -> int:
        of = by_kind(owner.api_version, owner.kind)
        found = self.read(of, (namespace, owner.name)) if of is not None else None
        if found is None or found["metadata"]["uid"] != owner.uid:
            return 0
        size = (found.get("spec") or {}).get("replicas")
        return 1 if size is None else int(size)
