"""The steps of a write that depend on the kind, as kube-apiserver's REST strategies.

`verbs.py` calls them in order; `registry.py` says how the kinds differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mooring.client.errors import StatusError
from mooring.cluster.apiserver import metadata
from mooring.cluster.apiserver.customresources import strategy as custom
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.defaulting import objects
from mooring.cluster.apiserver.errors import (
    ErrorList,
    bad_request,
    conflict,
    invalid_kind,
    invalid_value,
    precondition_failed,
)
from mooring.cluster.apiserver.events import is_translated
from mooring.cluster.apiserver.metadata import keep
from mooring.cluster.apiserver.quantities import BadQuantity
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.resources import ENDPOINT_SLICES, Resource
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.validation.kinds import validate_new_event
from mooring.cluster.apiserver.validation.pods import validate_pod_spec

_NOT_CONTENT: Final = {"apiVersion", "kind", "metadata", "status"}
_FINALIZERS: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@contextmanager
def _readable(resource: Resource) -> Iterator[None]:
    """Refuse an object if a quantity in it can't be parsed."""
    try:
        yield
    except BadQuantity as error:
        kind = resource.kind
        raise bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {error}'
        ) from error


def set_defaults(resource: Resource, value: Object) -> None:
    if isinstance(resource, CustomResource):
        resource.fit(value)
        return
    kind = kind_of(resource)
    if kind.set_defaults is not None:
        with _readable(resource):
            kind.set_defaults(value)


def prepare_status(resource: Resource, value: Object, now: str, old: Object | None = None) -> None:
    with _readable(resource):
        objects.prepare_status(resource, value, now, old)


def prepare_new(resource: Resource, value: Object) -> None:
    """Remove the fields that a client can't set on creation."""
    if isinstance(resource, CustomResource):
        custom.prepare_new(resource, value)
        return
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
    if kind.prepare is not None:
        kind.prepare(value, None)


def prepare_update(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Keep the old object's fields that this subresource can't change."""
    if isinstance(resource, CustomResource):
        custom.prepare_update(resource, new, old, subresource)
        return
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
    if (prepare := kind_of(resource).prepare) is not None:
        prepare(new, old)


def count_generation(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Increase the generation with the spec, or with a Deployment's annotations and the like."""
    if isinstance(resource, CustomResource):
        custom.count_generation(resource, new, old, subresource)
        return
    meta, before = new["metadata"], old["metadata"]
    keep(meta, before, "generation")
    if subresource == "status" or not kind_of(resource).has_generation:
        return
    content = (new.keys() | old.keys()) - _NOT_CONTENT
    has_changed = any(new.get(field) != old.get(field) for field in content)
    if resource.key == "deployments.apps":
        has_changed |= meta.get("annotations") != before.get("annotations")
    elif resource.key == ENDPOINT_SLICES.key:
        has_changed |= meta.get("labels") != before.get("labels")
    if has_changed:
        meta["generation"] = before.get("generation", 0) + 1


def validate_create(resource: Resource, value: Object) -> ErrorList:
    if isinstance(resource, CustomResource):
        return custom.validate_create(resource, value)
    found = metadata.validate_object_meta(resource, value["metadata"])
    kind = kind_of(resource)
    if kind.validate is not None:
        found += kind.validate(value)
    if is_translated(resource):
        found += validate_new_event(value)
    return found


def validate_update(resource: Resource, new: Object, old: Object, subresource: str) -> ErrorList:
    if isinstance(resource, CustomResource):
        return custom.validate_update(resource, new, old, subresource)
    meta, before = new["metadata"], old["metadata"]
    found: ErrorList = []
    if meta != before:
        found += metadata.validate_object_meta(resource, meta)
        found += metadata.validate_object_meta_update(meta, before)
    kind = kind_of(resource)
    if subresource == "status":
        return found + (kind.validate_status(new, old) if kind.validate_status is not None else [])
    if resource.key == "pods" and subresource:
        return found + validate_pod_spec(new["spec"], "spec")
    if kind.validate is not None and kind.validates_updates:
        found += kind.validate(new)
    if kind.validate_update is not None:
        found += kind.validate_update(new, old)
    return found


# --- preconditions and deletion -----------------------------------------------------------------


def check_basis(resource: Resource, item: Item, meta: Object) -> None:
    """Refuse an update of another object, or of another version of it."""
    uid, version = meta.get("uid", ""), meta.get("resourceVersion", "")
    if uid and uid != item.uid:
        why = f"UID in precondition: {uid}, UID in object meta: {item.uid}"
        raise precondition_failed(resource, item.namespace, item.name, why)
    if version in ("", "0"):
        if kind_of(resource).needs_version:
            problem = invalid_value(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise invalid_kind(resource.name, resource.group, item.name, [problem])
    elif version != str(item.version):
        if not version.isdecimal():
            raise StatusError(f'strconv.ParseUint: parsing "{version}": invalid syntax', code=500)
        raise conflict(resource.name, resource.group, item.name)
    meta["resourceVersion"] = str(item.version)


def check_preconditions(resource: Resource, item: Item, uid: str, version: str) -> None:
    """Refuse a deletion of another object, or of another version of it."""
    if uid and uid != item.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({item.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource.kind, resource.group, item.name, why)
    if version and version != str(item.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({item.version}). The object might have been modified"
        )
        raise conflict(resource.kind, resource.group, item.name, why)


def remaining_finalizers(known: list[str], propagation: str) -> list[str]:
    """The finalizers of an object under deletion; the policy decides about two of them."""
    if propagation not in (*_FINALIZERS, "Background"):
        return known
    rest = [name for name in known if name not in _FINALIZERS.values()]
    return [*rest, _FINALIZERS[propagation]] if propagation in _FINALIZERS else rest


def mark(meta: Object, now: str) -> None:
    """Set the deletion timestamp of an object that its finalizers keep."""
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = now
        if meta.get("generation"):
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = 0
