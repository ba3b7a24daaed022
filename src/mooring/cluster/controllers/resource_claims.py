"""ResourceClaims: made from templates for pods, given back when no pod uses them any more.

The scheduler allocates devices to a claim and reserves it for a pod. Here the claim is created
before that, and afterwards the pod is removed from `reservedFor`; when no user is left, the
allocation and then the finalizer that protects it are removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from mooring.client.errors import ConflictError, Forbidden, NotFound
from mooring.cluster.apiserver.resources import PODS, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import (
    BuiltInController,
    ControllerContext,
    owner_reference,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import PodView
from mooring.cluster.event_writer import WARNING

RESOURCE_CLAIMS: Final = known("resourceclaims", "resource.k8s.io")
CLAIM_TEMPLATES: Final = known("resourceclaimtemplates", "resource.k8s.io")
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_LONGEST: Final = 57  # characters of a generated name's prefix


class ClaimTemplateController(BuiltInController):
    """Makes the claims of pods that name a template. Its keys are pods."""

    watches: ClassVar[tuple[Resource, ...]] = (PODS, CLAIM_TEMPLATES)
    name: ClassVar[str] = "resource_claim"

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            pod = self.pods.latest
            if pod is not None and _templates(pod) and pod.is_active:
                self.enqueue(pod.key)
        elif change.type == "ADDED":
            namespace, name = change.new.key
            for pod in self.pods:
                if pod.metadata.namespace == namespace and name in _templates(pod):
                    self.enqueue(pod.key)

    def reconcile(self, key: Key) -> float | None:
        pod = self.read(PODS, key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        statuses = list(pod.get("status", {}).get("resourceClaimStatuses") or ())
        there = {status["name"] for status in statuses}
        try:
            made = [
                {"name": entry["name"], "resourceClaimName": claim}
                for entry in pod["spec"].get("resourceClaims") or ()
                if entry["name"] not in there and (claim := self._claim_of(pod, entry))
            ]
        except Forbidden:
            return None  # the namespace goes away
        if made:
            self.write_status(PODS, pod, {"resourceClaimStatuses": [*statuses, *made]})
        return None

    def _claim_of(self, pod: Object, entry: Object) -> str:
        """The claim for an entry of a pod: an earlier one, or one made of its template."""
        wanted = entry.get("resourceClaimTemplateName")
        if not wanted:
            return ""
        namespace = pod["metadata"]["namespace"]
        for item in self.items(RESOURCE_CLAIMS, namespace):
            claim = item.decoded()
            if _entry_of(claim) == entry["name"] and _is_owned_by(claim, pod):
                return str(claim["metadata"]["name"])
        template = self.read(CLAIM_TEMPLATES, (namespace, wanted))
        if template is None:
            text = f'PodResourceClaim {entry["name"]}: ResourceClaimTemplate "{wanted}" not found'
            self.record_event(pod, "FailedResourceClaimCreation", text, WARNING)
            return ""
        return str(self._make(pod, entry["name"], template)["metadata"]["name"])

    def _make(self, pod: Object, entry: str, template: Object) -> Object:
        given = template["spec"].get("metadata") or {}
        prefix = f"{pod['metadata']['name']}-{entry}-"
        meta: dict[str, Any] = {
            "generateName": prefix if len(prefix) <= _LONGEST else f"{prefix[: _LONGEST - 1]}-",
            "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: entry},
            "ownerReferences": [owner_reference(pod)],
        }
        if given.get("labels"):
            meta["labels"] = given["labels"]
        claim = {"metadata": meta, "spec": template["spec"].get("spec") or {}}
        return self.verbs.create(
            RESOURCE_CLAIMS, claim, namespace=str(pod["metadata"]["namespace"])
        )


class ResourceClaimController(BuiltInController):
    """Takes claims back from pods that are gone. Its keys are claims."""

    watches: ClassVar[tuple[Resource, ...]] = (PODS, RESOURCE_CLAIMS)
    name: ClassVar[str] = "resource_claim"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._used_by: dict[str, set[Key]] = {}  # the claims of each pod, by its uid

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            before, latest = self.pods.before, self.pods.latest
            pod = latest if latest is not None else before
            if pod is not None and (latest is None or latest.is_finished):
                for key in self._used_by.get(pod.metadata.uid, ()):
                    self.enqueue(key)
            return
        claim = change.new.decoded()
        for uid in _pods_of(claim):
            claims = self._used_by.setdefault(uid, set())
            if change.type == "DELETED":
                claims.discard(change.new.key)
                if not claims:
                    del self._used_by[uid]
            else:
                claims.add(change.new.key)
        if change.type != "DELETED":
            self.enqueue(change.new.key)

    def reconcile(self, key: Key) -> float | None:
        claim = self.read(RESOURCE_CLAIMS, key)
        if claim is None:
            return None
        living = {pod.metadata.uid: pod for pod in self.pods if pod.metadata.namespace == key[0]}
        try:
            if self._goes_with_its_pod(claim, living):
                self.verbs.delete(RESOURCE_CLAIMS, *key, uid=claim["metadata"]["uid"])
            self._release(key, living)
        except (NotFound, ConflictError):
            return None  # it is gone, or has changed: then this is called again
        return None

    def _release(self, key: Key, living: dict[str, PodView]) -> None:
        claim = self.read(RESOURCE_CLAIMS, key)
        if claim is None:
            return
        status = claim.get("status") or {}
        users = status.get("reservedFor") or []
        left = [user for user in users if _still_uses(user, living)]
        # A scheduler protects a claim before it allocates: such a claim has no users yet, either.
        is_free = not left and (users or "deletionTimestamp" in claim["metadata"])
        if is_free:
            self.write_status(
                RESOURCE_CLAIMS, claim, {"reservedFor": None, "allocation": None, "devices": None}
            )
        elif len(left) < len(users):
            self.write_status(RESOURCE_CLAIMS, claim, {"reservedFor": left})
        if is_free and FINALIZER in claim["metadata"].get("finalizers", ()):

            def unprotect(current: Object) -> None:
                kept = [one for one in current["metadata"]["finalizers"] if one != FINALIZER]
                current["metadata"]["finalizers"] = kept

            self.verbs.modify(RESOURCE_CLAIMS, *key, unprotect)

    def _goes_with_its_pod(self, claim: Object, living: dict[str, PodView]) -> bool:
        """Whether it was made for a pod that has ended; the garbage collector sees deleted ones."""
        if "deletionTimestamp" in claim["metadata"]:
            return False
        for owner in claim["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and owner["kind"] == "Pod":
                pod = living.get(owner["uid"])
                return pod is not None and pod.is_finished
        return False


def _templates(pod: PodView) -> tuple[str, ...]:
    """The templates whose claims are not made yet."""
    if not pod.spec.resource_claims:
        return ()
    there = {status.name for status in pod.status.resource_claim_statuses}
    return tuple(
        entry.resource_claim_template_name
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name and entry.name not in there
    )


def _entry_of(claim: Object) -> str:
    annotations: dict[str, str] = claim["metadata"].get("annotations") or {}
    return annotations.get(POD_CLAIM_NAME, "")


def _is_owned_by(claim: Object, pod: Object) -> bool:
    return any(
        owner.get("controller") and owner["uid"] == pod["metadata"]["uid"]
        for owner in claim["metadata"].get("ownerReferences") or ()
    )


def _pods_of(claim: Object) -> Iterator[str]:
    """The uids of the pods that a claim follows: its users, and its owner."""
    for user in (claim.get("status") or {}).get("reservedFor") or ():
        if user.get("resource") == "pods":
            yield user["uid"]
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner["kind"] == "Pod":
            yield owner["uid"]


def _still_uses(user: Object, living: dict[str, PodView]) -> bool:
    if user.get("resource") != "pods" or user.get("apiGroup"):
        return True
    pod = living.get(user["uid"])
    return pod is not None and not pod.is_finished
