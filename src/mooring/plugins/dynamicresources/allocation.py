"""The allocation of a claim, written out from a solution: devices, configuration, node selector."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence

from mooring.api.meta import NO_RESOURCES, ResourceList
from mooring.api.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from mooring.api.selectors import NODE_NAME_FIELD
from mooring.plugins.dynamicresources.capacity import wanted
from mooring.plugins.dynamicresources.pools import PoolDevice
from mooring.plugins.dynamicresources.problem import Content
from mooring.plugins.dynamicresources.requests import ClaimRequests, DeviceDemand, WantedDevices
from mooring.plugins.dynamicresources.search import Pick, Solution

NewId = Callable[[], str]


def random_id() -> str:
    return str(uuid.uuid4())


def allocations(
    demand: DeviceDemand,
    content: Content,
    solution: Solution,
    node_name: str,
    new_id: NewId = random_id,
) -> list[AllocationResult]:
    """One allocation for each claim of the demand."""
    requests = demand.requests
    return [
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(
                    _result(requests[pick.request], content.devices[pick.device], new_id)
                    for pick in picks
                ),
                config=tuple(_config(claim, chosen)),
            ),
            node_selector=_node_selector(_devices(content, picks), node_name),
        )
        for claim, picks, chosen in zip(
            demand.claims, solution.picks, solution.alternatives, strict=True
        )
    ]


def _devices(content: Content, picks: Iterable[Pick]) -> list[PoolDevice]:
    return [content.devices[pick.device] for pick in picks]


def _result(
    request: WantedDevices, picked: PoolDevice, new_id: NewId
) -> DeviceRequestAllocationResult:
    device = picked.device
    driver, pool, name = picked.id
    is_shared = device.allow_multiple_allocations
    consumed = wanted(request.capacity, device.capacity) if is_shared else None
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if request.is_admin else None,
        tolerations=request.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=new_id() if is_shared else None,
        consumed_capacity=ResourceList(consumed) if consumed else NO_RESOURCES,
    )


def _config(claim: ClaimRequests, chosen: Sequence[int]) -> Iterable[DeviceAllocationConfiguration]:
    taken = [slot[place] for slot, place in zip(claim.slots, chosen, strict=True)]
    names: dict[str, list[str]] = {}  # of the requests that use a class
    for request in taken:
        names.setdefault(request.class_name, []).append(request.full_name)
    by_name = {one.class_name: one.device_class for one in taken}
    for class_name, requests in names.items():
        device_class = by_name[class_name]
        if device_class is not None:
            for config in device_class.spec.config:
                yield DeviceAllocationConfiguration(
                    source="FromClass", requests=tuple(requests), opaque=config.opaque
                )
    for wish in claim.spec.devices.config:
        found = DeviceAllocationConfiguration(
            source="FromClaim", requests=wish.requests, opaque=wish.opaque
        )
        if not wish.requests:
            yield found
        for request in taken:
            if request.slot in wish.requests or request.full_name in wish.requests:
                yield found


def _node_selector(devices: Iterable[PoolDevice], node_name: str) -> NodeSelector | None:
    """From which nodes the devices can be used; None: from all."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for one in devices:
        spec = one.slice.spec
        selection = one.device if spec.per_device_node_selection else spec
        if selection.node_name is not None or one.device.binds_to_node:
            only = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        if selection.node_selector is not None:
            for term in selection.node_selector.node_selector_terms[:1]:
                _add(fields, term.match_fields)
                _add(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    """Requirements that are not there yet, whatever the order of their values."""
    for one in more:
        if not any(
            (one.key, one.operator, set(one.values))
            == (other.key, other.operator, set(other.values))
            for other in known
        ):
            known.append(one)
