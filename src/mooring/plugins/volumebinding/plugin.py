"""VolumeBinding: volumes for a pod's claims, on the node that the pod is bound to."""

from typing import Any, Final

import mooring.framework as fw
from mooring.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.plugins._claim_edits import ExplainsClaims
from mooring.plugins._csi_migration import MIGRATED_PLUGINS
from mooring.plugins._csi_nodes import CSINodes
from mooring.plugins._volume_claims import (
    PV_ADDED_OR_CHANGED,
    PVC_ADDED_OR_CHANGED,
    Unusable,
    VolumePlugin,
    not_found,
    uses_claim,
)
from mooring.plugins.volumebinding.assume_cache import AssumeCache, OutOfDate
from mooring.plugins.volumebinding.binding import Reservation, VolumeBinder
from mooring.plugins.volumebinding.free_volumes import FreeVolumes
from mooring.plugins.volumebinding.pod_claims import PodClaims, sort_claims
from mooring.plugins.volumebinding.pod_volumes import filter_nodes, find_pod_volumes
from mooring.plugins.volumebinding.provisioning import volume_limit

_ADDED_OR_CHANGED: Final = fw.Action.ADD | fw.Action.UPDATE
NO_STATE: Final = fw.Status.error("not found")  # kube-scheduler's words for a missing pre-filter


class VolumeBindingArgs(fw.Args, frozen=True):
    """How long to wait for claims to be bound, in seconds.

    `shape` belongs to a feature gate that is off by default in Kubernetes.
    """

    bind_timeout_seconds: int = 600
    shape: Any = None

    def __post_init__(self) -> None:
        if self.bind_timeout_seconds < 0:
            raise ValueError(
                "bindTimeoutSeconds: invalid BindTimeoutSeconds, should not be a negative value"
            )
        if self.shape is not None:
            raise ValueError(
                "shape: unexpected field `shape`, remove it or turn on the feature gate"
                " StorageCapacityScoring"
            )


CLAIMS: fw.StateKey[PodClaims] = fw.StateKey("VolumeBinding/claims")
RESERVATION: fw.StateKey[Reservation] = fw.StateKey("VolumeBinding/reservation")


class VolumeBinding(
    ExplainsClaims,
    VolumePlugin,
    fw.Plugin[VolumeBindingArgs],
    fw.PreFilter,
    fw.Filter,
    fw.PreScore,
    fw.Score,
    fw.Reserve,
    fw.PreBind,
):
    """Refuse nodes that can't serve the pod's claims; bind the claims for the chosen node.

    Filter keeps only statuses. Reserve computes again what each claim gets, for the chosen node
    alone: within one attempt the result is the same.
    """

    name = "VolumeBinding"
    skip_is_final = True
    answers_what_ifs = True  # whichever pods there are
    reads = (
        PersistentVolumeClaim,
        PersistentVolume,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
    )
    writes = (PersistentVolumeClaim, PersistentVolume)
    parallel = True
    wakes_on = (
        fw.ClusterEvent("storage.k8s.io/StorageClass", _ADDED_OR_CHANGED),
        PVC_ADDED_OR_CHANGED,
        PV_ADDED_OR_CHANGED,
        fw.Event.NODE_ADDED,
        fw.Event.NODE_LABELS_CHANGED,
        fw.ClusterEvent("storage.k8s.io/CSINode", _ADDED_OR_CHANGED),
        fw.ClusterEvent("storage.k8s.io/CSIDriver", fw.Action.UPDATE),
        fw.ClusterEvent("storage.k8s.io/CSIStorageCapacity", _ADDED_OR_CHANGED),
    )

    def __init__(self, args: VolumeBindingArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._claims = AssumeCache(PersistentVolumeClaim, lambda: handle.objects)
        self._volumes = AssumeCache(PersistentVolume, lambda: handle.objects)
        self._free_volumes = FreeVolumes(self._volumes, lambda: handle.objects)
        self._csi_nodes = CSINodes()
        self._binder = VolumeBinder(handle, self._volumes, self._claims, args.bind_timeout_seconds)

    # --- filter ----------------------------------------------------------------------------------

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if not pod.spec.volumes:
            return fw.SKIP
        try:
            claims = sort_claims(
                pod, self.handle.objects, self._claims, self._volumes, self._free_volumes
            )
        except Unusable as unusable:
            return unusable.status
        if claims is None:
            return fw.SKIP
        state[CLAIMS] = claims
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        claims = state.get(CLAIMS)
        if claims is None:
            return NO_STATE
        return find_pod_volumes(claims, node, self.handle.objects).status

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        claims = state.get(CLAIMS)
        if claims is None:
            return fw.Verdicts.passing(nodes).reject_all(NO_STATE)
        return filter_nodes(claims, nodes, self.handle.objects, self._csi_nodes)

    # --- score: only for profiles that name it, as in Kubernetes ---------------------------------

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.SKIP

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    # --- bind ------------------------------------------------------------------------------------

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        claims = state.get(CLAIMS)
        if claims is None or not claims.unbound:
            return fw.OK
        node = self.handle.nodes.get(node_name)
        if node is None:
            return fw.Status.error(not_found("node", node_name))
        pod_volumes = find_pod_volumes(claims, node, self.handle.objects)
        if not pod_volumes.status.ok:
            return pod_volumes.status
        try:
            state[RESERVATION] = self._binder.reserve(pod_volumes, node_name)
        except OutOfDate as changed:
            return fw.Status.error(str(changed))
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        reservation = state.get(RESERVATION)
        if reservation is not None:
            self._binder.release(reservation)
            del state[RESERVATION]

    def pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK if RESERVATION in state else fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        reservation = state.get(RESERVATION)
        if reservation is None:
            return fw.OK
        return await self._binder.bind(reservation, pod, node_name)

    # --- events ----------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, PersistentVolumeClaim):
            return uses_claim(pod, new)
        if isinstance(new, StorageClass) and isinstance(old, StorageClass):
            return old.allowed_topologies != new.allowed_topologies
        if isinstance(new, CSINode) and isinstance(old, CSINode):
            before, after = old.metadata.annotations, new.metadata.annotations
            return before.get(MIGRATED_PLUGINS, "") != after.get(MIGRATED_PLUGINS, "")
        if isinstance(new, CSIDriver) and isinstance(old, CSIDriver):
            return bool(old.spec.storage_capacity) and not new.spec.storage_capacity
        if isinstance(new, CSIStorageCapacity) and isinstance(old, CSIStorageCapacity):
            before_limit, limit = volume_limit(old), volume_limit(new)
            return limit is not None and (before_limit is None or limit.value > before_limit.value)
        return True
