"""Binding of claims: write static bindings and selected nodes, then wait until all are bound.

The volume controller completes a static binding on both sides, a driver provisions the volume of a
claim with a selected node. Both report by changing the same objects, which are polled here.
"""

from typing import Final

import msgspec
from msgspec import structs

import mooring.framework as fw
from mooring.api.frozen import FrozenDict
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.errors import ApiError
from mooring.plugins._csi_migration import Untranslatable
from mooring.plugins._volume_claims import SELECTED_NODE, is_bound, not_found
from mooring.plugins.volumebinding.assume_cache import AssumeCache, OutOfDate
from mooring.plugins.volumebinding.pod_volumes import PodVolumes, is_volume_reachable

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
POLL: Final = 1.0  # seconds
TIMED_OUT: Final = "context deadline exceeded"


class StaticBinding(msgspec.Struct, frozen=True):
    """A volume with its claim in `claimRef`, and the claim."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class Reservation(msgspec.Struct):
    """The changed objects of a pod on its node, and those of them that are not written yet."""

    static_bindings: tuple[StaticBinding, ...]
    dynamic_provisions: tuple[PersistentVolumeClaim, ...]  # claims with the node selected
    unwritten_volumes: list[PersistentVolume]
    unwritten_claims: list[PersistentVolumeClaim]


class BindingFailed(Exception):
    """The pod has to be scheduled again."""


class VolumeBinder:
    """Reserves and binds pod volumes; the changed objects are assumed meanwhile."""

    def __init__(
        self,
        handle: fw.Handle,
        volumes: AssumeCache[PersistentVolume],
        claims: AssumeCache[PersistentVolumeClaim],
        timeout: float,
    ) -> None:
        self._handle = handle
        self._volumes = volumes
        self._claims = claims
        self._timeout = timeout  # seconds

    # --- in memory -------------------------------------------------------------------------------

    def reserve(self, pod_volumes: PodVolumes, node_name: str) -> Reservation:
        """Assume the changed objects; OutOfDate, and nothing assumed, if one is out of date."""
        reservation = Reservation(
            static_bindings=tuple(
                StaticBinding(with_claim_ref(volume, to), to)
                for volume, to in pod_volumes.static_bindings
            ),
            dynamic_provisions=tuple(
                with_selected_node(claim, node_name) for claim in pod_volumes.dynamic_provisions
            ),
            unwritten_volumes=[],
            unwritten_claims=[],
        )
        try:
            for binding in reservation.static_bindings:
                self._volumes.assume(binding.volume)
                reservation.unwritten_volumes.append(binding.volume)
            for claim in reservation.dynamic_provisions:
                self._claims.assume(claim)
                reservation.unwritten_claims.append(claim)
        except OutOfDate:
            self.release(reservation)
            raise
        return reservation

    def release(self, reservation: Reservation) -> None:
        for volume in reservation.unwritten_volumes:
            self._volumes.restore(volume)
        for claim in reservation.unwritten_claims:
            self._claims.restore(claim)

    # --- on the API server -----------------------------------------------------------------------

    async def bind(self, reservation: Reservation, pod: fw.Pod, node_name: str) -> fw.Status:
        """Write everything, then check once a second until all is bound."""
        try:
            await self._write(reservation, node_name)
        except ApiError as error:
            return fw.Status.error(str(error))
        clock = self._handle.clock
        deadline = clock.now() + self._timeout
        problem = TIMED_OUT
        try:
            while (left := deadline - clock.now()) > 0:
                await clock.sleep(min(POLL, left))
                if self._is_done(reservation, pod, node_name):
                    self._tidy(reservation)
                    return fw.OK
        except BindingFailed as failure:
            problem = str(failure)
        self._tidy(reservation)
        return fw.Status.error(f"binding volumes: {problem}")

    async def _write(self, reservation: Reservation, node_name: str) -> None:
        client = self._handle.client
        for binding in reservation.static_bindings:
            volume = binding.volume
            stored = self._volumes.stored(volume.name)
            if stored is None or not _refers_to(stored, binding.claim):
                await client.update(volume)
            reservation.unwritten_volumes.remove(volume)
        for claim in reservation.dynamic_provisions:
            stored_claim = self._claims.stored(claim.name, claim.namespace)
            if stored_claim is None or _selected_node(stored_claim) != node_name:
                await client.update(claim)
            reservation.unwritten_claims.remove(claim)

    def _tidy(self, reservation: Reservation) -> None:
        """Forget assumptions that the watch has overtaken: reading them does that."""
        for binding in reservation.static_bindings:
            self._volumes.get(binding.volume.name)
        for claim in reservation.dynamic_provisions:
            self._claims.get(claim.name, claim.namespace)

    # --- checking --------------------------------------------------------------------------------

    def _is_done(self, reservation: Reservation, pod: fw.Pod, node_name: str) -> bool:
        """Whether all claims are bound. BindingFailed if they never will be."""
        node = self._handle.nodes.get(node_name)
        if node is None:
            missing = not_found("node", node_name)
            raise BindingFailed(f'failed to get node "{node_name}": {missing}')
        if all(other.uid != pod.uid for other in node.pods):
            # An assumed pod that is deleted is removed from its node at once.
            missing = not_found("pod", pod.name)
            raise BindingFailed(f"pod does not exist any more: {missing}")
        return all(
            self._is_bound(binding, node) for binding in reservation.static_bindings
        ) and all(self._is_provisioned(claim, node) for claim in reservation.dynamic_provisions)

    def _is_bound(self, binding: StaticBinding, node: fw.Node) -> bool:
        ours = binding.volume
        volume = self._volumes.stored(ours.name)
        if volume is None:
            missing = not_found("persistentvolumes", ours.name)
            raise BindingFailed(f"failed to check binding: {missing}")
        claim = self._claims.stored(binding.claim.name, binding.claim.namespace)
        if claim is None:
            missing = not_found("persistentvolumeclaims", binding.claim.key)
            raise BindingFailed(f"failed to check binding: {missing}")
        if _is_not_seen_yet(ours, volume) and not _refers_to(volume, binding.claim):
            return False
        self._check_node_affinity(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f'ClaimRef got reset for pv "{volume.name}"')
        return is_bound(claim)

    def _is_provisioned(self, ours: PersistentVolumeClaim, node: fw.Node) -> bool:
        claim = self._claims.stored(ours.name, ours.namespace)
        if claim is None:
            missing = not_found("persistentvolumeclaims", ours.key)
            raise BindingFailed(f"failed to check provisioning pvc: {missing}")
        if _selected_node(claim) != node.name:
            if _is_not_seen_yet(ours, claim):
                return False
            if not claim.metadata.annotations:
                raise BindingFailed(f'selectedNode annotation reset for PVC "{claim.name}"')
            # A driver that fails removes the selected node, so that another can be tried.
            raise BindingFailed(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.stored(claim.spec.volume_name)
            if volume is None:
                return False  # the watch may not have shown it yet
            self._check_node_affinity(volume, node)
        return is_bound(claim)

    def _check_node_affinity(self, volume: PersistentVolume, node: fw.Node) -> None:
        try:
            within = is_volume_reachable(volume, node.name, node.labels, self._handle.objects)
        except Untranslatable as problem:
            text = f"failed to translate pv to csi: could not translate pv: {problem}"
            raise BindingFailed(text) from problem
        if not within:
            raise BindingFailed(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}":'
                " no matching NodeSelectorTerms"
            )


def with_claim_ref(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with the claim in `claimRef`; a prebound volume gets no annotation."""
    if _refers_to(volume, claim):
        return volume
    metadata = volume.metadata
    if volume.spec.claim_ref is None:
        annotations = FrozenDict({**metadata.annotations, BOUND_BY_CONTROLLER: "yes"})
        metadata = structs.replace(metadata, annotations=annotations)
    spec = structs.replace(volume.spec, claim_ref=claim.reference)
    return structs.replace(volume, metadata=metadata, spec=spec)


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim, annotated with the node for which its volume is to be provisioned."""
    annotations = FrozenDict({**claim.metadata.annotations, SELECTED_NODE: node_name})
    metadata = structs.replace(claim.metadata, annotations=annotations)
    return structs.replace(claim, metadata=metadata)


def _refers_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    named = volume.spec.claim_ref
    return named is not None and (named.namespace, named.name, named.uid) == (
        claim.namespace,
        claim.name,
        claim.uid,
    )


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return claim.metadata.annotations.get(SELECTED_NODE)


def _is_not_seen_yet(
    ours: PersistentVolume | PersistentVolumeClaim, stored: PersistentVolume | PersistentVolumeClaim
) -> bool:
    """Whether the watch still shows the version that ours was made from."""
    return ours.metadata.resource_version == stored.metadata.resource_version
