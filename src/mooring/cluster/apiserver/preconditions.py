"""Preconditions of writes (uid, resourceVersion), and the start of a deletion."""

from __future__ import annotations

from typing import Final

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.errors import (
    conflict,
    invalid_kind,
    invalid_value,
    precondition_failed,
)
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object

_FINALIZERS: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


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
