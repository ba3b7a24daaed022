"""Object metadata: system fields, and validation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from mooring.cluster.apiserver import names
from mooring.cluster.apiserver.errors import (
    ErrorList,
    FieldError,
    forbidden_field,
    invalid_value,
    invalid_values,
    required,
)
from mooring.cluster.apiserver.resources import DEFINITIONS, Resource
from mooring.cluster.apiserver.store import Object

Faults = Callable[[str], tuple[str, ...]]

LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # of generated names; they can't form words
_MAX_PREFIX: Final = 58  # of a generated name, whose suffix has 5 letters
_MAX_ANNOTATION_BYTES: Final = 256 * 1024  # bytes
_STANDARD_FINALIZERS: Final = ("kubernetes", "foregroundDeletion", "orphan")
_MAY_BE_EMPTY: Final = ("labels", "annotations", "finalizers", "ownerReferences")

_NAMED: Final[Mapping[str, Faults]] = {
    "namespaces": names.label_faults,
    "services": names.service_name_faults,
    "statefulsets.apps": names.label_faults,
    "clusterrolebindings.rbac.authorization.k8s.io": names.path_segment_faults,
    "clusterroles.rbac.authorization.k8s.io": names.path_segment_faults,
    "rolebindings.rbac.authorization.k8s.io": names.path_segment_faults,
    "roles.rbac.authorization.k8s.io": names.path_segment_faults,
}


def new_uid(rng: random.Random) -> str:
    """A version 4 UUID."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def generated_name(prefix: str, rng: random.Random) -> str:
    return prefix[:_MAX_PREFIX] + "".join(rng.choices(LETTERS, k=5))


def fill(meta: Object, uid: str, now: str) -> None:
    """Set the system fields of a new object."""
    meta["uid"] = uid
    meta["creationTimestamp"] = now
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(field, None)
    tidy(meta)


def carry_over(meta: Object, before: Object) -> None:
    """Keep the system fields of an updated object."""
    if not meta.get("uid"):
        meta["uid"] = before.get("uid", "")
    keep(meta, before, "creationTimestamp")
    if "deletionTimestamp" in before:
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in before:
        meta.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
    meta.pop("selfLink", None)
    tidy(meta)


def keep(new: Object, old: Object, field: str) -> None:
    """Set a field of the new object to its old value."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def tidy(meta: Object) -> None:
    """Remove empty fields, so that equal metadata compares equal."""
    for field in _MAY_BE_EMPTY:
        if field in meta and not meta[field]:
            del meta[field]


# --- validation --------------------------------------------------------------------------------


def validate_object_meta(resource: Resource, meta: Mapping[str, Any]) -> ErrorList:
    found: ErrorList = []
    faults = _NAMED.get(resource.key, names.subdomain_faults)
    if prefix := meta.get("generateName", ""):
        hidden = names.without_dash(prefix)
        found += invalid_values("metadata.generateName", prefix, faults(hidden))
    name = meta.get("name", "")
    if name:
        found += invalid_values("metadata.name", name, faults(name))
    else:
        found.append(required("metadata.name", "name or generateName is required"))
    if resource.namespaced:
        namespace = meta.get("namespace", "")
        found += invalid_values("metadata.namespace", namespace, names.label_faults(namespace))
    found += validate_template_meta(meta, "metadata")
    found += _validate_owner_references(meta.get("ownerReferences") or [])
    # Definitions and what they define may have finalizers without a slash.
    is_extension = resource.is_custom or resource.key == DEFINITIONS.key
    return found + _validate_finalizers(meta.get("finalizers") or [], any_name=is_extension)


def validate_object_meta_update(meta: Mapping[str, Any], before: Mapping[str, Any]) -> ErrorList:
    found: ErrorList = []
    if "deletionTimestamp" in before:
        known = set(before.get("finalizers", ()))
        added = [name for name in meta.get("finalizers", ()) if name not in known]
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            why = "no new finalizers can be added if the object is being deleted, found new "
            found.append(
                forbidden_field("metadata.finalizers", f"{why}finalizers []string{{{listed}}}")
            )
    for field in ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if meta.get(field) != before.get(field):
            found.append(invalid_value(f"metadata.{field}", meta.get(field), "field is immutable"))
    return found


def validate_labels(labels: Mapping[str, str], field: str) -> ErrorList:
    found: ErrorList = []
    for key, value in labels.items():
        found += invalid_values(field, key, names.qualified_name_faults(key))
        found += invalid_values(field, value, names.label_value_faults(value))
    return found


def validate_template_meta(meta: Mapping[str, Any], field: str) -> ErrorList:
    """For labels and annotations, which is all that a pod template has."""
    found = validate_labels(meta.get("labels") or {}, f"{field}.labels")
    return found + _validate_annotations(meta.get("annotations") or {}, f"{field}.annotations")


def _validate_annotations(annotations: Mapping[str, str], field: str) -> ErrorList:
    found: ErrorList = []
    size = 0
    for key, value in annotations.items():
        found += invalid_values(field, key, names.qualified_name_faults(key.lower()))
        size += len(key) + len(value)
    if size > _MAX_ANNOTATION_BYTES:
        message = f"Too long: may not be more than {_MAX_ANNOTATION_BYTES} bytes"
        found.append(FieldError(field, message, "FieldValueTooLong"))
    return found


def _validate_owner_references(owners: list[Object]) -> ErrorList:
    found: ErrorList = []
    field = "metadata.ownerReferences"
    controller: Object | None = None
    for owner in owners:
        if not owner.get("apiVersion"):
            found.append(invalid_value(f"{field}.apiVersion", "", "version must not be empty"))
        for part in ("kind", "name", "uid"):
            if not owner.get(part):
                found.append(
                    invalid_value(f"{field}.{part}", owner.get(part, ""), "must not be empty")
                )
        if owner.get("kind") == "Event" and owner.get("apiVersion") == "v1":
            why = "/v1, Kind=Event is disallowed from being an owner"
            found.append(invalid_value(field, owner, why))
        if owner.get("controller"):
            if controller is not None:
                both = " and ".join(
                    f"{one.get('kind', '')}/{one.get('name', '')}" for one in (controller, owner)
                )
                why = "Only one reference can have Controller set to true. Found "
                found.append(invalid_value(field, owners, f'{why}"true" in references for {both}'))
            controller = owner
    return found


def _validate_finalizers(finalizers: list[str], *, any_name: bool) -> ErrorList:
    found: ErrorList = []
    field = "metadata.finalizers"
    for name in finalizers:
        found += invalid_values(field, name, names.qualified_name_faults(name))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(invalid_value(field, finalizers, why))
    for index, name in enumerate(finalizers):
        if not any_name and "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid_value(f"{field}[{index}]", name, why))
    return found
