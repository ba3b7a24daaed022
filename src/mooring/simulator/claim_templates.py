"""Claims of pods in a cluster in memory: made from templates, given back when a pod is gone.

In a cluster with an API server, the resourceclaim controller does this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from msgspec import structs

from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import OwnerReference
from mooring.api.resource import ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate
from mooring.lens.snapshot import ClusterState

_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


def with_claims(
    pod: core.Pod, template_of: Callable[[str], ResourceClaimTemplate | None]
) -> tuple[core.Pod, list[ResourceClaim]]:
    """A pod with the claims that templates make for it, and those claims."""
    known = {status.name for status in pod.status.resource_claim_statuses}
    made: list[ResourceClaim] = []
    statuses = list(pod.status.resource_claim_statuses)
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_template_name
        template = template_of(name) if name is not None and entry.name not in known else None
        if template is None:
            continue
        claim = _claim(pod, entry.name, template)
        made.append(claim)
        statuses.append(
            core.PodResourceClaimStatus(name=entry.name, resource_claim_name=claim.name)
        )
    if not made:
        return pod, made
    status = structs.replace(pod.status, resource_claim_statuses=tuple(statuses))
    return structs.replace(pod, status=status), made


def _claim(pod: core.Pod, entry: str, template: ResourceClaimTemplate) -> ResourceClaim:
    meta = template.spec.metadata
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    metadata = structs.replace(
        meta,
        name=f"{pod.name}-{entry}",
        namespace=pod.namespace,
        uid=f"{pod.uid}/{entry}",
        annotations=FrozenDict({**meta.annotations, _POD_CLAIM_NAME: entry}),
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def claim_names(pod: core.Pod) -> Iterator[str]:
    """The names of all claims that a pod uses."""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name is not None:
            yield status.resource_claim_name
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name


def left_of(claim: ResourceClaim, is_gone: Callable[[str], bool]) -> ResourceClaim | None:
    """A claim once pods with some uids are gone; None if it goes with its pod."""
    owner = claim.metadata.controller
    if owner is not None and owner.kind == "Pod" and is_gone(owner.uid):
        return None
    users = claim.status.reserved_for
    left = tuple(user for user in users if user.resource != "pods" or not is_gone(user.uid))
    if len(left) == len(users):
        return claim
    if left:
        return structs.replace(claim, status=structs.replace(claim.status, reserved_for=left))
    return structs.replace(claim, status=ResourceClaimStatus())


def released(cluster: ClusterState, moving: Collection[str]) -> ClusterState:
    """The cluster with the devices given back of pods that are gone, or lost their node (uids)."""
    if not cluster.resourceclaims:
        return cluster
    there = {pod.uid for pod in cluster.pods}
    kept: list[ResourceClaim] = []
    for claim in cluster.resourceclaims:
        left = left_of(claim, lambda uid: uid not in there)
        if left is not None and any(user.uid in moving for user in left.status.reserved_for):
            users = tuple(user for user in left.status.reserved_for if user.uid not in moving)
            status = structs.replace(left.status, reserved_for=users)
            left = structs.replace(left, status=status if users else ResourceClaimStatus())
        if left is not None:
            kept.append(left)
    return structs.replace(cluster, resourceclaims=tuple(kept))
