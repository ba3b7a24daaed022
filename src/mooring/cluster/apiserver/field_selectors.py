"""Field selectors: the fields each kind supports, and their values.

The store keeps the values of `fields_of` with every item; lists and watches match against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from mooring.cluster.apiserver.customresources.json_paths import first
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Fields, Item, Object

_COMMON: Final = ("metadata.name", "metadata.namespace")
_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

# The fields that the store keeps for each kind, with the value of a field that is not set.
_STORED: Final[Mapping[str, Mapping[str, str]]] = {
    "pods": {
        "spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "",
        "spec.serviceAccountName": "", "spec.hostNetwork": "false", "status.phase": "",
        "status.podIP": "", "status.nominatedNodeName": "",
    },
    "nodes": {"spec.unschedulable": "false"},
    "namespaces": {"status.phase": ""},
    "events": {
        **{f"involvedObject.{part}": "" for part in _ABOUT}, "reason": "",
        "reportingComponent": "", "source": "", "type": "",
    },
    "secrets": {"type": ""},
    "services": {"spec.clusterIP": "", "spec.type": ""},
    "replicationcontrollers": {"status.replicas": "0"},
    "jobs.batch": {"status.successful": "0"},
    "resourceslices.resource.k8s.io": {"spec.driver": "", "spec.nodeName": ""},
}  # fmt: skip
# Where the value of a field is, if its name is not its path.
_PATHS: Final = {"status.successful": "status.succeeded", "source": "source.component"}
_CLUSTER_SCOPED: Final = ("nodes", "namespaces", "resourceslices.resource.k8s.io")

# The names that selectors may use, and the stored field that each of them stands for.
_KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    kind: {name: name for name in (*_COMMON[: 1 if kind in _CLUSTER_SCOPED else 2], *stored)}
    for kind, stored in _STORED.items()
} | {
    "events.events.k8s.io": {
        **{name: name for name in (*_COMMON, "reason", "type")},
        **{f"regarding.{part}": f"involvedObject.{part}" for part in _ABOUT},
        "reportingController": "reportingComponent",
    }
}
_ALIASES: Final = {"pods": {"spec.host": "spec.nodeName", "status.podIPs": "status.podIP"}}


class FieldRequirement(msgspec.Struct, frozen=True):
    """One requirement of a selector."""

    field: str
    value: str
    is_equal: bool


class FieldSelector(msgspec.Struct, frozen=True):
    """Requirements that must all hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, item: Item) -> bool:
        return all(
            (_value(item, test.field) == test.value) == test.is_equal for test in self.requirements
        )


class CustomFieldSelector(FieldSelector, frozen=True):
    """The same for custom objects, whose selectable fields the store does not keep."""

    resource: CustomResource | None = None

    def matches(self, item: Item) -> bool:
        if self.resource is None:
            return super().matches(item)
        value = self.resource.read(item)
        paths = self.resource.served.selectable
        for test in self.requirements:
            if test.field in paths:
                found = _text(first(value, paths[test.field]))
            else:
                found = _value(item, test.field)
            if (found == test.value) != test.is_equal:
                return False
        return True


EVERYTHING: Final = FieldSelector()


@lru_cache(maxsize=1024)
def parse_fields(resource: Resource, text: str) -> FieldSelector:
    """Parse `a=b,c!=d`; raises kube-apiserver's error if that fails."""
    if isinstance(resource, CustomResource):
        return _parse_custom(resource, text)
    requirements = []
    for part in _parts(text):
        test = _test(part, text)
        if test is None:
            continue
        known = _KNOWN.get(resource.qualified)
        name = _ALIASES.get(resource.qualified, {}).get(test.field, test.field)
        field = known.get(name) if known else name
        if field is None:
            raise bad_request(f"field label not supported: {test.field}")
        if known is None and field not in _COMMON:
            raise bad_request(
                f'"{field}" is not a known field selector: only "metadata.name", '
                '"metadata.namespace"'
            )
        requirements.append(msgspec.structs.replace(test, field=field))
    return FieldSelector(tuple(requirements)) if requirements else EVERYTHING


def _parse_custom(resource: CustomResource, text: str) -> FieldSelector:
    requirements = tuple(test for part in _parts(text) if (test := _test(part, text)) is not None)
    known = (*_COMMON[: 2 if resource.namespaced else 1], *resource.served.selectable)
    for test in requirements:
        if test.field not in known:
            raise bad_request(f"field label not supported: {test.field}")
    if all(test.field in _COMMON for test in requirements):
        return FieldSelector(requirements) if requirements else EVERYTHING
    return CustomFieldSelector(requirements, resource)


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


# --- field values ------------------------------------------------------------------------------


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _value(item: Item, field: str) -> str:
    if field == "metadata.name":
        return item.name
    if field == "metadata.namespace":
        return item.namespace
    return item.fields.get(field, "")


def fields_of(key: str) -> Fields:
    """The field values that the store keeps for a kind, besides name and namespace."""
    unset = dict(_STORED.get(key, {}))
    by_parent: dict[str, list[tuple[str, str]]] = {}
    for name in unset:
        parent, _, last = _PATHS.get(name, name).rpartition(".")
        by_parent.setdefault(parent, []).append((last, name))

    def read(value: Object) -> Mapping[str, str]:
        found = unset.copy()
        for parent, fields in by_parent.items():
            holder = value.get(parent) if parent else value
            if holder:
                for last, name in fields:
                    if text := holder.get(last):
                        found[name] = "true" if text is True else str(text)
        if key == "events":
            found["source"] = found["source"] or found["reportingComponent"]
        return found

    return read
