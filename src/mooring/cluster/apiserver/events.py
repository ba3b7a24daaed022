"""Events are served as core/v1 and as events.k8s.io/v1, and stored as core/v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object

_NEW_NAMES: Final[Mapping[str, str]] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES: Final[Mapping[str, str]] = {new: old for old, new in _NEW_NAMES.items()}
_GROUP: Final = "events.k8s.io"


def is_translated(resource: Resource) -> bool:
    """Whether objects are served in another form than they are stored in."""
    return resource.group == _GROUP


def to_storage(resource: Resource, value: Object) -> Object:
    """An object as it is stored, under the kind that owns the storage."""
    # Kind and version come first, so that lists can leave them out without decoding anything.
    head: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
    if not is_translated(resource):
        return head | value | head
    head["apiVersion"] = "v1"
    return head | {_OLD_NAMES.get(field, field): part for field, part in value.items()} | head


def from_storage(resource: Resource, value: Object) -> Object:
    """A stored object as this kind serves it."""
    if not is_translated(resource):
        return value
    seen = {
        _NEW_NAMES.get(field, field): part
        for field, part in value.items()
        if part != "" or not field.startswith("reporting")
    }
    return seen | {"kind": resource.kind, "apiVersion": resource.api_version}
