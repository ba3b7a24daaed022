"""Field selectors: the fields each kind supports, and their values.

The store keeps the values of `fields_of` with every item; lists and watches match against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Fields, Item, Object

_USUAL: Final = ("metadata.name", "metadata.namespace")
_PODS: Final = (
    *_USUAL, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
    "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP",
    "status.nominatedNodeName",
)  # fmt: skip
_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENTS: Final = (
    *_USUAL, *(f"involvedObject.{part}" for part in _ABOUT), "reason", "reportingComponent",
    "source", "type",
)  # fmt: skip

# Supported names by kind, and the field that each stands for.
_KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "pods": {**{name: name for name in _PODS}, "spec.host": "spec.nodeName",
             "status.podIPs": "status.podIP"},
    "nodes": {name: name for name in ("metadata.name", "spec.unschedulable")},
    "namespaces": {name: name for name in ("metadata.name", "status.phase")},
    "events": {name: name for name in _EVENTS},
    "events.events.k8s.io": {
        **{name: name for name in (*_USUAL, "reason", "type")},
        **{f"regarding.{part}": f"involvedObject.{part}" for part in _ABOUT},
        "reportingController": "reportingComponent",
    },
    "secrets": {name: name for name in (*_USUAL, "type")},
    "services": {name: name for name in (*_USUAL, "spec.clusterIP", "spec.type")},
    "replicationcontrollers": {name: name for name in (*_USUAL, "status.replicas")},
    "jobs.batch": {name: name for name in (*_USUAL, "status.successful")},
    "resourceslices.resource.k8s.io": {
        name: name for name in ("metadata.name", "spec.driver", "spec.nodeName")
    },
}  # fmt: skip


class FieldRequirement(msgspec.Struct, frozen=True):
    """One requirement of a selector."""

    field: str
    value: str
    is_equal: bool


class FieldSelector(msgspec.Struct, frozen=True):
    """Requirements that must all hold."""

    tests: tuple[FieldRequirement, ...] = ()

    def matches(self, item: Item) -> bool:
        return all((_value(item, test.field) == test.value) == test.is_equal for test in self.tests)


EVERYTHING: Final = FieldSelector()


@lru_cache(maxsize=1024)
def parse_fields(resource: Resource, text: str) -> FieldSelector:
    """Parse `a=b,c!=d`; raises kube-apiserver's error if that fails."""
    tests = []
    for part in _parts(text):
        test = _test(part, text)
        if test is None:
            continue
        known = _KNOWN.get(resource.qualified)
        field = known.get(test.field) if known else test.field
        if field is None:
            raise bad_request(f"field label not supported: {test.field}")
        if known is None and field not in _USUAL:
            raise bad_request(
                f'"{field}" is not a known field selector: only "metadata.name", '
                '"metadata.namespace"'
            )
        tests.append(msgspec.structs.replace(test, field=field))
    return FieldSelector(tuple(tests)) if tests else EVERYTHING


def _parts(text: str) -> list[str]:
    """Split at commas that are not escaped."""
    parts, current, is_escaped = [], "", False
    for letter in text:
        if letter == "," and not is_escaped:
            parts.append(current)
            current = ""
            continue
        is_escaped = letter == "\\" and not is_escaped
        current += letter
    return [*parts, current]


def _test(part: str, text: str) -> FieldRequirement | None:
    if not part:
        return None
    for index, letter in enumerate(part):
        rest = part[index:]
        operator = next((one for one in ("!=", "==", "=") if rest.startswith(one)), "")
        if letter in "!=" and operator:
            value = _unescaped(part[index + len(operator) :])
            field = part[:index]
            return FieldRequirement(field, value, operator != "!=") if field or value else None
    raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescaped(value: str) -> str:
    return value.replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\")


# --- what objects answer -----------------------------------------------------------------------


def _value(item: Item, field: str) -> str:
    if field == "metadata.name":
        return item.name
    if field == "metadata.namespace":
        return item.namespace
    return item.fields.get(field, "")


def fields_of(key: str) -> Fields:
    """The field values that the store keeps for a kind, besides name and namespace."""
    return _FIELD_VALUES.get(key, _nothing)


def _nothing(value: Object) -> Mapping[str, str]:
    return {}


def _pod(value: Object) -> Mapping[str, str]:
    spec, status = value.get("spec", {}), value.get("status", {})
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": status.get("podIP", ""),
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


def _node(value: Object) -> Mapping[str, str]:
    is_closed = value.get("spec", {}).get("unschedulable", False)
    return {"spec.unschedulable": "true" if is_closed else "false"}


def _namespace(value: Object) -> Mapping[str, str]:
    return {"status.phase": value.get("status", {}).get("phase", "")}


def _event(value: Object) -> Mapping[str, str]:
    about: Mapping[str, Any] = value.get("involvedObject") or {}
    source = (value.get("source") or {}).get("component", "")
    return {
        **{f"involvedObject.{part}": about.get(part, "") for part in _ABOUT},
        "reason": value.get("reason", ""),
        "reportingComponent": value.get("reportingComponent", ""),
        "source": source or value.get("reportingComponent", ""),
        "type": value.get("type", ""),
    }


def _secret(value: Object) -> Mapping[str, str]:
    return {"type": value.get("type", "")}


def _service(value: Object) -> Mapping[str, str]:
    spec = value.get("spec", {})
    return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _replication_controller(value: Object) -> Mapping[str, str]:
    return {"status.replicas": str(value.get("status", {}).get("replicas", 0))}


def _job(value: Object) -> Mapping[str, str]:
    return {"status.successful": str(value.get("status", {}).get("succeeded", 0))}


def _slice(value: Object) -> Mapping[str, str]:
    spec = value.get("spec", {})
    return {"spec.driver": spec.get("driver", ""), "spec.nodeName": spec.get("nodeName", "")}


_FIELD_VALUES: Final[Mapping[str, Fields]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "events": _event,
    "secrets": _secret,
    "services": _service,
    "replicationcontrollers": _replication_controller,
    "jobs.batch": _job,
    "resourceslices.resource.k8s.io": _slice,
}
