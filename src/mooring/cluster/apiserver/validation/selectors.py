"""Validation of label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mooring.cluster.apiserver.errors import (
    ErrorList,
    forbidden_field,
    invalid_value,
    invalid_values,
    required,
)
from mooring.cluster.apiserver.metadata import validate_labels
from mooring.cluster.apiserver.names import (
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)

_NO_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR: Final = "not a valid selector operator"


def validate_label_selector(selector: Mapping[str, Any] | None, field: str) -> ErrorList:
    if not selector:
        return []
    found = validate_labels(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, test in enumerate(selector.get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{index}]"
        found += _validate_operator(test, place)
        found += validate_label_key(test.get("key", ""), f"{place}.key")
        found += _validate_value(test, place)
    return found


def validate_node_selector(selector: Mapping[str, Any], field: str) -> ErrorList:
    """Of a required node selector."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        why = "must have at least one node selector term"
        return [required(f"{field}.nodeSelectorTerms", why)]
    found: ErrorList = []
    for index, term in enumerate(terms):
        found += validate_node_term(term, f"{field}.nodeSelectorTerms[{index}]", is_strict=True)
    return found


def validate_node_term(term: Mapping[str, Any], field: str, *, is_strict: bool) -> ErrorList:
    """Of one term; strict ones may only name valid label values."""
    found: ErrorList = []
    for index, test in enumerate(term.get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{index}]"
        if test.get("operator") in ("Gt", "Lt"):
            if len(test.get("values") or ()) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(required(f"{place}.values", why))
        else:
            found += _validate_operator(test, place)
        found += validate_label_key(test.get("key", ""), f"{place}.key")
        if is_strict:
            found += _validate_value(test, place)
    for index, test in enumerate(term.get("matchFields") or ()):
        found += _validate_field(test, f"{field}.matchFields[{index}]")
    return found


def validate_label_key(key: str, field: str) -> ErrorList:
    return invalid_values(field, key, qualified_name_faults(key))


def _validate_operator(test: Mapping[str, Any], field: str) -> ErrorList:
    operator, values = test.get("operator", ""), test.get("values") or ()
    if operator in ("In", "NotIn"):
        return [] if values else [required(f"{field}.values", _NO_VALUES)]
    if operator in ("Exists", "DoesNotExist"):
        return [forbidden_field(f"{field}.values", _VALUES)] if values else []
    return [invalid_value(f"{field}.operator", operator, _BAD_OPERATOR)]


def _validate_value(test: Mapping[str, Any], field: str) -> ErrorList:
    return [
        invalid_value(f"{field}.values[{index}]", value, fault)
        for index, value in enumerate(test.get("values") or ())
        for fault in label_value_faults(value)
    ]


def _validate_field(test: Mapping[str, Any], field: str) -> ErrorList:
    found: ErrorList = []
    operator, values = test.get("operator", ""), test.get("values") or ()
    if operator not in ("In", "NotIn"):
        found.append(invalid_value(f"{field}.operator", operator, _BAD_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{field}.values", why))
    if test.get("key") != "metadata.name":
        found.append(
            invalid_value(f"{field}.key", test.get("key", ""), "not a valid field selector key")
        )
        return found
    for index, value in enumerate(values):
        found += invalid_values(f"{field}.values[{index}]", value, subdomain_faults(value))
    return found
