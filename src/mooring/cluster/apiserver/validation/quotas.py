"""Validation of LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mooring.api.quantity import Quantity, parse_quantity
from mooring.cluster.apiserver.errors import (
    ErrorList,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    required,
)
from mooring.cluster.apiserver.names import qualified_name_faults
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.containers import (
    NEGATIVE,
    container_resource_faults,
    is_native,
    may_overcommit,
)
from mooring.cluster.apiserver.validation.workloads import IMMUTABLE

_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_FOR_PODS: Final = "may not be specified when `type` is 'Pod'"
_COUNTS: Final = frozenset(
    (
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
_COMPUTE: Final = frozenset(
    ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
)
_QUOTA_RESOURCES: Final = frozenset(
    (
        *_COUNTS, *_COMPUTE, "ephemeral-storage", "requests.storage", "requests.ephemeral-storage",
        "limits.ephemeral-storage",
    )
)  # fmt: skip
_STANDARD: Final = _QUOTA_RESOURCES | {"storage"}
_POD_SCOPES: Final = (
    "Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity",
)  # fmt: skip
_SCOPES: Final = frozenset((*_POD_SCOPES, "BestEffort", "VolumeAttributesClass"))
_WITHOUT_VALUES: Final = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity",
)  # fmt: skip
_CONFLICTING: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


# --- limit ranges --------------------------------------------------------------------------------


def validate_limit_range(value: Object) -> ErrorList:
    found: ErrorList = []
    seen = set()
    for index, item in enumerate(value.get("spec", {}).get("limits") or ()):
        field = f"spec.limits[{index}]"
        kind = item.get("type", "")
        found += _validate_limit_type(kind, f"{field}.type")
        if kind in seen:
            found.append(duplicate(f"{field}.type", kind))
        seen.add(kind)
        found += _validate_limit(item, kind, field)
    return found


def _validate_limit_type(kind: str, field: str) -> ErrorList:
    if faults := qualified_name_faults(kind):
        return invalid_values(field, kind, faults)
    if "/" not in kind and kind not in _LIMIT_TYPES:
        return [invalid_value(field, kind, "must be a standard limit type or fully qualified")]
    return []


def _validate_limit(item: Mapping[str, Any], kind: str, field: str) -> ErrorList:
    found = [*_validate_names(item, kind, field, "max", "min")]
    compared = ["max", "min", "maxLimitRequestRatio"]
    if kind == "Pod":
        found += [
            forbidden_field(f"{field}.{name}", _FOR_PODS)
            for name in ("default", "defaultRequest")
            if item.get(name)
        ]
    else:
        found += _validate_names(item, kind, field, "default", "defaultRequest")
        compared += ["default", "defaultRequest"]
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in (item.get(name) or {}) for name in ("min", "max")
    ):
        why = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{field}.limits", why))
    found += _validate_names(item, kind, field, "maxLimitRequestRatio")
    amounts = {name: item.get(name) or {} for name in compared}
    for resource in sorted({key for part in amounts.values() for key in part}):
        values = {
            name: parse_quantity(part[resource])
            for name, part in amounts.items()
            if resource in part
        }
        found += _compare(resource, values, field)
    return found


def _validate_names(item: Mapping[str, Any], kind: str, field: str, *parts: str) -> Iterable[Any]:
    for part in parts:
        for name in item.get(part) or {}:
            place = f"{field}.{part}[{name}]"
            if kind in ("Pod", "Container"):
                yield from invalid_values(place, name, container_resource_faults(name))
            else:
                yield from _validate_resource_name(name, place)


def _compare(resource: str, values: Mapping[str, Quantity], field: str) -> ErrorList:
    """The bounds of one resource, in the order in which kube-apiserver compares them."""
    least, most, ratio = values.get("min"), values.get("max"), values.get("maxLimitRequestRatio")
    limit, request = values.get("default"), values.get("defaultRequest")
    found: ErrorList = []

    def complain(part: str, value: Quantity, why: str) -> None:
        found.append(invalid_value(f"{field}.{part}[{resource}]", str(value), why))

    if least is not None and most is not None and least > most:
        complain("min", least, f"min value {least} is greater than max value {most}")
    if request is not None:
        if least is not None and least > request:
            why = f"min value {least} is greater than default request value {request}"
            complain("defaultRequest", request, why)
        if most is not None and request > most:
            why = f"default request value {request} is greater than max value {most}"
            complain("defaultRequest", request, why)
        if limit is not None and request > limit:
            why = f"default request value {request} is greater than default limit value {limit}"
            complain("defaultRequest", request, why)
    if limit is not None:
        if least is not None and least > limit:
            complain("default", least, f"min value {least} is greater than default value {limit}")
        if most is not None and limit > most:
            complain("default", most, f"default value {limit} is greater than max value {most}")
    if ratio is not None:
        if ratio.nanos < 10**9:
            complain("maxLimitRequestRatio", ratio, f"ratio {ratio} is less than 1")
        if least is not None and most is not None and least.nanos:
            widest = most.nanos / least.nanos
            if ratio.nanos / 1e9 > widest:
                why = f"ratio {ratio} is greater than max/min = {widest:f}"
                complain("maxLimitRequestRatio", ratio, why)
    if not may_overcommit(resource) and limit is not None and request not in (None, limit):
        why = f"default value {limit} must equal to defaultRequest value {request} in {resource}"
        complain("defaultRequest", request or limit, why)
    return found


# --- quotas --------------------------------------------------------------------------------------


def validate_quota(value: Object) -> ErrorList:
    spec = value.get("spec", {})
    found = _validate_amounts(spec.get("hard"), "spec.hard")
    found += _validate_scopes(spec)
    return found + _validate_scope_selector(spec)


def validate_quota_update(new: Object, old: Object) -> ErrorList:
    scopes = new.get("spec", {}).get("scopes") or []
    if set(scopes) != set(old.get("spec", {}).get("scopes") or ()):
        return [invalid_value("spec.scopes", scopes, IMMUTABLE)]
    return []


def validate_quota_status(new: Object, old: Object) -> ErrorList:
    status = new.get("status") or {}
    return [
        problem
        for part in ("hard", "used")
        for problem in _validate_amounts(status.get(part), f"status.{part}")
    ]


def _validate_amounts(amounts: Mapping[str, str] | None, field: str) -> ErrorList:
    found: ErrorList = []
    for name, amount in (amounts or {}).items():
        place = f"{field}[{name}]"
        found += _validate_resource_name(name, place)
        if "/" not in name and not _is_quota_resource(name):
            found.append(invalid_value(place, name, "must be a standard resource for quota"))
        nanos = parse_quantity(amount).nanos
        if nanos < 0:
            found.append(invalid_value(place, amount, NEGATIVE))
        is_extended = not is_native(name) and not name.startswith("requests.")
        if nanos % 10**9 and (name in _COUNTS or is_extended):
            found.append(invalid_value(place, amount, "must be an integer"))
    return found


def _validate_resource_name(name: str, field: str) -> ErrorList:
    if faults := qualified_name_faults(name):
        return invalid_values(field, name, faults)
    if "/" not in name and not (name in _STANDARD or _is_huge(name)):
        return [invalid_value(field, name, "must be a standard resource type or fully qualified")]
    return []


def _is_quota_resource(name: str) -> bool:
    return name in _QUOTA_RESOURCES or _is_huge(name)


def _is_huge(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))


def _validate_scopes(spec: Mapping[str, Any]) -> ErrorList:
    scopes = spec.get("scopes") or []
    found: ErrorList = []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(invalid_value("spec.scopes", scopes, "unsupported scope"))
        found += [
            invalid_value("spec.scopes", scopes, "unsupported scope applied to resource")
            for _ in _out_of_scope(scope, spec)
        ]
    return found + _conflicts(scopes, scopes, "spec.scopes")


def _validate_scope_selector(spec: Mapping[str, Any]) -> ErrorList:
    selector = spec.get("scopeSelector")
    if selector is None:
        return []
    field = "spec.scopeSelector.matchExpressions"
    tests = selector.get("matchExpressions") or []
    found: ErrorList = []
    for test in tests:
        scope, operator = test.get("scopeName", ""), test.get("operator", "")
        values = test.get("values") or []
        if scope not in _SCOPES:
            found.append(invalid_value(f"{field}.scopeName", scope, "unsupported scope"))
        found += [
            invalid_value(field, _as_go(tests), "unsupported scope applied to resource")
            for _ in _out_of_scope(scope, spec)
        ]
        if scope in _WITHOUT_VALUES and operator != "Exists":
            found.append(invalid_value(f"{field}.operator", operator, _ONLY_EXISTS))
        if operator in ("In", "NotIn"):
            if not values:
                why = (
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                    "selector"
                )
                found.append(required(f"{field}.values", why))
        elif operator not in ("Exists", "DoesNotExist"):
            found.append(
                invalid_value(f"{field}.operator", operator, "not a valid selector operator")
            )
        elif values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            found.append(invalid_value(f"{field}.values", values, why))
    named = [test.get("scopeName", "") for test in tests]
    return found + _conflicts(named, spec.get("scopes"), field)


def _as_go(tests: Sequence[Mapping[str, Any]]) -> Any:
    """A scope selector as the message quotes it: with the names of Go's fields."""
    shown = [
        {
            "ScopeName": test.get("scopeName", ""),
            "Operator": test.get("operator", ""),
            "Values": test.get("values"),
        }
        for test in tests
    ]
    return {"MatchExpressions": shown}


def _out_of_scope(scope: str, spec: Mapping[str, Any]) -> Iterable[str]:
    """The limited resources that a scope can't be applied to."""
    for name in sorted(spec.get("hard") or {}):
        if not _is_quota_resource(name):
            continue
        if scope == "BestEffort":
            fits = name == "pods"
        elif scope == "VolumeAttributesClass":
            fits = name in ("persistentvolumeclaims", "requests.storage")
        else:
            fits = scope not in _POD_SCOPES or name == "pods" or name in _COMPUTE
        if not fits:
            yield name


def _conflicts(scopes: Sequence[str], shown: Any, field: str) -> ErrorList:
    return [
        invalid_value(field, shown, "conflicting scopes")
        for pair in _CONFLICTING
        if pair <= set(scopes)
    ]
