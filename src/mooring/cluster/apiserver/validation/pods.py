"""Validation of pods, on create and on update."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mooring.cluster.apiserver.errors import (
    ErrorList,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    one_of,
    required,
)
from mooring.cluster.apiserver.metadata import keep, validate_labels, validate_template_meta
from mooring.cluster.apiserver.names import label_faults, subdomain_faults
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.containers import (
    validate_containers,
    validate_pod_resources,
    validate_quantity,
    validate_volumes,
)
from mooring.cluster.apiserver.validation.placement import (
    validate_affinity,
    validate_scheduling_gates,
    validate_tolerations,
    validate_topology_spread,
)

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_PLACEMENT: Final[Mapping[str, Callable[[Any, str], ErrorList]]] = {
    "nodeSelector": validate_labels,
    "affinity": validate_affinity,
    "schedulingGates": validate_scheduling_gates,
    "topologySpreadConstraints": validate_topology_spread,
}
_INT32: Final = 2**31 - 1
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_LONGEST_SYSCTL: Final = 253
_DEADLINE: Final = "activeDeadlineSeconds"
_MUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def validate_pod_create(pod: Object) -> ErrorList:
    spec = pod["spec"]
    found = validate_pod_spec(spec, "spec")
    if spec.get("ephemeralContainers"):
        found.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden_field("spec.nodeName", why))
    return found


def validate_template_spec(template: Mapping[str, Any], field: str) -> ErrorList:
    """Of the template of a workload."""
    found = validate_template_meta(template.get("metadata") or {}, field)
    found += validate_pod_spec(template.get("spec") or {}, f"{field}.spec")
    return found


def validate_pod_spec(spec: Mapping[str, Any], field: str) -> ErrorList:
    volumes, containers = spec.get("volumes") or (), spec.get("containers") or ()
    names = frozenset([volume.get("name", "") for volume in volumes]) if volumes else frozenset()
    found = validate_volumes(volumes, f"{field}.volumes") if volumes else []
    if containers:
        found += validate_containers(containers, f"{field}.containers", names)
    else:
        found.append(required(f"{field}.containers"))
    if first := spec.get("initContainers"):
        # `others` must not be empty: that marks these as init containers.
        found += validate_containers(first, f"{field}.initContainers", names, containers or ({},))
    if spec.get("resources"):
        found += validate_pod_resources(spec, f"{field}.resources")
    found += one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    found += one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    for part, validate in _PLACEMENT.items():
        if value := spec.get(part):
            found += validate(value, f"{field}.{part}")
    found += _validate_names(spec, field)
    if tolerations := spec.get("tolerations"):
        found += validate_tolerations(tolerations, f"{field}.tolerations")
    policy = spec.get("preemptionPolicy", "Never")
    found += one_of(f"{field}.preemptionPolicy", policy, _PREEMPTION_POLICIES)
    if sysctls := (spec.get("securityContext") or {}).get("sysctls"):
        found += _validate_sysctls(sysctls, f"{field}.securityContext.sysctls")
    for name, amount in (spec.get("overhead") or {}).items():
        found += validate_quantity(name, amount, f"{field}.overhead[{name}]")
    return found


def _validate_sysctls(sysctls: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    seen = set()
    for index, one in enumerate(sysctls):
        name, place = one.get("name", ""), f"{field}[{index}].name"
        if not name:
            found.append(required(place))
        elif len(name) > _LONGEST_SYSCTL or _SYSCTL.fullmatch(name) is None:
            shape = f"{_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL.pattern}$"
            found.append(invalid_value(place, name, f"must have at most {shape}"))
        elif name in seen:
            found.append(duplicate(place, name))
        seen.add(name)
    return found


def _validate_names(spec: Mapping[str, Any], field: str) -> ErrorList:
    found: ErrorList = []
    for part in ("serviceAccountName", "nodeName"):
        if name := spec.get(part):
            found += invalid_values(f"{field}.{part}", name, subdomain_faults(name))
    deadline = spec.get(_DEADLINE)
    if deadline is not None and not 1 <= deadline <= _INT32:
        why = f"must be between 1 and {_INT32}, inclusive"
        found.append(invalid_value(f"{field}.{_DEADLINE}", deadline, why))
    for part in ("hostname", "subdomain"):
        if name := spec.get(part):
            found += invalid_values(f"{field}.{part}", name, label_faults(name))
    return found


# --- changes -----------------------------------------------------------------------------------


def validate_pod_update(new: Object, old: Object) -> ErrorList:
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    found = validate_pod_spec(spec, "spec")
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            why = "pod updates may not add or remove containers"
            return [*found, forbidden_field(f"spec.{field}", why)]
    is_done, more = _validate_deadline(spec.get(_DEADLINE), before.get(_DEADLINE))
    found += more
    if is_done:
        return found
    found += _validate_kept_tolerations(
        spec.get("tolerations") or (), before.get("tolerations") or ()
    )
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            found.append(forbidden_field(f"spec.schedulingGates[{index}].name", why))
    is_same, more = _compare_mutable(spec, before)
    found += more
    if not is_same:
        found.append(forbidden_field("spec", _MUTABLE))
    return found


def _validate_deadline(new: int | None, old: int | None) -> tuple[bool, ErrorList]:
    """The errors, and whether the other checks are skipped."""
    field = f"spec.{_DEADLINE}"
    if new is None:
        if old is None:
            return False, []
        why = "must not update from a positive integer to nil value"
        return False, [invalid_value(field, None, why)]
    if old is not None and old < new:
        return True, [invalid_value(field, new, "must be less than or equal to previous value")]
    return False, []


def _validate_kept_tolerations(new: Sequence[Object], old: Sequence[Object]) -> ErrorList:
    kept = [_without(toleration, "tolerationSeconds") for toleration in new]
    if all(_without(toleration, "tolerationSeconds") in kept for toleration in old):
        return []
    why = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden_field("spec.tolerations", why)]


def _compare_mutable(new: Object, old: Object) -> tuple[bool, ErrorList]:
    """Whether the immutable parts are equal, and the errors of the mutable ones."""
    left, found = dict(new), ErrorList()
    for field in (_DEADLINE, "schedulingGates", "tolerations"):
        keep(left, old, field)
    for field in ("containers", "initContainers"):
        if field in left:
            left[field] = [
                {**container, "image": other.get("image")}
                for container, other in zip(left[field], old.get(field) or (), strict=True)
            ]
    if old.get("schedulingGates"):
        # While the pod is gated, its node affinity can still be narrowed.
        wanted, chosen = old.get("nodeSelector") or {}, new.get("nodeSelector") or {}
        if any(chosen.get(key) != value for key, value in wanted.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            found.append(invalid_value("spec.nodeSelector", chosen, why))
        keep(left, old, "nodeSelector")
        found += _validate_narrower_affinity(new.get("affinity") or {}, old.get("affinity") or {})
        left["affinity"] = _without(left.get("affinity"), "nodeAffinity")
        old = {**old, "affinity": _without(old.get("affinity"), "nodeAffinity")}
    return left == old, found


def _without(value: Object | None, field: str) -> Object:
    return {key: part for key, part in (value or {}).items() if key != field}


def _validate_narrower_affinity(new: Mapping[str, Any], old: Mapping[str, Any]) -> ErrorList:
    required_ = "requiredDuringSchedulingIgnoredDuringExecution"
    field = f"spec.affinity.nodeAffinity.{required_}.nodeSelectorTerms"

    def terms(affinity: Mapping[str, Any]) -> list[Object]:
        needed = (affinity.get("nodeAffinity") or {}).get(required_) or {}
        return list(needed.get("nodeSelectorTerms") or ())

    before, after = terms(old), terms(new)
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid_value(field, [_shown(term) for term in after], why)]
    found: ErrorList = []
    for index, (one, other) in enumerate(zip(after, before, strict=False)):
        for part in ("matchExpressions", "matchFields"):
            known = other.get(part) or []
            if (one.get(part) or [])[: len(known)] != known:
                why = "only additions are allowed (no mutations or deletions)"
                found.append(invalid_value(f"{field}[{index}]", _shown(one), why))
                break
    return found


def _shown(term: Mapping[str, Any]) -> Object:
    """A node selector term with the names of the Go fields, as messages quote it."""
    return {
        f"Match{part}": [
            {name: test.get(name.lower()) for name in ("Key", "Operator", "Values")}
            for test in term[f"match{part}"]
        ]
        if f"match{part}" in term
        else None
        for part in ("Expressions", "Fields")
    }


def validate_pod_status_update(new: Object, old: Object) -> ErrorList:
    found: ErrorList = []
    status, before = new.get("status", {}), old.get("status", {})
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        field = "status.nominatedNodeName"
        found += invalid_values(field, nominated, subdomain_faults(nominated))
        if old["spec"].get("nodeName"):
            why = "may not be set on pods that are already bound to a node"
            found.append(forbidden_field(field, why))
    if status.get("qosClass") != before.get("qosClass"):
        found.append(invalid_value("status.qosClass", status.get("qosClass"), "field is immutable"))
    return found
