"""What may be wrong with selectors: of labels, and of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mooring.cluster.apiserver.failures import Problems, not_allowed, required, wrong
from mooring.cluster.apiserver.metadata import label_problems
from mooring.cluster.apiserver.names import (
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)

_NO_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR: Final = "not a valid selector operator"


def label_selector_problems(selector: Mapping[str, Any] | None, field: str) -> Problems:
    if not selector:
        return []
    found = label_problems(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, test in enumerate(selector.get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{index}]"
        found += _operator_problems(test, place)
        found += key_problems(test.get("key", ""), f"{place}.key")
        found += _value_problems(test, place)
    return found


def node_selector_problems(selector: Mapping[str, Any], field: str) -> Problems:
    """Of a node selector that must hold."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        why = "must have at least one node selector term"
        return [required(f"{field}.nodeSelectorTerms", why)]
    found: Problems = []
    for index, term in enumerate(terms):
        found += node_term_problems(term, f"{field}.nodeSelectorTerms[{index}]", is_strict=True)
    return found


def node_term_problems(term: Mapping[str, Any], field: str, *, is_strict: bool) -> Problems:
    """Of one term; strict ones may only name values that labels can have."""
    found: Problems = []
    for index, test in enumerate(term.get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{index}]"
        if test.get("operator") in ("Gt", "Lt"):
            if len(test.get("values") or ()) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(required(f"{place}.values", why))
        else:
            found += _operator_problems(test, place)
        found += key_problems(test.get("key", ""), f"{place}.key")
        if is_strict:
            found += _value_problems(test, place)
    for index, test in enumerate(term.get("matchFields") or ()):
        found += _field_problems(test, f"{field}.matchFields[{index}]")
    return found


def key_problems(key: str, field: str) -> Problems:
    """Of the key of a label."""
    return [wrong(field, key, fault) for fault in qualified_name_faults(key)]


def _operator_problems(test: Mapping[str, Any], field: str) -> Problems:
    operator, values = test.get("operator", ""), test.get("values") or ()
    if operator in ("In", "NotIn"):
        return [] if values else [required(f"{field}.values", _NO_VALUES)]
    if operator in ("Exists", "DoesNotExist"):
        return [not_allowed(f"{field}.values", _VALUES)] if values else []
    return [wrong(f"{field}.operator", operator, _BAD_OPERATOR)]


def _value_problems(test: Mapping[str, Any], field: str) -> Problems:
    return [
        wrong(f"{field}.values[{index}]", value, fault)
        for index, value in enumerate(test.get("values") or ())
        for fault in label_value_faults(value)
    ]


def _field_problems(test: Mapping[str, Any], field: str) -> Problems:
    found: Problems = []
    operator, values = test.get("operator", ""), test.get("values") or ()
    if operator not in ("In", "NotIn"):
        found.append(wrong(f"{field}.operator", operator, _BAD_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{field}.values", why))
    if test.get("key") != "metadata.name":
        found.append(wrong(f"{field}.key", test.get("key", ""), "not a valid field selector key"))
        return found
    for index, value in enumerate(values):
        for fault in subdomain_faults(value):
            found.append(wrong(f"{field}.values[{index}]", value, fault))
    return found
