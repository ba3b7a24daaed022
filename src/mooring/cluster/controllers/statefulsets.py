"""StatefulSets: pods with stable names, created, updated and deleted in order.

New pods are created from the current template, not from that of `currentRevision`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from mooring.cluster.apiserver.resources import PODS, Resource, known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.base import (
    REVISION_HASH,
    WorkloadController,
    encode_template,
    hash_of,
    replicas_of,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.revisions import keep_revisions
from mooring.cluster.controllers.views import PodView

STATEFULSETS: Final = known("statefulsets", "apps")
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"


class StatefulSetController(WorkloadController):
    """Keeps pods `<name>-0`, `<name>-1` and so on, with their claims."""

    watches: ClassVar[tuple[Resource, ...]] = (STATEFULSETS, PODS)
    name: ClassVar[str] = "statefulset-controller"
    of: ClassVar[Resource] = STATEFULSETS

    def reconcile(self, key: Key) -> float | None:
        found = self.read(STATEFULSETS, key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        spec = found["spec"]
        template = encode_template(spec["template"])
        mark = f"{key[1]}-{hash_of(template)}"
        keep_revisions(self, found, template, mark, self.revision_hashes(found))
        pods = self._by_ordinal(found)
        is_ordered = spec.get("podManagementPolicy") != "Parallel"
        first = (spec.get("ordinals") or {}).get("start") or 0
        wanted = range(first, first + replicas_of(found))
        if self._create_missing(found, mark, wanted, pods, is_ordered) and self._delete_surplus(
            found, wanted, pods, is_ordered
        ):
            self._roll_out(found, mark, wanted, pods)
        return self._update_status(found, mark)

    def _by_ordinal(self, owner: Object) -> dict[int, PodView]:
        prefix = f"{owner['metadata']['name']}-"
        found: dict[int, PodView] = {}
        for pod in self.pods.of(owner["metadata"]["uid"]):
            ordinal = pod.name.removeprefix(prefix)
            if ordinal.isdecimal():
                found[int(ordinal)] = pod
        return found

    # --- in order ------------------------------------------------------------------------------

    def _create_missing(
        self, owner: Object, mark: str, wanted: range, pods: dict[int, PodView], is_ordered: bool
    ) -> bool:
        """Create missing pods; True if scaling down may proceed."""
        is_clear = True
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is not None and pod.is_finished and not pod.is_terminating:
                self._replace(owner, pod)
                is_clear = False
            elif pod is None:
                self._make(owner, mark, ordinal)
                is_clear = False
            elif not self._is_healthy(owner, pod):
                is_clear = False
            if is_ordered and not is_clear:
                return False
        return True

    def _replace(self, owner: Object, pod: PodView) -> None:
        """Delete a finished pod, so that it is created again; delayed by its backoff."""
        meta = owner["metadata"]
        pause = self._backoff.left((meta["uid"], pod.name), pod.metadata.uid, self.clock.now())
        if pause > 0:
            self.enqueue((meta["namespace"], meta["name"]), pause)
        else:
            self.delete_pod(owner, pod)

    def _delete_surplus(
        self, owner: Object, wanted: range, pods: dict[int, PodView], is_ordered: bool
    ) -> bool:
        """Delete surplus pods, the highest first; True if there are none."""
        surplus = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
        for ordinal in surplus:
            if not pods[ordinal].is_terminating:
                self.delete_pod(owner, pods[ordinal])
            if is_ordered:
                break
        return not surplus

    def _roll_out(self, owner: Object, mark: str, wanted: range, pods: dict[int, PodView]) -> None:
        """Replace pods of former templates, the highest first, one at a time."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        for ordinal in reversed(wanted):
            pod = pods.get(ordinal)
            if ordinal < partition or pod is None:
                return
            if pod.metadata.labels.get(REVISION_HASH) != mark and not pod.is_terminating:
                self.delete_pod(owner, pod)
                return
            if not self._is_healthy(owner, pod):
                return

    def _is_healthy(self, owner: Object, pod: PodView) -> bool:
        seconds = owner["spec"].get("minReadySeconds") or 0
        return not pod.is_terminating and self.available([pod], seconds)[0] == 1

    # --- making --------------------------------------------------------------------------------

    def _make(self, owner: Object, mark: str, ordinal: int) -> None:
        meta, spec = owner["metadata"], owner["spec"]
        name = f"{meta['name']}-{ordinal}"
        template: Object = msgspec.json.decode(encode_template(spec["template"]))
        body = template.setdefault("spec", {})
        body["hostname"] = name
        if spec.get("serviceName"):
            body["subdomain"] = spec["serviceName"]
        claims = {
            claim["metadata"]["name"]: f"{claim['metadata']['name']}-{name}"
            for claim in spec.get("volumeClaimTemplates") or ()
        }
        if claims:
            others = [one for one in body.get("volumes") or () if one["name"] not in claims]
            body["volumes"] = [
                *(
                    {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
                    for volume, claim in claims.items()
                ),
                *others,
            ]
        for claim in spec.get("volumeClaimTemplates") or ():
            self._make_claim(owner, claim, claims[claim["metadata"]["name"]])
        labels = {_POD_NAME: name, _POD_INDEX: str(ordinal), REVISION_HASH: mark}
        self.create_pod(owner, encode_template(template), name=name, labels=labels)

    def _make_claim(self, owner: Object, template: Object, name: str) -> None:
        selected = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
        labels = {**(template["metadata"].get("labels") or {}), **selected}
        if not self.make_claim(owner["metadata"]["namespace"], name, template, labels=labels):
            return
        set_name = owner["metadata"]["name"]
        note = f"create Claim {name} in StatefulSet {set_name} success"
        self.record_event(owner, "SuccessfulCreate", note)

    def _update_status(self, owner: Object, mark: str) -> float | None:
        pods = [pod for pod in self.pods.of(owner["metadata"]["uid"]) if not pod.is_finished]
        living = [pod for pod in pods if not pod.is_terminating]
        available, next_in = self.available(living, owner["spec"].get("minReadySeconds") or 0)
        ready = sum(pod.is_ready for pod in pods)
        updated = sum(pod.metadata.labels.get(REVISION_HASH) == mark for pod in living)
        before = owner.get("status") or {}
        current = before.get("currentRevision") or mark
        if updated == ready == len(pods) == replicas_of(owner):
            current = mark
        status: dict[str, Any] = {
            "replicas": len(pods),
            "readyReplicas": ready or None,
            "availableReplicas": available,
            "currentReplicas": sum(
                pod.metadata.labels.get(REVISION_HASH) == current for pod in living
            )
            or None,
            "updatedReplicas": updated or None,
            "currentRevision": current,
            "updateRevision": mark,
            "collisionCount": 0,
            "observedGeneration": owner["metadata"].get("generation"),
        }
        self.write_status(STATEFULSETS, owner, status)
        return next_in
