"""The claims of a pod: bound, to provision, or to match with a volume."""

import msgspec

import mooring.framework as fw
from mooring.api.selectors import SelectorError
from mooring.api.storage import StorageClass
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.plugins._volume_claims import (
    SELECTED_NODE,
    Unusable,
    claim_name,
    class_of_claim,
    is_bound,
    not_found,
    ownership_problem,
    requested_storage,
    waits_for_consumer,
)
from mooring.plugins.volumebinding.assume_cache import AssumeCache
from mooring.plugins.volumebinding.free_volumes import FreeVolumes
from mooring.plugins.volumebinding.matching import Candidates, candidates_for
from mooring.plugins.volumebinding.provisioning import Provision, provision_for


class UnboundClaim(msgspec.Struct, frozen=True, eq=False):
    """A claim that waits for a node to be chosen."""

    claim: PersistentVolumeClaim
    provision: Provision
    candidates: Candidates = Candidates()
    selected_node: str | None = None  # by an earlier attempt


class PodClaims(msgspec.Struct, frozen=True, eq=False):
    """All claims of a pod."""

    bound: tuple[PersistentVolume | None, ...]  # the volumes; None where one does not exist
    to_provision: tuple[UnboundClaim, ...]  # with a selected node: a volume is being provisioned
    to_match: tuple[UnboundClaim, ...]  # the others, by rising size: small ones get small volumes

    @property
    def unbound(self) -> tuple[UnboundClaim, ...]:
        return (*self.to_provision, *self.to_match)


UNBOUND_IMMEDIATE = fw.Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")


def sort_claims(
    pod: fw.Pod,
    objects: Objects,
    claims: AssumeCache[PersistentVolumeClaim],
    volumes: AssumeCache[PersistentVolume],
    free: FreeVolumes,
) -> PodClaims | None:
    """The pod's claims, None if it has none; `Unusable` if one can't be used."""
    known = _existing_claims(pod, claims)
    if not known:
        return None
    bound: list[PersistentVolume | None] = []
    unbound: list[UnboundClaim] = []
    is_complete = True
    for claim in map(claims.latest, known):
        if is_bound(claim):
            bound.append(volumes.get(claim.spec.volume_name))
            continue
        storage_class = _class_that_waits(claim, objects)
        if storage_class is None or claim.spec.volume_name:
            is_complete = False  # the volume controller is to bind it at once
        else:
            unbound.append(_unbound_claim(claim, storage_class, objects, volumes, free))
    if not is_complete:
        raise Unusable(UNBOUND_IMMEDIATE)
    to_match = [each for each in unbound if each.selected_node is None]
    to_match.sort(key=lambda each: requested_storage(each.claim))
    to_provision = tuple(each for each in unbound if each.selected_node is not None)
    return PodClaims(tuple(bound), to_provision, tuple(to_match))


def _existing_claims(
    pod: fw.Pod, claims: AssumeCache[PersistentVolumeClaim]
) -> list[PersistentVolumeClaim]:
    found = {}  # by name: a pod may mount one claim twice
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        is_named = volume.persistent_volume_claim is not None
        claim = claims.stored(name, pod.namespace)
        if claim is None:
            raise Unusable(fw.Status.unresolvable(_missing(name, is_named)))
        problem = _problem_of(pod, claim, is_named)
        if problem is not None:
            raise Unusable(fw.Status.unresolvable(problem))
        found[name] = claim
    return list(found.values())


def _missing(name: str, is_named: bool) -> str:
    if is_named:
        return not_found("persistentvolumeclaim", name)
    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'


def _problem_of(pod: fw.Pod, claim: PersistentVolumeClaim, is_named: bool) -> str | None:
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return (
            f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume'
            f' "{volume}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    return None if is_named else ownership_problem(pod, claim)


def _class_that_waits(claim: PersistentVolumeClaim, objects: Objects) -> StorageClass | None:
    """The claim's storage class, if its binding mode is WaitForFirstConsumer."""
    name = class_of_claim(claim)
    found = objects.get(StorageClass, name) if name else None
    if found is None:
        return None
    if found.volume_binding_mode is None:
        text = f'VolumeBindingMode not set for StorageClass "{name}"'
        raise Unusable(fw.Status.error(text))
    return found if waits_for_consumer(found) else None


def _unbound_claim(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    objects: Objects,
    volumes: AssumeCache[PersistentVolume],
    free: FreeVolumes,
) -> UnboundClaim:
    provision = provision_for(claim, storage_class, objects)
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected is not None:
        return UnboundClaim(claim, provision, selected_node=selected)
    try:
        candidates = candidates_for(claim, free, volumes, objects)
    except SelectorError as error:
        text = f"error creating internal label selector for claim: {claim.key}: {error}"
        raise Unusable(fw.Status.error(text)) from error
    return UnboundClaim(claim, provision, candidates)
