"""Adoption: objects without a controller get the one whose selector matches them.

And the reverse: an object that no longer matches is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.api.codec import convert
from mooring.api.meta import LabelSelector
from mooring.api.selectors import Selector, SelectorError
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.resources import PODS, Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.controllers.base import BuiltInController, owner_reference
from mooring.cluster.controllers.reconcile_queue import Key


class OwnerSelectors:
    """The selectors of all owners of one kind, by namespace."""

    def __init__(self) -> None:
        self._selectors: dict[str, dict[str, Selector]] = {}

    def on_change(self, change: StoreChange) -> None:
        namespace, name = change.new.key
        known = self._selectors.setdefault(namespace, {})
        known.pop(name, None)
        if change.type != "DELETED":
            selector = selector_of(change.new.decoded())
            if selector is not None:
                known[name] = selector
        if not known:
            del self._selectors[namespace]

    def matching(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
        """The owners that would adopt an object with these labels."""
        for name, selector in self._selectors.get(namespace, {}).items():
            if selector.matches(labels):
                yield namespace, name


class PodAdoption:
    """The pods that owners of one kind adopt and release."""

    def __init__(self, controller: BuiltInController) -> None:
        self._controller = controller
        self._selectors = OwnerSelectors()
        self._relabelled: set[Key] = set()  # owners of pods whose labels have changed

    def on_owner_change(self, change: StoreChange) -> None:
        self._selectors.on_change(change)

    def on_pod_change(self) -> None:
        """Enqueue the owners that may adopt the latest pod; note whose pod has other labels."""
        pods = self._controller.pods
        pod, before = pods.latest, pods.before
        if pod is None:
            return
        owner = pod.metadata.controller
        if owner is None:
            for key in self._selectors.matching(pod.metadata.namespace, pod.metadata.labels):
                self._controller.enqueue(key)
        elif before is not None and before.metadata.labels != pod.metadata.labels:
            self._relabelled.add((pod.metadata.namespace, owner.name))

    def adopt_and_release(self, owner: Object, key: Key) -> None:
        """Adopt the pods that match and have no controller; release those that match no more."""
        pods, verbs = self._controller.pods, self._controller.verbs
        orphans = pods.orphans(key[0])
        if not orphans and key not in self._relabelled:
            return
        selector = selector_of(owner)
        if selector is None:
            return
        for pod in orphans:
            if pod.is_active and selector.matches(pod.metadata.labels):
                adopt(verbs, PODS, owner, *pod.key, pod.metadata.uid)
        if key in self._relabelled:
            self._relabelled.discard(key)
            for pod in pods.of(owner["metadata"]["uid"]):
                if not selector.matches(pod.metadata.labels):
                    release(verbs, PODS, owner, *pod.key)


def selector_of(owner: Object) -> Selector | None:
    """The selector of a workload; None if it has none, or selects everything."""
    given: Mapping[str, Any] = (owner.get("spec") or {}).get("selector") or {}
    if not given:
        return None
    try:
        if "matchLabels" in given or "matchExpressions" in given:
            return Selector.from_label_selector(convert(given, LabelSelector))
        return Selector.from_map(given)  # of a ReplicationController
    except (SelectorError, ValueError):
        return None


def adopt(verbs: Verbs, of: Resource, owner: Object, namespace: str, name: str, uid: str) -> bool:
    """Make `owner` the controller of an object; False if that was refused."""

    def change(current: Object) -> None:
        meta = current["metadata"]
        if meta["uid"] == uid:
            meta["ownerReferences"] = [*(meta.get("ownerReferences") or ()), owner_reference(owner)]

    return _write(verbs, of, namespace, name, change)


def release(verbs: Verbs, of: Resource, owner: Object, namespace: str, name: str) -> bool:
    """Take the reference to `owner` from an object."""
    own = owner["metadata"]["uid"]

    def change(current: Object) -> None:
        meta = current["metadata"]
        references = meta.get("ownerReferences") or ()
        meta["ownerReferences"] = [one for one in references if one["uid"] != own]

    return _write(verbs, of, namespace, name, change)


def _write(verbs: Verbs, of: Resource, namespace: str, name: str, change: Any) -> bool:
    try:
        verbs.modify(of, namespace, name, change)
    except StatusError:
        return False  # it is gone by now, or has another controller
    return True
