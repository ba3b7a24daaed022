"""Extended resources that are served by devices: which class, and the claim made for a pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

import mooring.framework as fw
from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import ObjectMeta, OwnerReference
from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.api.resource import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from mooring.cache.objects import Objects
from mooring.plugins._device_classes import ResourceClasses

IN_MEMORY: Final = "<extended-resources>"
"""The name of the claim until it is created."""
_NANOS: Final = 10**9


def existing_claim(pod: fw.Pod, objects: Objects) -> ResourceClaim | None:
    """The claim that an earlier attempt has created for the pod's extended resources."""
    for claim in objects.select(ResourceClaim, _owner, pod.api.metadata.uid):
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and any(
            owner.controller and owner.name == pod.name and owner.uid == pod.api.metadata.uid
            for owner in claim.metadata.owner_references
        ):
            return claim
    return None


def _owner(claim: ResourceClaim) -> str:
    owner = claim.metadata.controller
    return owner.uid if owner is not None else ""


def new_claim(pod: fw.Pod) -> ResourceClaim:
    """The claim as it is before a node is known; it has no requests yet."""
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.api.metadata.uid, controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=IN_MEMORY,
            namespace=pod.namespace,
            generate_name=f"{pod.name}-extended-resources-",
            uid=f"{pod.uid}/{IN_MEMORY}",
            annotations=FrozenDict({EXTENDED_RESOURCE_CLAIM: "true"}),
            owner_references=(owner,),
        )
    )


class Requests(msgspec.Struct, frozen=True):
    """The requests of a claim for extended resources, and which containers they serve."""

    spec: ResourceClaimSpec
    mappings: tuple[core.ContainerExtendedResourceRequest, ...]


def requests_for(pod: fw.Pod, resources: Iterable[str], classes: ResourceClasses) -> Requests:
    """Requests for those resources of a pod that a node does not offer itself."""
    spec = pod.spec
    containers = (*spec.init_containers, *spec.containers)
    ordinary = [  # init containers that end before the others start
        place
        for place, container in enumerate(spec.init_containers)
        if container.restart_policy != "Always"
    ]
    lasting = [place for place in range(len(containers)) if place not in ordinary]
    requests: list[DeviceRequest] = []
    mappings: list[core.ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        class_name = classes.class_of(resource)
        if class_name is None:
            continue
        found: dict[int, DeviceRequest] = {}
        for place in lasting:
            request, names = _requested(place, containers[place], resource, class_name, ())
            if request is not None:
                found[place] = request
            mappings += _mapped(containers[place], resource, names)
        largest: DeviceRequest | None = None
        wanted: list[tuple[int, list[str], str]] = []
        for place in ordinary:
            reusable = [found[other] for other in sorted(found) if other >= place]
            request, names = _requested(place, containers[place], resource, class_name, reusable)
            own = ""
            if request is not None:
                own = request.name
                if largest is None or _count(largest) < _count(request):
                    largest = request
            wanted.append((place, names, own))
        for place, names, own in wanted:
            if own and largest is not None:
                names = [largest.name if name == own else name for name in names]
            mappings += _mapped(containers[place], resource, names)
        if largest is not None:
            requests.append(largest)
        requests += found.values()
    requests.sort(key=lambda request: request.name)
    return Requests(
        ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests))), tuple(mappings)
    )


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _requested(
    place: int,
    container: core.Container,
    resource: str,
    class_name: str,
    reusable: Sequence[DeviceRequest],
) -> tuple[DeviceRequest | None, list[str]]:
    """The request of a container beyond what it can use of others, and the names of all."""
    asked = container.resources.requests
    quantity = asked.get(resource)
    if quantity is None:
        return None, []
    whole, rest = divmod(quantity.nanos, _NANOS)
    if rest or not whole or not INT64_MIN <= whole <= INT64_MAX:
        return None, []
    names: list[str] = []
    covered = 0
    for request in reusable:
        covered += _count(request)
        names.append(request.name)
        if covered >= whole:
            return None, names
    number = sorted(asked).index(resource)
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode=EXACT_COUNT, count=whole - covered
    )
    request = DeviceRequest(name=f"container-{place}-request-{number}", exactly=exactly)
    return request, [*names, request.name]


def _mapped(
    container: core.Container, resource: str, names: Iterable[str]
) -> list[core.ContainerExtendedResourceRequest]:
    return [
        core.ContainerExtendedResourceRequest(
            container_name=container.name, resource_name=resource, request_name=name
        )
        for name in names
    ]
