"""Deployments: a ReplicaSet per template, and rollouts from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec

from mooring.client.errors import ConflictError
from mooring.cluster.apiserver.resources import PODS, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers import rollout
from mooring.cluster.controllers.adoption import OwnerSelectors, adopt, selector_of
from mooring.cluster.controllers.base import (
    BuiltInController,
    ControllerContext,
    encode_template,
    hash_of,
    owner_reference,
    replicas_of,
    with_condition,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.replicasets import REPLICA_FAILURE, REPLICASETS
from mooring.cluster.controllers.views import meta_of

DEPLOYMENTS: Final = known("deployments", "apps")
HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_NOT_COPIED: Final = (  # annotations that are about the Deployment alone
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    rollout.DESIRED,
    rollout.MOST,
)
_HISTORY: Final = 10  # old ReplicaSets that are kept


class DeploymentController(BuiltInController):
    """Rolls Deployments out."""

    watches: ClassVar[tuple[Resource, ...]] = (DEPLOYMENTS, REPLICASETS, PODS)
    name: ClassVar[str] = "deployment-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._selectors = OwnerSelectors()
        self._orphans: dict[str, set[str]] = {}  # ReplicaSets without a controller, by namespace

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            self._on_pod_change()
        elif change.resource == REPLICASETS.key:
            self._on_set_change(change)
        else:
            self._selectors.on_change(change)
            if change.type != "DELETED":
                self.enqueue(change.new.key)

    def _on_set_change(self, change: StoreChange) -> None:
        namespace, name = change.new.key
        orphans = self._orphans.get(namespace, set())
        orphans.discard(name)
        meta = meta_of(change)
        if meta.controller is not None:
            if meta.controller.kind == DEPLOYMENTS.kind:
                self.enqueue((namespace, meta.controller.name))
        elif change.type != "DELETED" and meta.deletion_timestamp is None:
            self._orphans.setdefault(namespace, set()).add(name)
            for key in self._selectors.matching(namespace, meta.labels):
                self.enqueue(key)

    def _on_pod_change(self) -> None:
        """Only deletions matter: the strategy Recreate waits until all old pods are gone."""
        before = self.pods.before
        if before is None or self.pods.latest is not None:
            return
        owner = before.metadata.controller
        if owner is not None and owner.kind == REPLICASETS.kind and not self.pods.of(owner.uid):
            namespace = before.metadata.namespace
            above = self.owner_graph.meta((REPLICASETS.key, namespace, owner.name))
            if above is not None and above.controller is not None:
                self.enqueue((namespace, above.controller.name))

    def reconcile(self, key: Key) -> float | None:
        found = self.read(DEPLOYMENTS, key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        template = encode_template(found["spec"]["template"])
        sets = self._sets(found)
        new = next((one for one in sets if _template_of(one) == template), None)
        old = [one for one in sets if one is not new]
        is_new = False
        if found["spec"].get("paused"):
            self._sync_paused(found, new, old)
        else:
            if new is None and not self._must_wait(found, old):
                new, is_new = self._create(found, template, old), True
            if new is not None:
                new = self._set_revision(found, new, old)
            everything = [*old, new] if new is not None else old
            sizes = {} if is_new else rollout.rescaled(found, new, old)
            self._scale(found, sizes or rollout.sizes(found, new, old), everything)
            self._clean_up(found, old)
        return self._update_status(found, new, old, is_new)

    def _sets(self, owner: Object) -> list[Object]:
        """Its ReplicaSets, the oldest revision first, with those that it adopts."""
        self._adopt(owner)
        kin = self.owner_graph.dependents(owner["metadata"]["uid"])
        read = (self.read(REPLICASETS, (ns, name)) for of, ns, name in kin if of == REPLICASETS.key)
        return sorted((one for one in read if one is not None), key=_revision)

    def _adopt(self, owner: Object) -> None:
        namespace = owner["metadata"]["namespace"]
        selector = selector_of(owner)
        for name in sorted(self._orphans.get(namespace, ())):
            item = self.verbs.store.get(REPLICASETS, namespace, name)
            if item is not None and selector is not None and selector.matches(item.labels):
                adopt(self.verbs, REPLICASETS, owner, namespace, name, item.uid)

    # --- rolling -------------------------------------------------------------------------------

    def _must_wait(self, owner: Object, old: Sequence[Object]) -> bool:
        """Whether the strategy wants all old pods to be gone before there are new ones."""
        if not rollout.uses_recreate(owner):
            return False
        return any(
            not pod.is_finished for one in old for pod in self.pods.of(one["metadata"]["uid"])
        )

    def _create(self, owner: Object, template: bytes, old: Sequence[Object]) -> Object:
        meta, spec = owner["metadata"], owner["spec"]
        collisions = (owner.get("status") or {}).get("collisionCount") or 0
        mark = hash_of(template, collisions)
        copy: Object = msgspec.json.decode(template)
        inner = copy.setdefault("metadata", {})
        inner["labels"] = {**(inner.get("labels") or {}), HASH: mark}
        selector = dict(spec.get("selector") or {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: mark}
        size = rollout.first_size(owner, old)
        body: dict[str, Any] = {"replicas": size, "selector": selector, "template": copy}
        if spec.get("minReadySeconds"):
            body["minReadySeconds"] = spec["minReadySeconds"]
        value: Object = {
            "metadata": {
                "name": f"{meta['name']}-{mark}",
                "labels": inner["labels"],
                "annotations": {
                    **_copied(owner),
                    **_sizes_wanted(owner),
                    REVISION: str(_next_revision(old)),
                },
                "ownerReferences": [owner_reference(owner)],
            },
            "spec": body,
        }
        try:
            made = self.verbs.create(REPLICASETS, value, namespace=meta["namespace"])
        except ConflictError as error:
            if error.reason == "AlreadyExists":  # of another owner: next time with another name
                self.write_status(DEPLOYMENTS, owner, {"collisionCount": collisions + 1})
            raise
        self._record_scaled(owner, made, 0, size)
        return made

    def _set_revision(self, owner: Object, new: Object, old: Sequence[Object]) -> Object:
        """Give the new ReplicaSet the highest revision, also after a rollback."""
        revision = max(_revision(new), _next_revision(old))

        def write(current: Object) -> None:
            current["metadata"].setdefault("annotations", {})[REVISION] = str(revision)

        meta = new["metadata"]
        if _revision(new) != revision:
            new = self.verbs.modify(REPLICASETS, meta["namespace"], meta["name"], write)
        meta = owner["metadata"]
        if _revision(owner) != revision:
            self.verbs.modify(DEPLOYMENTS, meta["namespace"], meta["name"], write)
        return new

    def _sync_paused(self, owner: Object, new: Object | None, old: Sequence[Object]) -> None:
        """A paused Deployment is still scaled, unless it was paused during a rollout."""
        live = [one for one in (*old, new) if one is not None and one["spec"].get("replicas")]
        if len(live) == 1:
            name = live[0]["metadata"]["name"]
            self._scale(owner, {name: replicas_of(owner)}, live)

    def _scale(self, owner: Object, sizes: dict[str, int], sets: Sequence[Object]) -> None:
        for one in sets:
            meta, size = one["metadata"], rollout.spec_replicas([one])
            wanted = sizes.get(meta["name"], size)
            noted = (meta.get("annotations") or {}).items() >= _sizes_wanted(owner).items()
            if wanted == size and (noted or not size):
                continue

            def resize(current: Object, wanted: int = wanted) -> None:
                current["spec"]["replicas"] = wanted
                current["metadata"].setdefault("annotations", {}).update(_sizes_wanted(owner))

            self.verbs.modify(REPLICASETS, meta["namespace"], meta["name"], resize)
            one["spec"]["replicas"] = wanted
            if wanted != size:
                self._record_scaled(owner, one, size, wanted)

    def _record_scaled(self, owner: Object, one: Object, size: int, wanted: int) -> None:
        way = "up" if wanted > size else "down"
        name = one["metadata"]["name"]
        note = f"Scaled {way} replica set {name} from {size} to {wanted}"
        self.record_event(owner, "ScalingReplicaSet", note)

    def _clean_up(self, owner: Object, old: Sequence[Object]) -> None:
        limit = owner["spec"].get("revisionHistoryLimit")
        limit = _HISTORY if limit is None else int(limit)
        empty = [
            one
            for one in old
            if not rollout.spec_replicas([one]) and not rollout.total([one], "replicas")
        ]
        for one in empty[: max(len(empty) - limit, 0)]:
            meta = one["metadata"]
            self.verbs.delete(REPLICASETS, meta["namespace"], meta["name"], uid=meta["uid"])

    # --- reporting -----------------------------------------------------------------------------

    def _update_status(
        self, owner: Object, new: Object | None, old: Sequence[Object], is_new: bool
    ) -> float | None:
        latest = [new] if new is not None else []
        everything = [*old, *latest]
        total = rollout.total(everything, "replicas")
        updated = rollout.total(latest, "replicas")
        available = rollout.total(everything, "availableReplicas")
        counts: dict[str, Any] = {
            "replicas": total or None,
            "updatedReplicas": updated or None,
            "readyReplicas": rollout.total(everything, "readyReplicas") or None,
            "availableReplicas": available or None,
            "unavailableReplicas": max(rollout.spec_replicas(everything) - available, 0) or None,
            "observedGeneration": owner["metadata"].get("generation"),
        }
        now = self.clock.now()
        before = owner.get("status") or {}
        known = rollout.with_availability(before.get("conditions"), owner, available, now)
        known = _with_failures(known, latest or old)
        name = (new or owner)["metadata"]["name"]
        progress = rollout.Progress(known, name, now)
        again: float | None = None
        if is_new:
            conditions = progress.created()
        elif replicas_of(owner) == updated == total == available and new is not None:
            conditions = progress.completed()
        elif _has_progressed(before, counts):
            conditions = progress.moved()
        else:
            deadline = owner["spec"].get("progressDeadlineSeconds")
            conditions, again = progress.stalled(deadline)
        self.write_status(DEPLOYMENTS, owner, {**counts, "conditions": conditions})
        return again


def _with_failures(known: list[Object], sets: Sequence[Object]) -> list[Object]:
    """The conditions with that of the ReplicaSets whose pods are refused, if there is one."""
    for one in sets:
        for condition in (one.get("status") or {}).get("conditions") or ():
            if condition["type"] == REPLICA_FAILURE:
                said = (condition["status"], condition["reason"], condition["message"])
                since = condition["lastTransitionTime"]
                return with_condition(known, REPLICA_FAILURE, *said, since, lastUpdateTime=since)
    return [one for one in known if one["type"] != REPLICA_FAILURE]


def _has_progressed(before: Object, now: Object) -> bool:

    def old(status: Object) -> int:
        return (status.get("replicas") or 0) - (status.get("updatedReplicas") or 0)

    fields = ("updatedReplicas", "readyReplicas", "availableReplicas")
    has_more = any((now[field] or 0) > (before.get(field) or 0) for field in fields)
    return has_more or old(now) < old(before)


def _copied(owner: Object) -> dict[str, str]:
    own = owner["metadata"].get("annotations") or {}
    return {key: text for key, text in own.items() if key not in _NOT_COPIED}


def _sizes_wanted(owner: Object) -> dict[str, str]:
    wanted = replicas_of(owner)
    return {rollout.DESIRED: str(wanted), rollout.MOST: str(wanted + rollout.limits(owner)[0])}


def _template_of(one: Object) -> bytes:
    """The template of a ReplicaSet as its Deployment has it."""
    template = one["spec"]["template"]
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: text for key, text in (meta.get("labels") or {}).items() if key != HASH}
    return encode_template({**template, "metadata": meta})


def _revision(one: Object) -> int:
    text = str((one["metadata"].get("annotations") or {}).get(REVISION, ""))
    return int(text) if text.isdecimal() else 0


def _next_revision(old: Sequence[Object]) -> int:
    return max((_revision(one) for one in old), default=0) + 1
