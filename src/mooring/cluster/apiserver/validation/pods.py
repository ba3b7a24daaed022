"""What may be wrong with pods, new ones and changed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mooring.cluster.apiserver.failures import (
    Problems,
    not_allowed,
    required,
    unsupported,
    wrong,
)
from mooring.cluster.apiserver.metadata import label_problems, template_problems
from mooring.cluster.apiserver.names import label_faults, subdomain_faults
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.containers import (
    amount_problems,
    container_problems,
    container_resource_faults,
    resource_problems,
    volume_problems,
)
from mooring.cluster.apiserver.validation.placement import (
    affinity_problems,
    gate_problems,
    spread_problems,
    toleration_problems,
)

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_INT32: Final = 2**31 - 1
_DEADLINE: Final = "activeDeadlineSeconds"
_MUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def new_pod_problems(pod: Object) -> Problems:
    spec = pod["spec"]
    found = spec_problems(spec, "spec")
    if spec.get("ephemeralContainers"):
        found.append(not_allowed("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        found.append(not_allowed("spec.nodeName", why))
    return found


def template_spec_problems(template: Mapping[str, Any], field: str) -> Problems:
    """Of the template in anything that makes pods."""
    found = template_problems(template.get("metadata") or {}, field)
    found += spec_problems(template.get("spec") or {}, f"{field}.spec")
    return found


def spec_problems(spec: Mapping[str, Any], field: str) -> Problems:
    volumes, containers = spec.get("volumes") or (), spec.get("containers") or ()
    names = frozenset([volume.get("name", "") for volume in volumes]) if volumes else frozenset()
    found = volume_problems(volumes, f"{field}.volumes") if volumes else []
    if containers:
        found += container_problems(containers, f"{field}.containers", names)
    else:
        found.append(required(f"{field}.containers"))
    if first := spec.get("initContainers"):
        # Without others their names would be taken for those of containers.
        found += container_problems(first, f"{field}.initContainers", names, containers or ({},))
    if whole := spec.get("resources"):
        found += resource_problems(whole, f"{field}.resources", container_resource_faults)
    found += _choice_problems(spec, field)
    if chosen := spec.get("nodeSelector"):
        found += label_problems(chosen, f"{field}.nodeSelector")
    if affinity := spec.get("affinity"):
        found += affinity_problems(affinity, f"{field}.affinity")
    if gates := spec.get("schedulingGates"):
        found += gate_problems(gates, f"{field}.schedulingGates")
    if constraints := spec.get("topologySpreadConstraints"):
        found += spread_problems(constraints, f"{field}.topologySpreadConstraints")
    found += _name_problems(spec, field)
    if tolerations := spec.get("tolerations"):
        found += toleration_problems(tolerations, f"{field}.tolerations")
    policy = spec.get("preemptionPolicy", "Never")
    if policy not in _PREEMPTION_POLICIES:
        found.append(unsupported(f"{field}.preemptionPolicy", policy, _PREEMPTION_POLICIES))
    for name, amount in (spec.get("overhead") or {}).items():
        found += amount_problems(name, amount, f"{field}.overhead[{name}]")
    return found


def _choice_problems(spec: Mapping[str, Any], field: str) -> Problems:
    found: Problems = []
    restart, dns = spec.get("restartPolicy"), spec.get("dnsPolicy")
    if restart not in RESTART_POLICIES:
        found.append(unsupported(f"{field}.restartPolicy", restart, RESTART_POLICIES))
    if dns not in _DNS_POLICIES:
        found.append(unsupported(f"{field}.dnsPolicy", dns, _DNS_POLICIES))
    return found


def _name_problems(spec: Mapping[str, Any], field: str) -> Problems:
    found: Problems = []
    for part in ("serviceAccountName", "nodeName"):
        if name := spec.get(part):
            found += [wrong(f"{field}.{part}", name, fault) for fault in subdomain_faults(name)]
    deadline = spec.get(_DEADLINE)
    if deadline is not None and not 1 <= deadline <= _INT32:
        why = f"must be between 1 and {_INT32}, inclusive"
        found.append(wrong(f"{field}.{_DEADLINE}", deadline, why))
    for part in ("hostname", "subdomain"):
        if name := spec.get(part):
            found += [wrong(f"{field}.{part}", name, fault) for fault in label_faults(name)]
    return found


# --- changes -----------------------------------------------------------------------------------


def changed_pod_problems(new: Object, old: Object) -> Problems:
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    found = spec_problems(spec, "spec")
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            why = "pod updates may not add or remove containers"
            return [*found, not_allowed(f"spec.{field}", why)]
    is_done, more = _deadline_problems(spec.get(_DEADLINE), before.get(_DEADLINE))
    found += more
    if is_done:
        return found
    found += _fewer_toleration_problems(
        spec.get("tolerations") or (), before.get("tolerations") or ()
    )
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            found.append(not_allowed(f"spec.schedulingGates[{index}].name", why))
    is_same, more = _same_but_for_what_may_change(spec, before)
    found += more
    if not is_same:
        found.append(not_allowed("spec", _MUTABLE))
    return found


def _deadline_problems(new: int | None, old: int | None) -> tuple[bool, Problems]:
    """What is wrong, and whether the rest does not matter any more."""
    field = f"spec.{_DEADLINE}"
    if new is None:
        if old is None:
            return False, []
        why = "must not update from a positive integer to nil value"
        return False, [wrong(field, None, why)]
    if old is not None and old < new:
        return True, [wrong(field, new, "must be less than or equal to previous value")]
    return False, []


def _fewer_toleration_problems(new: Sequence[Object], old: Sequence[Object]) -> Problems:
    def essence(toleration: Object) -> Object:
        return {key: part for key, part in toleration.items() if key != "tolerationSeconds"}

    kept = [essence(toleration) for toleration in new]
    if all(essence(toleration) in kept for toleration in old):
        return []
    why = "existing toleration can not be modified except its tolerationSeconds"
    return [not_allowed("spec.tolerations", why)]


def _same_but_for_what_may_change(new: Object, old: Object) -> tuple[bool, Problems]:
    """Whether specs are equal where they must be; what is wrong with where they need not."""
    left, found = dict(new), Problems()
    for field in (_DEADLINE, "schedulingGates", "tolerations"):
        _take_over(left, old, field)
    for field in ("containers", "initContainers"):
        if field in left:
            left[field] = [
                {**container, "image": other.get("image")}
                for container, other in zip(left[field], old.get(field) or (), strict=True)
            ]
    if old.get("schedulingGates"):
        # Until all gates are gone, where the pod may go can still be narrowed down.
        wanted, chosen = old.get("nodeSelector") or {}, new.get("nodeSelector") or {}
        if any(chosen.get(key) != value for key, value in wanted.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            found.append(wrong("spec.nodeSelector", chosen, why))
        _take_over(left, old, "nodeSelector")
        found += _narrowing_problems(new.get("affinity") or {}, old.get("affinity") or {})
        left["affinity"] = {
            key: part for key, part in (left.get("affinity") or {}).items() if key != "nodeAffinity"
        }
        others = {
            key: part for key, part in (old.get("affinity") or {}).items() if key != "nodeAffinity"
        }
        old = {**old, "affinity": others}
    return left == old, found


def _narrowing_problems(new: Mapping[str, Any], old: Mapping[str, Any]) -> Problems:
    required_ = "requiredDuringSchedulingIgnoredDuringExecution"
    field = f"spec.affinity.nodeAffinity.{required_}.nodeSelectorTerms"

    def terms(affinity: Mapping[str, Any]) -> list[Object]:
        needed = (affinity.get("nodeAffinity") or {}).get(required_) or {}
        return list(needed.get("nodeSelectorTerms") or ())

    before, after = terms(old), terms(new)
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [wrong(field, after, why)]
    found: Problems = []
    for index, (one, other) in enumerate(zip(after, before, strict=False)):
        for part in ("matchExpressions", "matchFields"):
            known = other.get(part) or []
            if (one.get(part) or [])[: len(known)] != known:
                why = "only additions are allowed (no mutations or deletions)"
                found.append(wrong(f"{field}[{index}]", one, why))
                break
    return found


def _take_over(left: Object, old: Object, field: str) -> None:
    if field in old:
        left[field] = old[field]
    else:
        left.pop(field, None)


def pod_status_problems(new: Object, old: Object) -> Problems:
    found: Problems = []
    status, before = new.get("status", {}), old.get("status", {})
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        field = "status.nominatedNodeName"
        found += [wrong(field, nominated, fault) for fault in subdomain_faults(nominated)]
        if old["spec"].get("nodeName"):
            why = "may not be set on pods that are already bound to a node"
            found.append(not_allowed(field, why))
    if status.get("qosClass") != before.get("qosClass"):
        found.append(wrong("status.qosClass", status.get("qosClass"), "field is immutable"))
    return found
