"""Binding of claims and volumes, and provisioning of volumes.

binding mode Immediate  ──▶ the smallest volume that fits, or a new one
WaitForFirstConsumer    ──▶ the scheduler sets a volume's claimRef, or selects a node for a new one
                            ──▶ the claim is bound, or the volume is provisioned
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from mooring.api import codec, core
from mooring.api.quantity import Quantity
from mooring.api.selectors import Selector, SelectorError
from mooring.api.storage import StorageClass
from mooring.api.wellknown import HOSTNAME, ZONE
from mooring.cluster.apiserver.resources import CLAIMS, NODES, STORAGE_CLASSES, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController, ControllerContext
from mooring.cluster.controllers.reconcile_queue import Key

VOLUMES: Final = known("persistentvolumes")

SIMULATED: Final = "mooring.dev/simulated"  # the provisioner that this controller implements
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_PROVISIONERS: Final = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_WAITS: Final = "WaitForFirstConsumer"

_Bindable = core.PersistentVolume | core.PersistentVolumeClaim


class PersistentVolumeController(BuiltInController):
    """Binds claims and volumes. Its keys are claims, and volumes, which have no namespace."""

    watches: ClassVar[tuple[Resource, ...]] = (CLAIMS, VOLUMES, STORAGE_CLASSES)
    name: ClassVar[str] = "persistentvolume-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._provision_any = context.provision_any
        self._claims: dict[Key, core.PersistentVolumeClaim] = {}
        self._unbound: set[Key] = set()  # claims
        self._volumes: dict[str, core.PersistentVolume] = {}

    def on_change(self, change: StoreChange) -> None:
        is_gone = change.type == "DELETED"
        if change.resource == CLAIMS.key:
            key, claim = change.new.key, codec.decode(change.new.raw, core.PersistentVolumeClaim)
            self._unbound.discard(key)
            if is_gone:
                self._claims.pop(key, None)
                for volume in self._claimed_by(claim):
                    self.enqueue(("", volume.name))
                return
            self._claims[key] = claim
            if not _is_bound(claim):
                self._unbound.add(key)
            self.enqueue(key)
        elif change.resource == VOLUMES.key:
            volume = codec.decode(change.new.raw, core.PersistentVolume)
            if is_gone:
                self._volumes.pop(volume.name, None)
                if volume.spec.claim_ref is not None:
                    self.enqueue((volume.spec.claim_ref.namespace, volume.spec.claim_ref.name))
                return
            self._volumes[volume.name] = volume
            self.enqueue(("", volume.name))
            self._enqueue_unbound()
        else:
            self._enqueue_unbound()

    def _enqueue_unbound(self) -> None:
        for key in self._unbound:
            self.enqueue(key)

    def _claimed_by(self, claim: core.PersistentVolumeClaim) -> Iterator[core.PersistentVolume]:
        return (volume for volume in self._volumes.values() if _refers_to(volume, claim))

    def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        if not namespace:
            volume = self._volumes.get(name)
            if volume is not None:
                self._sync_volume(volume)
            return None
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        if _is_bound(claim):
            if claim.spec.volume_name not in self._volumes:
                self._set_phase(CLAIMS, claim, "Lost")
            return None
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(volume, claim)
        return None

    # --- choosing ---------------------------------------------------------------------------------

    def _volume_for(self, claim: core.PersistentVolumeClaim) -> core.PersistentVolume | None:
        if claim.spec.volume_name:
            asked = self._volumes.get(claim.spec.volume_name)
            is_free = asked is not None and (
                asked.spec.claim_ref is None or _refers_to(asked, claim)
            )
            return asked if is_free else None
        promised = next(self._claimed_by(claim), None)
        if promised is not None:
            return promised
        of = self._class_of(claim)
        has_node = SELECTED_NODE in claim.metadata.annotations
        if of is not None and of.volume_binding_mode == _WAITS:
            if has_node:
                self._provision(claim, of)
            return None
        fitting = [one for one in self._volumes.values() if _fits(one, claim)]
        if fitting:
            return min(fitting, key=lambda one: (_capacity(one).nanos, one.name))
        if of is not None:
            self._provision(claim, of)
        return None

    def _class_of(self, claim: core.PersistentVolumeClaim) -> StorageClass | None:
        name = claim.spec.storage_class_name
        item = self.verbs.store.get(STORAGE_CLASSES, "", name) if name else None
        return codec.decode(item.raw, StorageClass) if item is not None else None

    # --- binding -------------------------------------------------------------------------------

    def _bind(self, volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> None:
        meta = claim.metadata
        was_free = volume.spec.claim_ref is None

        def promise(current: Object) -> None:
            current["spec"]["claimRef"] = _reference(claim)
            if was_free:
                _annotate(current, {BOUND_BY_CONTROLLER: "yes"})

        self.verbs.modify(VOLUMES, "", volume.name, promise)
        self._set_phase(VOLUMES, self._volumes.get(volume.name, volume), "Bound")

        def accept(current: Object) -> None:
            marks = {BIND_COMPLETED: "yes"}
            if not current["spec"].get("volumeName"):
                current["spec"]["volumeName"] = volume.name
                marks[BOUND_BY_CONTROLLER] = "yes"
            _annotate(current, marks)

        self.verbs.modify(CLAIMS, meta.namespace, meta.name, accept)

        def report(current: Object) -> None:
            current["status"] = {
                "phase": "Bound",
                "accessModes": list(volume.spec.access_modes),
                "capacity": {name: str(size) for name, size in volume.spec.capacity.items()},
            }

        self.verbs.modify(CLAIMS, meta.namespace, meta.name, report, subresource="status")

    def _sync_volume(self, volume: core.PersistentVolume) -> None:
        """Set the phase of a volume; one whose claim is gone is released or deleted."""
        named = volume.spec.claim_ref
        if named is None or not named.uid:
            self._set_phase(VOLUMES, volume, "Available")
            return
        claim = self._claims.get((named.namespace, named.name))
        if claim is not None and claim.uid == named.uid:
            if not _is_bound(claim):
                self.enqueue((named.namespace, named.name))
            return
        annotations = volume.metadata.annotations
        is_ours = self._is_provisioner(annotations.get(PROVISIONED_BY, ""))
        if volume.spec.persistent_volume_reclaim_policy == "Delete" and is_ours:
            self.verbs.delete(VOLUMES, "", volume.name, uid=volume.uid)
        else:
            self._set_phase(VOLUMES, volume, "Released")

    def _set_phase(self, of: Resource, found: _Bindable, phase: str) -> None:
        if found.status.phase == phase:
            return

        def change(current: Object) -> None:
            current.setdefault("status", {})["phase"] = phase

        self.verbs.modify(of, found.namespace, found.name, change, subresource="status")

    # --- provisioning ----------------------------------------------------------------------------

    def _is_provisioner(self, provisioner: str) -> bool:
        if provisioner in ("", _NO_PROVISIONER):
            return False
        return self._provision_any or provisioner == SIMULATED

    def _provision(self, claim: core.PersistentVolumeClaim, of: StorageClass) -> None:
        if not self._is_provisioner(of.provisioner):
            return
        meta = claim.metadata
        name = f"pvc-{claim.uid}"

        def mark(current: Object) -> None:
            _annotate(current, dict.fromkeys(_PROVISIONERS, of.provisioner))

        self.verbs.modify(CLAIMS, meta.namespace, meta.name, mark)
        if name in self._volumes:
            return
        spec: dict[str, Any] = {
            "capacity": {"storage": str(claim.spec.resources.requests["storage"])},
            "accessModes": list(claim.spec.access_modes),
            "storageClassName": of.name,
            "persistentVolumeReclaimPolicy": of.reclaim_policy or "Delete",
            "volumeMode": claim.spec.volume_mode or "Filesystem",
            "csi": {"driver": of.provisioner, "volumeHandle": name},
            "claimRef": _reference(claim),
        }
        node = meta.annotations.get(SELECTED_NODE, "")
        place = self._topology_term(node) if node else None
        if place is not None:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [place]}}
        made = {"name": name, "annotations": {PROVISIONED_BY: of.provisioner}}
        self.verbs.create(VOLUMES, {"metadata": made, "spec": spec})

    def _topology_term(self, node: str) -> Object | None:
        """A node selector term for the zone of a node, or else for the node itself."""
        item = self.verbs.store.get(NODES, "", node)
        if item is None:
            return None
        key = ZONE if ZONE in item.labels else HOSTNAME
        if key not in item.labels:
            return None
        test = {"key": key, "operator": "In", "values": [item.labels[key]]}
        return {"matchExpressions": [test]}


def _is_bound(claim: core.PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _refers_to(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    """Whether a volume's claimRef is this claim; the uid may be left out."""
    named = volume.spec.claim_ref
    return (
        named is not None
        and (named.namespace, named.name) == (claim.namespace, claim.name)
        and named.uid in ("", claim.uid)
    )


def _capacity(volume: core.PersistentVolume) -> Quantity:
    return volume.spec.capacity.get("storage", Quantity.ZERO)


def _fits(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    """Whether an unbound volume satisfies a claim."""
    offered, wanted = volume.spec, claim.spec
    if offered.claim_ref is not None or volume.metadata.deletion_timestamp is not None:
        return False
    if offered.storage_class_name != (wanted.storage_class_name or ""):
        return False
    if (offered.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return False
    if not set(wanted.access_modes) <= set(offered.access_modes):
        return False
    if wanted.selector is not None:
        try:
            selector = Selector.from_label_selector(wanted.selector)
        except SelectorError:  # an invalid selector matches nothing
            return False
        if not selector.matches(volume.metadata.labels):
            return False
    return _capacity(volume) >= wanted.resources.requests.get("storage", Quantity.ZERO)


def _reference(claim: core.PersistentVolumeClaim) -> Object:
    meta = claim.metadata
    return {
        "kind": CLAIMS.kind,
        "apiVersion": "v1",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def _annotate(value: Object, more: dict[str, str]) -> None:
    meta = value["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), **more}
