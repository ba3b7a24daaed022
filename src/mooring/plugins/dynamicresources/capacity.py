"""Consumable capacity: how much of a device a request takes, and whether a policy allows that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mooring.api.quantity import Format, Quantity
from mooring.api.resource import (
    Capacities,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)

_NANOS: Final = 10**9


def wanted(requests: Mapping[str, Quantity], capacities: Capacities) -> dict[str, Quantity] | None:
    """What a request takes of each capacity of a device; None: the device does not allow it."""
    if any(name not in capacities for name in requests):
        return None
    found: dict[str, Quantity] = {}
    for name, capacity in capacities.items():
        amount = _amount(requests.get(name), capacity)
        if _is_against(amount, capacity.request_policy):
            return None
        found[name] = amount
    return found


def _amount(asked: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    policy = capacity.request_policy
    if asked is None:
        return policy.default if policy is not None and policy.default else capacity.value
    if policy is None:
        return asked
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(asked, policy.valid_range.min, policy.valid_range)
    return next((valid for valid in policy.valid_values if asked <= valid), asked)


def _rounded_up(asked: Quantity, least: Quantity, span: CapacityRequestPolicyRange) -> Quantity:
    if asked < least:
        return least
    if span.step is None or not span.step.value:
        return asked
    steps = -(-(asked.value - least.value) // span.step.value)
    return Quantity((least.value + steps * span.step.value) * _NANOS, Format.BINARY_SI)


def _is_against(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == policy.default):
        return False
    span = policy.valid_range
    if span is not None:
        if span.max is not None and amount > span.max:
            return True
        if span.step is None or not span.step.value:
            return False
        least = span.min.value if span.min is not None else 0
        return (amount.value - least) % span.step.value != 0
    return bool(policy.valid_values) and amount not in policy.valid_values
