"""The claims of a pod: which they are, whether they can be used, and whether they are ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import mooring.framework as fw
from mooring.api import core
from mooring.api.meta import Condition, parse_time
from mooring.api.resource import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from mooring.plugins.dynamicresources.ledger import Ledger

_CONDITION_TRUE: Final = "True"


class UnusableClaim(Exception):
    """A claim of the pod is missing, or not the pod's to use; no node can change that."""


class ClaimBindingFailed(Exception):
    """A driver reports that a device cannot be bound."""


def claim_name(pod: fw.Pod, entry: core.PodResourceClaim) -> str | None:
    """The claim behind an entry of `spec.resourceClaims`; None: there is meant to be none."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        raise UnusableClaim(
            f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields'
            " are set"
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise UnusableClaim(f'pod "{pod.key}": ResourceClaim not created yet')


def claim_names(pod: fw.Pod) -> Iterator[tuple[str, core.PodResourceClaim]]:
    """The names of the pod's claims, in order. Raises Unusable."""
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is not None:
            yield name, entry


def claims_of(pod: fw.Pod, ledger: Ledger) -> list[ResourceClaim]:
    """The claims that a pod names, in order. Raises Unusable."""
    found: list[ResourceClaim] = []
    for name, entry in claim_names(pod):
        claim = ledger.get(pod.namespace, name)
        if claim is None:
            raise UnusableClaim(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise UnusableClaim(f'resourceclaim "{claim.name}" is being deleted')
        if entry.resource_claim_name is None and not is_owned_by(claim, pod):
            raise UnusableClaim(
                f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
            )
        found.append(claim)
    return found


def is_owned_by(claim: ResourceClaim, pod: fw.Pod) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.api.metadata.uid


# --- binding conditions ---------------------------------------------------------------------------


def waits_for_conditions(claim: ResourceClaim) -> bool:
    """Whether a driver has to report that devices are ready before the pod can be bound."""
    return any(result.binding_conditions for result in _results(claim))


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all devices are ready. Raises BindingFailed."""
    if claim.allocation is None:
        return False
    for result in _results(claim):
        if not result.binding_conditions:
            continue
        device = _status_of(claim, result)
        if device is None:
            return False
        conditions = {one.type: one for one in device.conditions}
        for name in result.binding_failure_conditions:
            if _is_true(conditions.get(name)):
                failed = conditions[name]
                raise ClaimBindingFailed(
                    f"device binding failed: claim={claim.name}, reason={failed.reason},"
                    f' message="{failed.message}"'
                )
        if not all(_is_true(conditions.get(name)) for name in result.binding_conditions):
            return False
    return True


def is_overdue(claim: ResourceClaim, now: float, timeout: float) -> bool:
    """Whether devices have not become ready in time since they were allocated."""
    allocation = claim.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if not waits_for_conditions(claim):
        return False
    return parse_time(allocation.allocation_timestamp) + timeout < now


def is_unavailable(claim: ResourceClaim, now: float, timeout: float) -> bool:
    """Whether an allocated claim can't be used: its binding failed or took too long."""
    if not waits_for_conditions(claim):
        return False
    try:
        return not is_ready(claim) and is_overdue(claim, now, timeout)
    except ClaimBindingFailed:
        return True


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    return claim.allocation.devices.results if claim.allocation is not None else ()


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    for device in claim.status.devices:
        if (device.driver, device.pool, device.device) == wanted:
            return device
    return None


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status == _CONDITION_TRUE
