"""LimitRanges: default requests and limits of containers, and bounds of pods and claims.

As the admission plugin LimitRanger, with its messages.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mooring.api.quantity import Quantity, parse_quantity
from mooring.cluster.apiserver.errors import aggregated, forbidden
from mooring.cluster.apiserver.pod_resources import Amounts, amounts_of, pod_amounts
from mooring.cluster.apiserver.resources import CLAIMS, LIMIT_RANGES, PODS, Resource
from mooring.cluster.apiserver.store import Object, Store

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_BEYOND: Final = {"min": ("minimum", operator.lt), "max": ("maximum", operator.gt)}


def set_default_resources(store: Store, pod: Object) -> None:
    """Set the requests and limits that the LimitRanges of its namespace have for containers."""
    spec, meta = pod["spec"], pod["metadata"]
    for items in _limit_ranges(store, meta.get("namespace", "")):
        defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
        for item in items:
            if item.get("type") == "Container":
                defaults["requests"].update(item.get("defaultRequest") or {})
                defaults["limits"].update(item.get("default") or {})
        notes = [
            *_fill(spec.get("containers") or (), defaults, "container"),
            *_fill(spec.get("initContainers") or (), defaults, "init container"),
        ]
        if notes:
            text = f"LimitRanger plugin set: {'; '.join(notes)}"
            meta["annotations"] = {**meta.get("annotations", {}), _ANNOTATION: text}


def _fill(
    containers: Iterable[Object], defaults: Mapping[str, Mapping[str, str]], kind: str
) -> Iterable[str]:
    for container in containers:
        resources = container.setdefault("resources", {})
        for part, usual in defaults.items():
            present = resources.get(part) or {}
            missing = {name: amount for name, amount in usual.items() if name not in present}
            if missing:
                resources[part] = {**present, **missing}
                names = ", ".join(sorted(missing))
                yield f"{names} {part.removesuffix('s')} for {kind} {container.get('name', '')}"


def check_limits(store: Store, resource: Resource, value: Object) -> None:
    """Refuse a pod or a claim that is out of the bounds of a LimitRange."""
    if resource.key not in (PODS.key, CLAIMS.key) or not store.count(LIMIT_RANGES):
        return
    meta = value["metadata"]
    for items in _limit_ranges(store, meta.get("namespace", "")):
        problems = [problem for item in items for problem in _problems(resource, item, value)]
        if problems:
            raise forbidden(resource, meta.get("name", ""), aggregated(problems))


def _limit_ranges(store: Store, namespace: str) -> list[list[Object]]:
    """The limits of each LimitRange of a namespace."""
    if not store.count(LIMIT_RANGES):
        return []
    found = store.list(LIMIT_RANGES, namespace)
    return [item.decoded().get("spec", {}).get("limits") or [] for item in found]


def _problems(resource: Resource, item: Object, value: Object) -> Iterable[str]:
    kind, spec = item.get("type", ""), value.get("spec", {})
    if resource.key == CLAIMS.key:
        if kind == "PersistentVolumeClaim":
            requests = amounts_of(spec, "requests")
            for bound in _BEYOND:
                yield from _beyond(bound, kind, item, {"request": requests})
    elif kind == "Container":
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            yield from _out_of_bounds(
                kind, item, amounts_of(container, "requests"), amounts_of(container, "limits")
            )
    elif kind == "Pod":
        yield from _out_of_bounds(
            kind, item, pod_amounts(spec, "requests"), pod_amounts(spec, "limits")
        )


def _out_of_bounds(kind: str, item: Object, requests: Amounts, limits: Amounts) -> Iterable[str]:
    yield from _beyond("min", kind, item, {"request": requests, "limit": limits})
    yield from _beyond("max", kind, item, {"limit": limits, "request": requests})
    for name, ratio in _bounds(item, "maxLimitRequestRatio"):
        most = f"{name} max limit to request ratio per {kind} is {ratio}"
        request, limit = requests.get(name), limits.get(name)
        if not request:
            yield f"{most}, but no request is specified or request is 0"
        elif not limit:
            yield f"{most}, but no limit is specified or limit is 0"
        elif limit.nanos * 10**9 > ratio.nanos * request.nanos:
            yield f"{most}, but provided ratio is {limit.nanos / request.nanos:f}"


def _beyond(bound: str, kind: str, item: Object, given: Mapping[str, Amounts]) -> Iterable[str]:
    """What is below a minimum or above a maximum; the first of the `given` must be there."""
    word, is_beyond = _BEYOND[bound]
    needed = next(iter(given))
    for name, allowed in _bounds(item, bound):
        rule = f"{word} {name} usage per {kind} is {allowed}"
        if name not in given[needed]:
            yield f"{rule}.  No {needed} is specified"
            continue
        for what, amounts in given.items():
            amount = amounts.get(name)
            if amount is not None and is_beyond(amount, allowed):
                yield f"{rule}, but {what} is {amount}"
                break


def _bounds(item: Mapping[str, Any], part: str) -> Iterable[tuple[str, Quantity]]:
    for name, amount in sorted((item.get(part) or {}).items()):
        yield name, parse_quantity(amount)
