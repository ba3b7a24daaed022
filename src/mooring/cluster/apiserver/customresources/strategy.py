"""The steps of a write of custom objects; `apiserver/strategies.py` calls them."""

from __future__ import annotations

from typing import Any

from mooring.cluster.apiserver import metadata
from mooring.cluster.apiserver.customresources import object_rules
from mooring.cluster.apiserver.customresources.embedded import (
    validate_embedded,
    validate_lists,
)
from mooring.cluster.apiserver.customresources.json_paths import first
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.errors import ErrorList, FieldError, forbidden, invalid_value
from mooring.cluster.apiserver.metadata import keep
from mooring.cluster.apiserver.store import Object

_KEPT_BY_STATUS = ("managedFields", "resourceVersion")


def check_creatable(resource: CustomResource, name: str) -> None:
    """Nothing is created while its definition goes."""
    if resource.of.is_terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(resource, name, why)


def prepare_new(resource: CustomResource, value: Object) -> None:
    value["metadata"]["generation"] = 1
    if resource.served.has_status:
        value.pop("status", None)


def prepare_update(resource: CustomResource, new: Object, old: Object, subresource: str) -> None:
    """Through `status` only the status changes, elsewhere everything else."""
    if subresource == "status":
        meta = new["metadata"]
        for field in list(new.keys() - {"metadata", "status"}):
            del new[field]
        new.update({key: part for key, part in old.items() if key not in ("metadata", "status")})
        kept = {key: meta[key] for key in _KEPT_BY_STATUS if key in meta}
        new["metadata"] = {**old["metadata"], **kept}
        if "managedFields" not in kept:
            new["metadata"].pop("managedFields", None)
    elif resource.served.has_status:
        keep(new, old, "status")


def count_generation(resource: CustomResource, new: Object, old: Object, subresource: str) -> None:
    """Whatever is neither metadata nor a status of its own counts."""
    meta, before = new["metadata"], old["metadata"]
    keep(meta, before, "generation")
    if subresource == "status":
        return
    left_out = {"metadata", "status"} if resource.served.has_status else {"metadata"}
    if _without(new, left_out) != _without(old, left_out):
        meta["generation"] = before.get("generation", 0) + 1


def _without(value: Object, fields: set[str]) -> Object:
    return {key: part for key, part in value.items() if key not in fields}


def validate_create(resource: CustomResource, value: Object) -> ErrorList:
    found = metadata.validate_object_meta(resource, value["metadata"])
    return found + _validate(resource, value, None)


def validate_update(
    resource: CustomResource, new: Object, old: Object, subresource: str
) -> ErrorList:
    """What is invalid, and was not so before."""
    found: ErrorList = []
    if new["metadata"] != old["metadata"]:
        found += metadata.validate_object_meta(resource, new["metadata"])
        found += metadata.validate_object_meta_update(new["metadata"], old["metadata"])
    if _without(new, {"metadata"}) == _without(old, {"metadata"}):
        return found
    if subresource == "status":
        invalid = _validate_status(resource, new, old)
        known = _validate_status(resource, old, None) if invalid else []
    else:
        invalid = _validate(resource, new, old)
        known = _validate(resource, old, None) if invalid else []
    return found + [error for error in invalid if error not in known]


def _validate(resource: CustomResource, value: Object, old: Object | None) -> ErrorList:
    version = resource.served
    found = object_rules.validate(value, version.document)
    found += validate_lists(value, version.structural)
    found += validate_embedded(value, version.structural)
    found += _validate_scale(resource, value)
    return found + (version.rules.unchecked() if found else version.rules.validate(value, old))


def _validate_status(resource: CustomResource, value: Object, old: Object | None) -> ErrorList:
    version = resource.served
    status: Any = value.get("status")
    document = (version.document.get("properties") or {}).get("status") or {}
    structural = version.structural.at("status")
    if status is None or structural is None:
        return []
    found = object_rules.validate(status, document, "status", "")
    found += validate_lists(status, structural, "status")
    found += _validate_scale(resource, value)
    return found or version.rules.validate(value, old, only="status")


def _validate_scale(resource: CustomResource, value: Object) -> ErrorList:
    """The replicas of the scale subresource can't be negative."""
    scale = resource.served.scale
    if scale is None:
        return []
    replicas = first(value, scale.spec)
    found: list[FieldError] = []
    if isinstance(replicas, int) and replicas < 0:
        why = "should be a non-negative integer"
        found.append(invalid_value(scale.spec_text, replicas, why))
    return found
