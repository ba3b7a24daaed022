"""What a pod asks of a node: devices for its claims, and nodes from which its claims can be used.

Pods with equal asks get equal answers, so an ask holds nothing that only one pod has: the names
of claims are looked up again when the pod's node is known.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

import mooring.framework as fw
from mooring.api import core
from mooring.api.resource import MOST_SUBREQUESTS, ResourceClaim, ResourceClaimSpec
from mooring.api.selectors import NodeMatcher, compile_node_selector
from mooring.plugins._device_classes import ResourceClasses
from mooring.plugins.dynamicresources.claims import (
    claims_of,
    is_unavailable,
    waits_for_conditions,
)
from mooring.plugins.dynamicresources.devices import Devices
from mooring.plugins.dynamicresources.extended import (
    existing_claim,
    new_claim,
    requests_for,
)


class PodDeviceClaims(msgspec.Struct):
    """The claims of one pod: those that it names, then the one for extended resources."""

    named: list[ResourceClaim]
    special: ResourceClaim | None = None  # for extended resources

    @property
    def all(self) -> list[ResourceClaim]:
        return self.named if self.special is None else [*self.named, self.special]


class ExtendedAsk(msgspec.Struct, frozen=True):
    """Extended resources of which at least one is served by a device class."""

    scalars: tuple[tuple[str, int], ...]  # all extended resources of the pod
    is_made: bool  # a claim from before has requests: it is to be deleted first
    is_allocated: bool


class Ask(msgspec.Struct, frozen=True):
    """What pods with one cache key ask for."""

    has_named: bool
    selectors: tuple[NodeMatcher, ...]  # of claims that are allocated already
    is_unavailable: bool  # one of these cannot be used anywhere
    specs: tuple[ResourceClaimSpec, ...]  # of named claims that are not allocated
    extended: ExtendedAsk | None
    score: int  # of alternatives that were taken before
    is_timely: bool  # the answer depends on the time
    containers: Hashable = None  # which requests for extended resources follow from

    @property
    def allocates(self) -> bool:
        """Whether devices are to be found."""
        return bool(self.specs) or (self.extended is not None and not self.extended.is_allocated)


class RefusedAsk(Exception):
    """No node can serve the pod's claims as they are."""

    def __init__(self, status: fw.Status) -> None:
        super().__init__(status)
        self.status = status


class Asks:
    """Finds out what pods ask for."""

    def __init__(self, handle: fw.Handle, devices: Devices, classes: ResourceClasses) -> None:
        self._handle = handle
        self._devices = devices
        self.classes: ResourceClasses = classes

    def claims(self, pod: fw.Pod) -> PodDeviceClaims:
        """The claims of a pod. Raises Unusable."""
        found = PodDeviceClaims(claims_of(pod, self._devices.ledger))
        if self.classes.served(pod):
            found.special = existing_claim(pod, self._handle.objects) or new_claim(pod)
        return found

    def of(self, pod: fw.Pod, claims: PodDeviceClaims, timeout: float) -> Ask:
        """What the pod asks for; `timeout` of binding conditions. Raises Refused."""
        selectors: list[NodeMatcher] = []
        specs: list[ResourceClaimSpec] = []
        is_timely = unavailable = False
        score = 0
        now = self._handle.clock.now()
        for claim in claims.all:
            if claim.allocation is not None:
                score += score_of(claim)
                is_timely |= waits_for_conditions(claim)
                unavailable |= is_unavailable(claim, now, timeout)
                selector = claim.allocation.node_selector
                if selector is not None:
                    selectors.append(compile_node_selector(selector))
                continue
            if self._devices.ledger.pending(claim.uid) is not None:
                raise RefusedAsk(
                    fw.Status.unresolvable(
                        f"resource claim {claim.key} is in the process of being allocated"
                    )
                )
            if claim is not claims.special:
                self._check_classes(claim)
                specs.append(claim.spec)
        extended: ExtendedAsk | None = None
        containers: Hashable = None
        if claims.special is not None:
            extended = ExtendedAsk(
                self.classes.served(pod),
                bool(claims.special.spec.devices.requests),
                claims.special.allocation is not None,
            )
            containers = tuple(map(_outline, (*pod.spec.init_containers, *pod.spec.containers)))
        return Ask(
            bool(claims.named),
            tuple(selectors),
            unavailable,
            tuple(specs),
            extended,
            score,
            is_timely,
            (containers, len(pod.spec.init_containers)) if containers is not None else None,
        )

    def _check_classes(self, claim: ResourceClaim) -> None:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                self._check_class(request.exactly.device_class_name, request.name)
            elif request.first_available:
                for one in request.first_available:
                    self._check_class(one.device_class_name, f"{request.name}/{one.name}")
            else:
                text = f"resource claim {claim.key}, request {request.name}: unknown request type"
                raise RefusedAsk(fw.Status.unresolvable(text))

    def _check_class(self, name: str, request: str) -> None:
        if not name:
            raise RefusedAsk(fw.Status.error(f"request {request}: unsupported request type"))
        if not self.classes.exists(name):
            text = f"request {request}: device class {name} does not exist"
            raise RefusedAsk(fw.Status.unresolvable(text))

    def served_on(self, ask: Ask, node: fw.Node) -> tuple[str, ...] | None:
        """Extended resources that devices have to serve on a node; None: it cannot serve all."""
        assert ask.extended is not None
        found: list[str] = []
        for name, _ in ask.extended.scalars:
            if self.classes.class_of(name) is not None and not node.allocatable(name):
                found.append(name)
            elif name not in node.api.status.allocatable:
                return None
        return tuple(found)

    def specs_on(self, ask: Ask, pod: fw.Pod, served: tuple[str, ...]) -> list[ResourceClaimSpec]:
        """The specs of all claims that need devices, if these resources are served by devices."""
        specs = list(ask.specs)
        if ask.extended is not None and not ask.extended.is_allocated:
            specs.append(requests_for(pod, served, self.classes).spec)
        return specs


def score_of(claim: ResourceClaim) -> int:
    """The score of the alternatives that an allocated claim got."""
    assert claim.allocation is not None
    taken = {result.request for result in claim.allocation.devices.results}
    return sum(
        MOST_SUBREQUESTS - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, one in enumerate(request.first_available)
        if f"{request.name}/{one.name}" in taken
    )


def _outline(container: core.Container) -> Hashable:
    return (container.name, container.resources.requests, container.restart_policy)
