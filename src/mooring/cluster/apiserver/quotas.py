"""ResourceQuotas: what objects use, and whether another one still fits.

As the admission plugin ResourceQuota, with its messages. Admission adds the use of an accepted
object to `status.used`; the quota controller counts anew when objects go or end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mooring.api.meta import parse_time
from mooring.api.quantity import Quantity, parse_quantity
from mooring.cluster.apiserver.errors import forbidden
from mooring.cluster.apiserver.pod_resources import Amounts, add_amounts, amounts_of, pod_amounts
from mooring.cluster.apiserver.pods import quality_of_service
from mooring.cluster.apiserver.resources import CLAIMS, PODS, QUOTAS, Resource, known
from mooring.cluster.apiserver.store import Object, Store

RESOURCE_CLAIMS: Final = known("resourceclaims", "resource.k8s.io")

_ONE: Final = Quantity(10**9)
_REQUESTS: Final = "requests."
_HUGE: Final = "hugepages-"
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_POD_RESOURCES: Final = frozenset(
    (
        "pods", "count/pods", *_NATIVE, *(f"{_REQUESTS}{name}" for name in _NATIVE),
        *(f"limits.{name}" for name in _NATIVE),
    )
)  # fmt: skip
_MUST_BE_SAID: Final = frozenset(
    name for name in _POD_RESOURCES if name.endswith(("cpu", "memory"))
)  # by every container, if it is limited
_ALIASES: Final = {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"}
_SERVICE_RESOURCES: Final = frozenset(
    ("services", "count/services", "services.nodeports", "services.loadbalancers")
)
_CLAIM_RESOURCES: Final = ("persistentvolumeclaims", "requests.storage")
_OF_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_OF_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES: Final = 32  # of one claim
_IGNORED: Final = ("events",)


# --- admission -----------------------------------------------------------------------------------


class QuotaCharge:
    """What one write adds to the quotas of its namespace, once it is accepted."""

    def __init__(self, store: Store, quotas: list[Object]) -> None:
        self._store = store
        self._quotas = quotas

    def apply(self) -> None:
        for quota in self._quotas:
            self._store.put(QUOTAS, quota)


def check_quota(
    store: Store, resource: Resource, value: Object, now: float, old: Object | None = None
) -> QuotaCharge | None:
    """What a new or changed object adds to quotas; Forbidden if one of them would be exceeded."""
    if not store.count(QUOTAS) or resource.key in _IGNORED or not resource.namespaced:
        return None
    namespace = value["metadata"].get("namespace", "")
    charged = []
    for item in store.list(QUOTAS, namespace):
        quota = item.decoded()
        if _charge(quota, resource, value, now, old):
            charged.append(quota)
    return QuotaCharge(store, charged) if charged else None


def _charge(
    quota: Object, resource: Resource, value: Object, now: float, old: Object | None
) -> bool:
    """Add the use of an object to a quota's status; whether that changes it."""
    status = quota.get("status") or {}
    hard = {name: parse_quantity(amount) for name, amount in (status.get("hard") or {}).items()}
    used = {name: parse_quantity(amount) for name, amount in (status.get("used") or {}).items()}
    watched = counted_names(resource, hard)
    if not watched or not in_scope(quota, resource, value):
        return False
    name, called = value["metadata"].get("name", ""), quota["metadata"]["name"]
    if resource.key == PODS.key and (missing := _unsaid(value, watched)):
        raise forbidden(resource, name, f"failed quota: {called}: must specify {missing}")
    if any(one not in used for one in watched):
        names = ",".join(sorted(watched))
        why = f"status unknown for quota: {called}, resources: {names}"
        raise forbidden(resource, name, why)
    added = usage(resource, value, now)
    if old is not None and in_scope(quota, resource, old):
        before = usage(resource, old, now)
        added = {one: amount - before.get(one, Quantity.ZERO) for one, amount in added.items()}
    added = {one: amount for one, amount in added.items() if one in hard and amount.nanos > 0}
    if not added:
        return False
    after = dict(used)
    add_amounts(after, added)
    over = [one for one in added if hard[one] < after[one]]
    if over:
        why = (
            f"exceeded quota: {called}, requested: {_listed(added, over)}, "
            f"used: {_listed(used, over)}, limited: {_listed(hard, over)}"
        )
        raise forbidden(resource, name, why)
    quota["status"] = {**status, "used": {one: str(amount) for one, amount in after.items()}}
    return True


def _unsaid(pod: Object, watched: Iterable[str]) -> str:
    """The requests and limits that a quota wants every container to have, and that some lack."""
    spec = pod["spec"]
    if spec.get("resources"):
        return ""
    wanted = sorted(_MUST_BE_SAID.intersection(watched))
    missing: dict[str, set[str]] = {}
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        said = _compute(amounts_of(container, "requests"), amounts_of(container, "limits"))
        for one in wanted:
            if one not in said:
                missing.setdefault(one, set()).add(container.get("name", ""))
    return "; ".join(f"{one} for: {','.join(sorted(names))}" for one, names in missing.items())


def _listed(amounts: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in sorted(names))


# --- usage ---------------------------------------------------------------------------------------


def counted_names(resource: Resource, limited: Iterable[str]) -> list[str]:
    """The resources among `limited` that objects of this kind use."""
    return [name for name in limited if _counts(resource, name)]


