"""Ephemeral volumes: claims that are created for a pod and deleted with it."""

from __future__ import annotations

from typing import ClassVar

from mooring.cluster.apiserver.resources import PODS, Resource
from mooring.cluster.apiserver.store import StoreChange
from mooring.cluster.controllers.base import BuiltInController, owner_reference
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
                # If there is such a claim and it is not the pod's, the scheduler reports that.
                name, owners = f"{key[1]}-{volume['name']}", [owner_reference(found)]
                self.make_claim(key[0], name, template, ownerReferences=owners)
        return None
