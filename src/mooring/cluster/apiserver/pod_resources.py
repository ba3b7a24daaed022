"""The requests and limits of a whole pod, from those of its containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from mooring.api.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]
Part = Literal["requests", "limits"]

_POD_LEVEL: Final = ("cpu", "memory")


def is_pod_level(name: str) -> bool:
    """Whether a pod may request this resource for all its containers together."""
    return name in _POD_LEVEL or name.startswith("hugepages-")


def pod_amounts(spec: Mapping[str, Any], part: Part, *, with_overhead: bool = False) -> Amounts:
    """As component-helpers' PodRequests and PodLimits: init containers run one after the other."""
    found: Amounts = {}
    for container in spec.get("containers") or ():
        add_amounts(found, amounts_of(container, part))
    sidecars: Amounts = {}
    init: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = amounts_of(container, part)
        if container.get("restartPolicy") == "Always":
            add_amounts(found, own)
            add_amounts(sidecars, own)
            own = dict(sidecars)
        else:
            add_amounts(own, sidecars)
        _raise_to(init, own)
    _raise_to(found, init)
    for name, amount in ((spec.get("resources") or {}).get(part) or {}).items():
        if is_pod_level(name):
            found[name] = parse_quantity(amount)
    if with_overhead:
        for name, amount in (spec.get("overhead") or {}).items():
            if part == "requests" or name in found:
                add_amounts(found, {name: parse_quantity(amount)})
    return found


def amounts_of(container: Mapping[str, Any], part: Part) -> Amounts:
    listed = (container.get("resources") or {}).get(part) or {}
    return {name: parse_quantity(amount) for name, amount in listed.items()}


def add_amounts(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        if name not in total or total[name] < amount:
            total[name] = amount
