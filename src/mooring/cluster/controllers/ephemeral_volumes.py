"""Ephemeral volumes: claims that are created for a pod and deleted with it."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import PODS, BuiltInController, owner_reference
from mooring.cluster.controllers.persistent_volumes import CLAIMS
from mooring.cluster.controllers.reconcile_queue import Key


class EphemeralVolumeController(BuiltInController):
    """Creates the claims of ephemeral volumes."""

    watches: ClassVar[tuple[Resource, ...]] = (PODS,)
    name: ClassVar[str] = "ephemeral_volume"

    def on_change(self, change: StoreChange) -> None:
        pod = self.pods.latest
        if pod is None or self.pods.before is not None:
            return
        if any(volume.ephemeral is not None for volume in pod.spec.volumes):
            self.enqueue(change.new.key)

    def reconcile(self, key: Key) -> float | None:
        found = self.read(PODS, key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        for volume in found["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            if template is not None:
                self._make(found, f"{key[1]}-{volume['name']}", template)
        return None

    def _make(self, pod: Object, name: str, template: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        if self.verbs.store.get(CLAIMS, namespace, name) is not None:
            return  # if it is not the pod's, the scheduler reports that
        given = template.get("metadata") or {}
        meta: dict[str, Any] = {"name": name, "namespace": namespace}
        meta |= {key: given[key] for key in ("labels", "annotations") if given.get(key)}
        meta["ownerReferences"] = [owner_reference(pod)]
        value = {
            "apiVersion": "v1",
            "kind": CLAIMS.kind,
            "metadata": meta,
            "spec": msgspec.json.decode(msgspec.json.encode(template["spec"])),
        }
        self.verbs.create(CLAIMS, value, namespace=namespace)
