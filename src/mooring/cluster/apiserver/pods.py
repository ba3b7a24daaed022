"""Pods: bindings, evictions, graceful deletion, quality of service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mooring.api.codec import convert
from mooring.api.meta import LabelSelector, format_time, parse_time
from mooring.api.quantity import parse_quantity
from mooring.api.selectors import Selector, SelectorError
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.errors import (
    ErrorList,
    bad_request,
    conflict,
    precondition_failed,
    required,
    too_many,
    unsupported,
)
from mooring.cluster.apiserver.resources import PODS
from mooring.cluster.apiserver.store import Object

_COUNTED: Final = ("cpu", "memory")  # the resources that decide the QoS class
EVICTED: Final[Mapping[str, str]] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_OVER_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."


# --- binding -----------------------------------------------------------------------------------


def check_binding(name: str, binding: Mapping[str, Any]) -> None:
    """Refuse a Binding that is invalid for any pod."""
    if binding.get("metadata", {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    problems: ErrorList = []
    if target.get("kind", "Node") not in ("Node", ""):
        problems.append(unsupported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        problems.append(required("target.name"))
    if problems:
        texts = [str(problem) for problem in problems]
        # kube-apiserver returns this as a plain error, which becomes a 500.
        raise StatusError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]", code=500)


def bind(pod: Object, binding: Mapping[str, Any], labels: Mapping[str, str], now: str) -> None:
    """Bind a pod to the node of a Binding, with these labels; raises if that is not allowed."""
    meta, asked = pod["metadata"], binding["metadata"]
    name = meta["name"]
    for field, called in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = asked.get(field)
        if wanted and wanted != meta[field]:
            why = f"{called} in precondition: {wanted}, {called} in object meta: {meta[field]}"
            raise precondition_failed(PODS, meta["namespace"], name, why)
    spec = pod["spec"]
    if "deletionTimestamp" in meta:
        raise _unbindable(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        node = spec["nodeName"]
        raise _unbindable(name, f'pod {name} is already assigned to node "{node}"')
    if spec.get("schedulingGates"):
        raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = binding["target"]["name"]
    more_labels = {**(asked.get("labels") or {}), **labels}
    for field, more in (("annotations", asked.get("annotations")), ("labels", more_labels)):
        if more:
            meta[field] = {**meta.get(field, {}), **more}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status, {"type": "PodScheduled", "status": "True"}, now)


def _unbindable(name: str, why: str) -> StatusError:
    return conflict("pods/binding", "", name, why)


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Replace the condition of the same type, as podutil.UpdatePodCondition."""
    conditions = status.setdefault("conditions", [])
    for index, other in enumerate(conditions):
        if other.get("type") == condition["type"]:
            has_turned = other.get("status") != condition["status"]
            since = now if has_turned else other.get("lastTransitionTime", now)
            conditions[index] = {**condition, "lastTransitionTime": since}
            return
    conditions.append({**condition, "lastTransitionTime": now})


def resized(spec: Object, old: Object) -> Object:
    """The old spec with the resources of the new one, by container."""
    found = dict(old)
    for field in ("containers", "initContainers"):
        if field in old:
            new = {one.get("name"): one for one in spec.get(field) or ()}
            found[field] = [
                {**one, "resources": new[one["name"]].get("resources", {})}
                if one.get("name") in new
                else one
                for one in old[field]
            ]
    return found


def with_ephemeral_containers(spec: Object, old: Object) -> Object:
    """The old spec with the ephemeral containers of the new one."""
    return {**old, "ephemeralContainers": spec.get("ephemeralContainers") or []}


# --- deletion ----------------------------------------------------------------------------------


def begin_deletion(pod: Object, grace: int | None, now: float) -> bool | None:
    """Set the deletion timestamp of a pod.

    True: it is set now and has to be written. False: it was set before and the grace period is
    over. None: the pod is terminating already, within the requested grace period.
    """
    meta = pod["metadata"]
    if "deletionTimestamp" in meta:
        left = meta.get("deletionGracePeriodSeconds")
        if not left:
            return False
        if grace is None or grace >= left:
            return None
        end = parse_time(meta["deletionTimestamp"]) - left + grace
        if end < now:
            # The grace period is over; the kubelet removes the pod, unless 0 was requested.
            end, grace = now, min(grace, 1)
        meta["deletionTimestamp"] = format_time(end)
        meta["deletionGracePeriodSeconds"] = grace
        return True
    seconds = grace_of(pod, grace)
    meta["deletionTimestamp"] = format_time(now + seconds)
    meta["deletionGracePeriodSeconds"] = seconds
    if meta.get("generation"):
        meta["generation"] += 1
    return True


def grace_of(pod: Mapping[str, Any], asked: int | None) -> int:
    """The grace period in seconds; 0 for an unbound or finished pod."""
    spec = pod.get("spec", {})
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    seconds = int(spec.get("terminationGracePeriodSeconds", 0)) if asked is None else asked
    return seconds if seconds >= 0 else 1


# --- eviction ----------------------------------------------------------------------------------


def ignores_budgets(pod: Mapping[str, Any]) -> bool:
    """Whether the eviction of this pod disrupts nothing."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def budgets_of(pod: Mapping[str, Any], budgets: Iterable[Object]) -> list[Object]:
    """The budgets of the namespace that select this pod."""
    labels = pod["metadata"].get("labels", {})
    return [
        budget
        for budget in budgets
        if selector_of(budget.get("spec", {}).get("selector")).matches(labels)
    ]


def selector_of(raw: Mapping[str, Any] | None) -> Selector:
    """A label selector; an absent or an invalid one matches nothing."""
    try:
        return Selector.from_label_selector(None if raw is None else convert(raw, LabelSelector))
    except SelectorError:
        return Selector.NOTHING


def spares_budget(pod: Mapping[str, Any], budget: Mapping[str, Any]) -> bool:
    """Whether a pod that is not ready may be evicted without counting against its budget."""
    conditions = pod.get("status", {}).get("conditions", ())
    if any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return False
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    return 0 < int(status.get("desiredHealthy", 0)) <= int(status.get("currentHealthy", 0))


def spend_budget(pod: Mapping[str, Any], budget: Object, now: str) -> None:
    """Count an eviction in the status of a budget; raises if the budget allows no disruption."""
    name = budget["metadata"]["name"]
    status = budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise too_many(_OVER_BUDGET, 10, cause)
    if not status.get("disruptionsAllowed", 0):
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} does not allow evicting pods currently"
        if healthy <= wanted:
            cause = (
                f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} "
                "currently"
            )
        raise too_many(_OVER_BUDGET, 0, cause)
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod["metadata"]["name"]: now}


# --- quality of service ------------------------------------------------------------------------


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """As qos.ComputePodQOS: from cpu and memory of the pod, or else of its containers."""
    whole = spec.get("resources")
    parts = [*_resources(spec)] if whole is None else [whole]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_guaranteed = True
    for part in parts:
        limited = set()
        for name, amount in (part.get("requests") or {}).items():
            if name in _COUNTED and (nanos := parse_quantity(amount).nanos) > 0:
                requests[name] = requests.get(name, 0) + nanos
        for name, amount in (part.get("limits") or {}).items():
            if name in _COUNTED and (nanos := parse_quantity(amount).nanos) > 0:
                limits[name] = limits.get(name, 0) + nanos
                limited.add(name)
        is_guaranteed &= len(limited) == len(_COUNTED)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _resources(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for field in ("containers", "initContainers"):
        for container in spec.get(field, ()):
            yield container.get("resources") or {}
