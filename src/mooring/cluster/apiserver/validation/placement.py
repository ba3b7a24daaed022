"""Validation of affinity, topology spread, tolerations and scheduling gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mooring.cluster.apiserver.errors import (
    ErrorList,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    one_of,
    required,
    unsupported,
)
from mooring.cluster.apiserver.names import label_faults, label_value_faults, qualified_name_faults
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.selectors import (
    validate_label_key,
    validate_label_selector,
    validate_node_selector,
    validate_node_term,
)

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_RANGE: Final = "must be in the range 1-100"


def validate_affinity(affinity: Mapping[str, Any], field: str) -> ErrorList:
    found: ErrorList = []
    if nodes := affinity.get("nodeAffinity"):
        found += _validate_node_affinity(nodes, f"{field}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            found += _validate_pod_term(term, f"{field}.{kind}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            place = f"{field}.{kind}.{_PREFERRED}[{index}]"
            found += _validate_weight(weighted, place)
            term = weighted.get("podAffinityTerm") or {}
            found += _validate_pod_term(term, f"{place}.podAffinityTerm")
    return found


def _validate_node_affinity(affinity: Mapping[str, Any], field: str) -> ErrorList:
    found: ErrorList = []
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        found += validate_node_selector(needed, f"{field}.{_REQUIRED}")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{field}.{_PREFERRED}[{index}]"
        found += _validate_weight(term, place)
        preference = term.get("preference") or {}
        found += validate_node_term(preference, f"{place}.preference", is_strict=False)
    return found


def _validate_weight(term: Mapping[str, Any], field: str) -> ErrorList:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{field}.weight", weight, _RANGE)]


def _validate_pod_term(term: Mapping[str, Any], field: str) -> ErrorList:
    found = validate_label_selector(term.get("labelSelector"), f"{field}.labelSelector")
    found += validate_label_selector(term.get("namespaceSelector"), f"{field}.namespaceSelector")
    for name in term.get("namespaces") or ():
        found += invalid_values(f"{field}.namespace", name, label_faults(name))
    found += _validate_label_keys(term, field)
    key = term.get("topologyKey", "")
    if not key:
        found.append(required(f"{field}.topologyKey", "can not be empty"))
    return found + validate_label_key(key, f"{field}.topologyKey")


def _validate_label_keys(term: Mapping[str, Any], field: str) -> ErrorList:
    """Of keys whose values are taken from the pod itself."""
    found: ErrorList = []
    selector = term.get("labelSelector")
    for kind in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(kind) or ()
        if keys and selector is None:
            why = "must not be specified when labelSelector is not set"
            found.append(forbidden_field(f"{field}.{kind}", why))
            continue
        for index, key in enumerate(keys):
            found += validate_label_key(key, f"{field}.{kind}[{index}]")
    same = term.get("matchLabelKeys") or ()
    # The server has added each key to the selector once already.
    seen = set((selector or {}).get("matchLabels") or ())
    for test in (selector or {}).get("matchExpressions") or ():
        if test.get("key") in same and test["key"] in seen:
            why = "exists in both matchLabelKeys and labelSelector"
            found.append(invalid_value(f"{field}[{same.index(test['key'])}]", test["key"], why))
        seen.add(test.get("key"))
    for index, key in enumerate(same):
        if key in (term.get("mismatchLabelKeys") or ()):
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(invalid_value(f"{field}.matchLabelKeys[{index}]", key, why))
    return found


def validate_topology_spread(constraints: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    for index, constraint in enumerate(constraints):
        place = f"{field}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        action = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            found.append(invalid_value(f"{place}.maxSkew", skew, "must be greater than zero"))
        if not key:
            found.append(required(f"{place}.topologyKey", "can not be empty"))
        found += one_of(f"{place}.whenUnsatisfiable", action, _ACTIONS)
        for other in constraints[index + 1 :]:
            if (other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, action):
                pair = f"{{{key}, {action}}}"
                found.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", pair))
                break
        found += _validate_domain(constraint, action, place)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            chosen = constraint.get(policy, "Honor")
            found += one_of(f"{place}.{policy}", chosen, ("Honor", "Ignore"))
        found += _validate_label_keys(constraint, place)
        found += validate_label_selector(constraint.get("labelSelector"), f"{place}.labelSelector")
    return found


def _validate_domain(constraint: Mapping[str, Any], action: str, field: str) -> ErrorList:
    domains = constraint.get("minDomains")
    found: ErrorList = []
    if domains is None:
        return found
    if domains <= 0:
        found.append(invalid_value(f"{field}.minDomains", domains, "must be greater than zero"))
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        found.append(invalid_value(f"{field}.minDomains", domains, why))
    return found


def validate_tolerations(tolerations: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    for index, toleration in enumerate(tolerations):
        place = f"{field}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            found += validate_label_key(key, f"{place}.key")
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values '
            found.append(invalid_value(f"{place}.operator", operator, why + 'and all keys"'))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(invalid_value(f"{place}.effect", effect, why))
        if operator in ("", "Equal"):
            if faults := label_value_faults(value):
                found.append(invalid_value(f"{place}.operator", value, ";".join(faults)))
        elif operator == "Exists":
            if value:
                why = "value must be empty when `operator` is 'Exists'"
                found.append(invalid_value(f"{place}.operator", value, why))
        else:
            named = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
            found.append(unsupported(f"{place}.operator", operator, ("Equal", "Exists", *named)))
        found += one_of(f"{place}.effect", effect, EFFECTS) if effect else []
    return found


def validate_scheduling_gates(gates: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    seen = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        found += invalid_values(f"{field}[{index}]", name, qualified_name_faults(name))
        if name in seen:
            found.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
    return found


def merge_label_keys(pod: Object) -> None:
    """Add the values of matchLabelKeys and mismatchLabelKeys to the selectors, once."""
    spec, labels = pod["spec"], pod["metadata"].get("labels", {})
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, labels)
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for weighted in terms.get(_PREFERRED) or ():
            _merge(weighted.get("podAffinityTerm") or {}, labels)
        for term in terms.get(_REQUIRED) or ():
            _merge(term, labels)


def _merge(term: Object, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for kind, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(kind) or ():
            if key in labels:
                test = {"key": key, "operator": operator, "values": [labels[key]]}
                selector["matchExpressions"] = [*selector.get("matchExpressions", ()), test]