def _counts(resource: Resource, name: str) -> bool:
    if name == f"count/{resource.qualified}":
        return True
    match resource.key:
        case "pods":
            if name in _POD_RESOURCES or name.startswith((_HUGE, f"{_REQUESTS}{_HUGE}")):
                return True
            return name.startswith(_REQUESTS) and "/" in name
        case "services":
            return name in _SERVICE_RESOURCES
        case "persistentvolumeclaims":
            return name in _CLAIM_RESOURCES or any(
                name.endswith(f"{_OF_STORAGE_CLASS}{one}") for one in _CLAIM_RESOURCES
            )
        case RESOURCE_CLAIMS.key:
            return name.endswith(_OF_DEVICE_CLASS)
    return resource.key in _ALIASES and name == resource.key


def usage(resource: Resource, value: Object, now: float) -> Amounts:
    """What one object uses."""
    found: Amounts = {f"count/{resource.qualified}": _ONE}
    spec = value.get("spec") or {}
    match resource.key:
        case "pods":
            if _is_charged(value, now):
                found |= _compute(
                    pod_amounts(spec, "requests", with_overhead=True),
                    pod_amounts(spec, "limits", with_overhead=True),
                )
        case "services":
            found |= _service_usage(spec)
        case "persistentvolumeclaims":
            found |= _claim_usage(value)
        case RESOURCE_CLAIMS.key:
            for request in (spec.get("devices") or {}).get("requests") or ():
                add_amounts(found, _devices(request))
        case key if key in _ALIASES:
            found[key] = _ONE
    return found


def _is_charged(pod: Object, now: float) -> bool:
    """Neither finished nor terminating for longer than its grace period."""
    meta = pod["metadata"]
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    grace = meta.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" not in meta or grace is None:
        return True
    return now <= parse_time(meta["deletionTimestamp"]) + int(grace)


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {"pods": _ONE}
    for name, amount in requests.items():
        if name in _NATIVE or name.startswith(_HUGE):
            found[name] = found[f"{_REQUESTS}{name}"] = amount
        elif "/" in name:
            found[f"{_REQUESTS}{name}"] = amount
    for name in _NATIVE:
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    return found


def _service_usage(spec: Mapping[str, Any]) -> Amounts:
    ports = spec.get("ports") or ()
    kind = spec.get("type", "")
    node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(bool(port.get("nodePort")) for port in ports)
    return {
        "services": _ONE,
        "services.nodeports": Quantity(node_ports * 10**9),
        "services.loadbalancers": _ONE if kind == "LoadBalancer" else Quantity.ZERO,
    }


def _claim_usage(claim: Object) -> Amounts:
    found: Amounts = {"persistentvolumeclaims": _ONE}
    spec = claim.get("spec") or {}
    asked = amounts_of(spec, "requests").get("storage")
    if asked is not None:
        whole = Quantity(-(-asked.nanos // 10**9) * 10**9, asked.format)
        given = (claim.get("status") or {}).get("allocatedResources") or {}
        found["requests.storage"] = max(whole, parse_quantity(given.get("storage", "0")))
    if storage_class := spec.get("storageClassName"):
        found |= {
            f"{storage_class}{_OF_STORAGE_CLASS}{name}": amount for name, amount in found.items()
        }
    return found


def _devices(request: Mapping[str, Any]) -> Amounts:
    """The devices of one request of a resource claim, by class; of alternatives the most."""
    found: Amounts = {}
    exactly = request.get("exactly")
    for one in [exactly] if exactly is not None else request.get("firstAvailable") or ():
        is_all = one.get("allocationMode") == "All"
        count = Quantity((_MOST_DEVICES if is_all else int(one.get("count", 1))) * 10**9)
        name = f"{one.get('deviceClassName', '')}{_OF_DEVICE_CLASS}"
        found[name] = max(found.get(name, count), count)
    return found


# --- scopes --------------------------------------------------------------------------------------


def in_scope(quota: Object, resource: Resource, value: Object) -> bool:
    """Whether an object is in all scopes of a quota."""
    spec = quota.get("spec") or {}
    tests = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    tests += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches(test, resource, value) for test in tests)


def _matches(test: Mapping[str, Any], resource: Resource, value: Object) -> bool:
    spec, scope = value.get("spec") or {}, test.get("scopeName", "")
    if resource.key == CLAIMS.key and scope == "VolumeAttributesClass":
        status = value.get("status") or {}
        target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
        names = [
            spec.get("volumeAttributesClassName"),
            status.get("currentVolumeAttributesClassName"),
            target,
        ]
        return any(_selects(test, name) for name in filter(None, names)) or (
            not any(names) and _selects(test, "")
        )
    if resource.key != PODS.key:
        return False
    match scope:
        case "Terminating":
            return is_short_lived(spec)
        case "NotTerminating":
            return not is_short_lived(spec)
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            return _selects(test, spec.get("priorityClassName", ""))
        case "CrossNamespacePodAffinity":
            return _reaches_other_namespaces(spec)
    return False


def is_short_lived(spec: Mapping[str, Any]) -> bool:
    """Whether a pod is in the scope Terminating: it has a deadline."""
    return spec.get("activeDeadlineSeconds") is not None


def _selects(test: Mapping[str, Any], name: str) -> bool:
    values = test.get("values") or ()
    match test.get("operator"):
        case "In":
            return bool(name) and name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def _reaches_other_namespaces(spec: Mapping[str, Any]) -> bool:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(kind) or {}
        terms = [
            *(part.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
            *(
                one["podAffinityTerm"]
                for one in part.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
            ),
        ]
        if any(term.get("namespaces") or "namespaceSelector" in term for term in terms):
            return True
    return False
