"""Evictions: deletions of pods that disruption budgets may refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.client.errors import StatusError
from mooring.cluster.apiserver import pods
from mooring.cluster.apiserver.errors import bad_request, not_found
from mooring.cluster.apiserver.resources import BUDGETS, PODS
from mooring.cluster.apiserver.store import Object, Store
from mooring.cluster.apiserver.strategies import check_preconditions

if TYPE_CHECKING:
    from mooring.cluster.apiserver.verbs import Verbs


def evict(verbs: Verbs, namespace: str, name: str, eviction: Object, dry_run: bool) -> None:
    """Delete a pod, unless its disruption budget forbids it."""
    if eviction.get("metadata", {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = eviction.get("deleteOptions") or {}
    preconditions = options.get("preconditions") or {}
    uid, version = preconditions.get("uid", ""), preconditions.get("resourceVersion", "")
    dry_run = dry_run or bool(options.get("dryRun"))
    store, now = verbs.store, verbs.now()
    item = store.get(PODS, namespace, name)
    if item is None:
        raise not_found(PODS, name)
    pod = item.decoded()
    if not pods.ignores_budgets(pod):
        _spend_budget(store, namespace, pod, now, dry_run)
    check_preconditions(PODS, item, uid, version)
    if not dry_run:
        pods.set_condition(pod.setdefault("status", {}), dict(pods.EVICTED), now)
        store.put(PODS, pod)
    verbs.delete(
        PODS,
        namespace,
        name,
        uid=uid,
        grace=options.get("gracePeriodSeconds"),
        propagation=options.get("propagationPolicy", ""),
        dry_run=dry_run,
    )


def _spend_budget(store: Store, namespace: str, pod: Object, now: str, dry_run: bool) -> None:
    all_budgets = (item.decoded() for item in store.list(BUDGETS, namespace))
    budgets = pods.budgets_of(pod, all_budgets)
    if len(budgets) > 1:
        raise StatusError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support.",
            code=500,
        )
    for budget in budgets:
        if not pods.spares_budget(pod, budget):
            pods.spend_budget(pod, budget, now)
            if not dry_run:
                store.put(BUDGETS, budget)
