"""What may be wrong with the parts of a pod that say where it may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mooring.cluster.apiserver.failures import (
    Problems,
    duplicate,
    not_allowed,
    required,
    unsupported,
    wrong,
)
from mooring.cluster.apiserver.names import label_faults, label_value_faults, qualified_name_faults
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.selectors import (
    key_problems,
    label_selector_problems,
    node_selector_problems,
    node_term_problems,
)

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_RANGE: Final = "must be in the range 1-100"


def affinity_problems(affinity: Mapping[str, Any], field: str) -> Problems:
    found: Problems = []
    if nodes := affinity.get("nodeAffinity"):
        found += _node_affinity_problems(nodes, f"{field}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            found += _pod_term_problems(term, f"{field}.{kind}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            place = f"{field}.{kind}.{_PREFERRED}[{index}]"
            found += _weight_problems(weighted, place)
            term = weighted.get("podAffinityTerm") or {}
            found += _pod_term_problems(term, f"{place}.podAffinityTerm")
    return found


def _node_affinity_problems(affinity: Mapping[str, Any], field: str) -> Problems:
    found: Problems = []
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        found += node_selector_problems(needed, f"{field}.{_REQUIRED}")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{field}.{_PREFERRED}[{index}]"
        found += _weight_problems(term, place)
        preference = term.get("preference") or {}
        found += node_term_problems(preference, f"{place}.preference", is_strict=False)
    return found


def _weight_problems(term: Mapping[str, Any], field: str) -> Problems:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [wrong(f"{field}.weight", weight, _RANGE)]


def _pod_term_problems(term: Mapping[str, Any], field: str) -> Problems:
    found = label_selector_problems(term.get("labelSelector"), f"{field}.labelSelector")
    found += label_selector_problems(term.get("namespaceSelector"), f"{field}.namespaceSelector")
    for name in term.get("namespaces") or ():
        found += [wrong(f"{field}.namespace", name, fault) for fault in label_faults(name)]
    found += _label_key_problems(term, field)
    key = term.get("topologyKey", "")
    if not key:
        found.append(required(f"{field}.topologyKey", "can not be empty"))
    return found + key_problems(key, f"{field}.topologyKey")


def _label_key_problems(term: Mapping[str, Any], field: str) -> Problems:
    """Of keys whose values are taken from the pod itself."""
    found: Problems = []
    selector = term.get("labelSelector")
    for kind in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(kind) or ()
        if keys and selector is None:
            why = "must not be specified when labelSelector is not set"
            found.append(not_allowed(f"{field}.{kind}", why))
            continue
        for index, key in enumerate(keys):
            found += key_problems(key, f"{field}.{kind}[{index}]")
    same = term.get("matchLabelKeys") or ()
    # By now each of the keys stands in the selector once, because the server has put it there.
    seen = set((selector or {}).get("matchLabels") or ())
    for test in (selector or {}).get("matchExpressions") or ():
        if test.get("key") in same and test["key"] in seen:
            why = "exists in both matchLabelKeys and labelSelector"
            found.append(wrong(f"{field}[{same.index(test['key'])}]", test["key"], why))
        seen.add(test.get("key"))
    for index, key in enumerate(same):
        if key in (term.get("mismatchLabelKeys") or ()):
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(wrong(f"{field}.matchLabelKeys[{index}]", key, why))
    return found


def spread_problems(constraints: Sequence[Mapping[str, Any]], field: str) -> Problems:
    found: Problems = []
    for index, constraint in enumerate(constraints):
        place = f"{field}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        action = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            found.append(wrong(f"{place}.maxSkew", skew, "must be greater than zero"))
        if not key:
            found.append(required(f"{place}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            found.append(unsupported(f"{place}.whenUnsatisfiable", action, _ACTIONS))
        for other in constraints[index + 1 :]:
            if (other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, action):
                pair = f"{{{key}, {action}}}"
                found.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", pair))
                break
        found += _domain_problems(constraint, action, place)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy, "Honor") not in ("Honor", "Ignore"):
                supported = ("Honor", "Ignore")
                found.append(unsupported(f"{place}.{policy}", constraint[policy], supported))
        found += _label_key_problems(constraint, place)
        found += label_selector_problems(constraint.get("labelSelector"), f"{place}.labelSelector")
    return found


def _domain_problems(constraint: Mapping[str, Any], action: str, field: str) -> Problems:
    domains = constraint.get("minDomains")
    found: Problems = []
    if domains is None:
        return found
    if domains <= 0:
        found.append(wrong(f"{field}.minDomains", domains, "must be greater than zero"))
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        found.append(wrong(f"{field}.minDomains", domains, why))
    return found


def toleration_problems(tolerations: Sequence[Mapping[str, Any]], field: str) -> Problems:
    found: Problems = []
    for index, toleration in enumerate(tolerations):
        place = f"{field}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            found += key_problems(key, f"{place}.key")
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values '
            found.append(wrong(f"{place}.operator", operator, why + 'and all keys"'))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(wrong(f"{place}.effect", effect, why))
        if operator in ("", "Equal"):
            if faults := label_value_faults(value):
                found.append(wrong(f"{place}.operator", value, ";".join(faults)))
        elif operator == "Exists":
            if value:
                why = "value must be empty when `operator` is 'Exists'"
                found.append(wrong(f"{place}.operator", value, why))
        else:
            named = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
            found.append(unsupported(f"{place}.operator", operator, ("Equal", "Exists", *named)))
        if effect and effect not in EFFECTS:
            found.append(unsupported(f"{place}.effect", effect, EFFECTS))
    return found


def gate_problems(gates: Sequence[Mapping[str, Any]], field: str) -> Problems:
    found: Problems = []
    seen = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        found += [wrong(f"{field}[{index}]", name, fault) for fault in qualified_name_faults(name)]
        if name in seen:
            found.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
    return found


def merge_label_keys(pod: Object) -> None:
    """Write the values of matchLabelKeys and mismatchLabelKeys into the selectors, once."""
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
