"""What would make room for the claims of a pod: smaller requests, tolerations, claims that end.

Each edit is checked here against the devices of one node; the whole pod is tried out elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Final

from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.resource import (
    EXACT_COUNT,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
)
from mooring.api.taints import tolerates
from mooring.framework.explaining import MOST_ENDING, Edit, ObjectChange, gone, listed
from mooring.plugins.dynamicresources.ask import Ask, Asks
from mooring.plugins.dynamicresources.claims import UnusableClaim
from mooring.plugins.dynamicresources.devices import Devices
from mooring.plugins.dynamicresources.extended import IN_MEMORY
from mooring.plugins.dynamicresources.ledger import ClaimKey, UsedDevices, count
from mooring.plugins.dynamicresources.requests import is_preventing, taint_text
from mooring.plugins.dynamicresources.search import OutOfTime, Solution
from mooring.plugins.noderesources.shortages import asking_for

_MOST_TRIED: Final = 40  # claims that could end, tried one by one
_LONGEST: Final = 0.2  # seconds for one search


class DeviceRemedies:
    """Edits with which the devices of one node would serve a pod."""

    def __init__(self, devices: Devices, asks: Asks, pod: fw.Pod, ask: Ask, node: fw.Node) -> None:
        self._devices = devices
        self._asks = asks
        self._pod = pod
        self._ask = ask
        self._node = node
        served = asks.served_on(ask, node) if ask.extended is not None else ()
        self._served = served or ()
        self._specs = asks.specs_on(ask, pod, self._served)
        self._claims = [one for one in asks.claims(pod).all if one.allocation is None]
        self._in_the_way: list[DeviceTaint] = []

    def edits(self) -> Iterator[Edit]:
        yield from self._changed_requests()
        yield from self._freed()
        yield from self._untainted()

    # --- smaller requests ------------------------------------------------------------------------

    def _changed_requests(self) -> Iterator[Edit]:
        for place, claim in enumerate(self._claims):
            if claim.name == IN_MEMORY:
                yield from self._smaller_resources(place)
                continue
            spec = self._specs[place]
            for number, request in enumerate(spec.devices.requests):
                if request.exactly is not None:
                    yield from self._changed_request(place, claim, number, request.exactly)
            for number, constraint in enumerate(spec.devices.constraints):
                attribute = constraint.match_attribute or constraint.distinct_attribute
                kept = (*spec.devices.constraints[:number], *spec.devices.constraints[number + 1 :])
                devices = structs.replace(spec.devices, constraints=kept)
                other = structs.replace(spec, devices=devices)
                word = "equal" if constraint.match_attribute else "different"
                text = f"do not ask for {word} {attribute}"
                yield from self._checked(place, claim, other, text, cost=2)

    def _changed_request(
        self, place: int, claim: ResourceClaim, number: int, asked: ExactDeviceRequest
    ) -> Iterator[Edit]:
        name = claim.spec.devices.requests[number].name
        spec = self._specs[place]

        def changed(**fields: object) -> ResourceClaimSpec:
            return with_request(spec, number, structs.replace(asked, **fields))

        for taint in self._taints(asked.tolerations):
            one = DeviceToleration(
                key=taint.key, operator="Equal", value=taint.value, effect=taint.effect
            )
            text = f"tolerate {taint_text(taint)} of devices in request {name}"
            more = changed(tolerations=(*asked.tolerations, one))
            if self._serves(self._with(place, more)):
                self._in_the_way.append(taint)
                yield self._edit(claim, more, text)
        if asked.allocation_mode == EXACT_COUNT:
            for fewer in range(asked.count - 1, 0, -1):
                if self._serves(self._with(place, changed(count=fewer))):
                    text = f"ask for {fewer} instead of {asked.count} in request {name}"
                    yield self._edit(
                        claim, changed(count=fewer), text, amount=float(asked.count - fewer)
                    )
                    break
        for at, selector in enumerate(asked.selectors):
            if selector.cel is not None:
                kept = (*asked.selectors[:at], *asked.selectors[at + 1 :])
                text = f"drop {selector.cel.expression} of request {name}"
                yield from self._checked(place, claim, changed(selectors=kept), text, cost=1)

    def _smaller_resources(self, place: int) -> Iterator[Edit]:
        """Less of an extended resource that devices serve."""
        for resource in self._served:
            for units in range(self._pod.requests(resource) - 1, 0, -1):
                pod = fw.Pod(asking_for(self._pod.api, resource, units))
                if self._serves(self._asks.specs_on(self._ask, pod, self._served)):
                    yield Edit.of_pod(
                        f"ask for {units} {resource} or less",
                        partial(asking_for, resource=resource, units=units),
                        family=f"request {resource}",
                        amount=float(self._pod.requests(resource) - units),
                    )
                    break

    def _checked(
        self, place: int, claim: ResourceClaim, spec: ResourceClaimSpec, text: str, cost: int = 0
    ) -> Iterator[Edit]:
        if self._serves(self._with(place, spec)):
            yield self._edit(claim, spec, text, cost=cost)

    def _with(self, place: int, spec: ResourceClaimSpec) -> list[ResourceClaimSpec]:
        return [*self._specs[:place], spec, *self._specs[place + 1 :]]

    def _edit(
        self,
        claim: ResourceClaim,
        spec: ResourceClaimSpec,
        text: str,
        *,
        amount: float = 0.0,
        cost: int = 0,
    ) -> Edit:
        """Another spec of a claim: a spec cannot be changed, so that it is a new claim."""
        change = ObjectChange(ResourceClaim, claim.namespace, claim.name, _with_spec(spec))
        return Edit(
            target="pod",
            text=f"{text} of claim {claim.key}",
            changes=(change,),
            family=f"{text.partition(' ')[0]} {claim.key}",
            amount=amount,
            cost=cost,
        )

    def _serves(self, specs: Sequence[ResourceClaimSpec], used: UsedDevices | None = None) -> bool:
        """Whether the devices of the node serve these specs; also with others in use."""
        demand = self._devices.demand(specs)
        try:
            _, outcome = self._devices.solve(demand, self._node, _LONGEST, used)
        except OutOfTime:
            return False
        return isinstance(outcome, Solution)

    # --- devices given back ----------------------------------------------------------------------

    def _freed(self) -> Iterator[Edit]:
        """The fewest claims whose end makes room."""
        content = self._devices.content(self._node)
        held = self._devices.ledger.held_in(pool.id for pool in content.pools)

        def suffices(ended: Sequence[ClaimKey]) -> bool:
            used: UsedDevices = {}
            for key, allocation in held.items():
                if key not in ended:
                    deque(count(used, allocation, 1), maxlen=0)
            return self._serves(self._specs, used)

        tried = sorted(held, key=self._users)[:_MOST_TRIED]
        alone = next((key for key in tried if suffices([key])), None)
        if alone is not None:
            yield self._end([alone])
            return
        ended: list[ClaimKey] = []
        for key in tried:
            ended.append(key)
            if suffices(ended):
                break
        else:
            return
        for key in ended[:-1]:
            fewer = [one for one in ended if one != key]
            if suffices(fewer):
                ended = fewer
        if len(ended) <= MOST_ENDING:
            yield self._end(ended)

    def _users(self, key: ClaimKey) -> tuple[int, ClaimKey]:
        claim = self._devices.ledger.get(*key)
        return len(claim.status.reserved_for) if claim is not None else 0, key

    def _end(self, keys: Sequence[ClaimKey]) -> Edit:
        found = [self._devices.ledger.get(*key) for key in keys]
        return released([one for one in found if one is not None], self._node.name)

    # --- taints ----------------------------------------------------------------------------------

    def _taints(self, tolerations: Sequence[DeviceToleration]) -> list[DeviceTaint]:
        """Taints of devices here that a request does not tolerate."""
        every = (
            taint
            for one in self._devices.content(self._node).devices
            for taint in one.device.taints
            if is_preventing(taint) and not any(tolerates(t, taint) for t in tolerations)
        )
        return list(dict.fromkeys(every))

    def _untainted(self) -> Iterator[Edit]:
        for taint in self._in_the_way:
            slices = dict.fromkeys(
                one.slice.name
                for one in self._devices.content(self._node).devices
                if taint in one.device.taints
            )
            changes = tuple(ObjectChange(ResourceSlice, "", n, _without(taint)) for n in slices)
            text = f"the driver removes {taint_text(taint)} from its devices of {self._node.name}"
            yield Edit(target="others", text=text, changes=changes, family=f"remove {taint.key}")


# --- edits ----------------------------------------------------------------------------------------


def released(claims: Sequence[ResourceClaim], node_name: str = "") -> Edit:
    """Claims lose their devices: the pods that use them end."""
    changes: list[ObjectChange] = []
    pods: list[str] = []
    for claim in claims:
        for user in claim.status.reserved_for:
            if user.resource == "pods":
                pods.append(f"{claim.namespace}/{user.name}")
                changes.append(ObjectChange(core.Pod, claim.namespace, user.name, gone))
        owner = claim.metadata.controller
        to = gone if owner is not None and owner.kind == "Pod" else _deallocated
        changes.append(ObjectChange(ResourceClaim, claim.namespace, claim.name, to))
    names = listed(claim.key for claim in claims)
    where = f" of {node_name}" if node_name else ""
    pods = list(dict.fromkeys(pods))
    if pods:
        text = f"{listed(pods)} end{'s' if len(pods) == 1 else ''}: devices{where} of {names}"
        text = f"{text} are free"
    else:
        text = f"{names} give{'s' if len(claims) == 1 else ''} back devices{where}"
    return Edit(
        target="others", text=text, changes=tuple(changes), family="devices", cost=len(changes)
    )


def before_nodes(asks: Asks, pod: fw.Pod) -> Iterator[Edit]:
    """For a pod whose claims name classes that do not exist."""
    known = [one.name for one in asks.classes.all()]
    try:
        claims = asks.claims(pod).named
    except UnusableClaim:
        return
    for claim in claims:
        yield from _other_classes(claim, known)


def _other_classes(claim: ResourceClaim, known: Sequence[str]) -> Iterator[Edit]:
    """Requests of classes that do not exist, with the class whose name is nearest."""
    for number, request in enumerate(claim.spec.devices.requests):
        asked = request.exactly
        if asked is None or asked.device_class_name in known:
            continue
        for near in get_close_matches(asked.device_class_name, known, 2):
            spec = with_request(claim.spec, number, structs.replace(asked, device_class_name=near))
            text = f"request {request.name} of claim {claim.key} with class {near}"
            change = ObjectChange(ResourceClaim, claim.namespace, claim.name, _with_spec(spec))
            yield Edit(target="pod", text=text, changes=(change,), family=f"class {request.name}")


def with_request(
    spec: ResourceClaimSpec, number: int, asked: ExactDeviceRequest
) -> ResourceClaimSpec:
    """A spec with another request in one place."""
    requests = list(spec.devices.requests)
    requests[number] = structs.replace(requests[number], exactly=asked)
    devices = structs.replace(spec.devices, requests=tuple(requests))
    return structs.replace(spec, devices=devices)


def _with_spec(spec: ResourceClaimSpec) -> Callable[[ResourceClaim], ResourceClaim]:
    return lambda claim: structs.replace(claim, spec=spec)


def _deallocated(claim: ResourceClaim) -> ResourceClaim:
    return structs.replace(claim, status=ResourceClaimStatus())


def _without(taint: DeviceTaint) -> Callable[[ResourceSlice], ResourceSlice]:
    def to(slice_: ResourceSlice) -> ResourceSlice:
        devices = tuple(
            structs.replace(one, taints=tuple(t for t in one.taints if t != taint))
            for one in slice_.spec.devices
        )
        return structs.replace(slice_, spec=structs.replace(slice_.spec, devices=devices))

    return to
