"""The steps of a write that depend on the kind, as kube-apiserver's REST strategies.

`verbs.py` calls them in order; `registry.py` says how the kinds differ.
"""

from __future__ import annotations

from mooring.cluster.apiserver import metadata
from mooring.cluster.apiserver.defaulting.objects import unreadable
from mooring.cluster.apiserver.errors import ErrorList
from mooring.cluster.apiserver.events import is_translated
from mooring.cluster.apiserver.metadata import keep
from mooring.cluster.apiserver.quantities import BadQuantity
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.kinds import validate_new_event
from mooring.cluster.apiserver.validation.pods import validate_pod_spec, validate_pod_status_update


def set_defaults(resource: Resource, value: Object) -> None:
    """Set the defaults of an object; Refused if a quantity in it can't be parsed."""
    kind = kind_of(resource)
    if kind.set_defaults is not None:
        try:
            kind.set_defaults(value)
        except BadQuantity as error:
            raise unreadable(resource, error) from error


def prepare_new(resource: Resource, value: Object) -> None:
    """Remove the fields that a client can't set on creation."""
    kind = kind_of(resource)
    meta = value["metadata"]
    if kind.has_generation:
        meta["generation"] = 1
    if kind.first_status is not None:
        value["status"] = {
            key: dict(part) if isinstance(part, dict) else part
            for key, part in kind.first_status.items()
        }
    if resource.key == "namespaces":
        spec = value.setdefault("spec", {})
        if "kubernetes" not in spec.get("finalizers", ()):
            spec["finalizers"] = [*spec.get("finalizers", ()), "kubernetes"]


def prepare_update(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Keep the old object's fields that this subresource can't change."""
    has_status = "status" in resource.subresources
    meta, before = new["metadata"], old["metadata"]
    if subresource == "status":
        for field in list(new.keys() - {"metadata", "status", "kind", "apiVersion"}):
            del new[field]
        for field in old.keys() - {"metadata", "status", "kind", "apiVersion"}:
            new[field] = old[field]
        for field in kind_of(resource).status_keeps:
            keep(meta, before, field)
    elif has_status:
        keep(new, old, "status")
    if resource.key == "namespaces" and subresource != "finalize":
        keep(new.setdefault("spec", {}), old.get("spec", {}), "finalizers")


def count_generation(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Increase the generation with the spec; a Deployment's annotations count as well."""
    meta, before = new["metadata"], old["metadata"]
    keep(meta, before, "generation")
    if subresource == "status" or not kind_of(resource).has_generation:
        return
    has_changed = new.get("spec") != old.get("spec")
    if resource.key == "deployments.apps":
        has_changed |= meta.get("annotations") != before.get("annotations")
    if has_changed:
        meta["generation"] = before.get("generation", 0) + 1


def validate_create(resource: Resource, value: Object) -> ErrorList:
    found = metadata.validate_object_meta(resource, value["metadata"])
    kind = kind_of(resource)
    if kind.validate is not None:
        found += kind.validate(value)
    if is_translated(resource):
        found += validate_new_event(value)
    return found


def validate_update(resource: Resource, new: Object, old: Object, subresource: str) -> ErrorList:
    meta, before = new["metadata"], old["metadata"]
    found: ErrorList = []
    if meta != before:
        found += metadata.validate_object_meta(resource, meta)
        found += metadata.validate_object_meta_update(meta, before)
    if subresource == "status":
        return found + (validate_pod_status_update(new, old) if resource.key == "pods" else [])
    if resource.key == "pods" and subresource:
        return found + validate_pod_spec(new["spec"], "spec")
    kind = kind_of(resource)
    if kind.validate is not None and kind.validates_updates:
        found += kind.validate(new)
    if kind.validate_update is not None:
        found += kind.validate_update(new, old)
    return found
