"""Server-side apply: an object states the wanted fields, and its manager owns them.

Fields that the manager applied before and leaves out now are removed, unless another manager owns
them. A different value for a field that another manager owns is a conflict, unless forced.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any, Final

import msgspec

from mooring.api import yaml
from mooring.api.unreadable import NOT_JSON, NOT_YAML, why_unreadable
from mooring.client.errors import ConflictError, ServerError
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.patching.fieldsets import (
    Fields,
    compare,
    fields_of,
    in_reading_order,
    path_text,
    with_named_fields,
    without,
)
from mooring.cluster.apiserver.patching.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    ManagedFieldsEntry,
    Managers,
    forget_empty,
    give_up,
    ownable,
    owned_changes,
    read_managers,
    write_managers,
)
from mooring.cluster.apiserver.patching.overlay import overlay, schema_error
from mooring.cluster.apiserver.requests import MAX_NODES
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.schema import Schema, empty_object, schema_of
from mooring.cluster.apiserver.store import Object

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL: Final = "kubectl"  # allowed to take over what `kubectl apply` without --server-side set
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class _Conflicts(Exception):
    """Fields of other managers that the applied object would change."""

    def __init__(self, found: list[tuple[ManagedFieldsEntry, Fields]]) -> None:
        super().__init__()
        self.found = found


def applied(
    resource: Resource,
    live: Object | None,
    body: bytes,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: str,
) -> Object:
    """The object after an apply, with its managedFields; raises StatusError."""
    config = _decoded(resource, body)
    schema = _schema(resource)
    if said := schema_error(config, schema):
        meta = config.get("metadata")
        named = meta if isinstance(meta, dict) else {}
        place = f"{named.get('namespace', '')}/{named.get('name', '')}"
        raise ServerError(
            f"failed to create typed patch object ({place}; {_kind(config)}): {said}", code=500
        )
    before: Object = live or {"apiVersion": resource.api_version, "kind": resource.kind}
    before.setdefault("metadata", {})
    managers = read_managers(before["metadata"].pop("managedFields", None)) or {}
    if live is not None and not managers:
        _claim_everything(managers, live, schema, subresource, now)
    wish = ManagedFieldsEntry(manager, APPLY, resource.api_version, set(), subresource, now)
    try:
        new = _apply(before, config, managers, wish, schema, force)
    except _Conflicts as conflicts:
        allowed = _set_by_kubectl(before, schema) if manager == _KUBECTL else set()
        left = [(entry, fields - allowed) for entry, fields in conflicts.found]
        if any(fields for _, fields in left):
            raise _refused([pair for pair in left if pair[1]]) from None
        new = _apply(before, config, managers, wish, schema, True)
    if manager == _KUBECTL:
        _renew_last_applied(new, config)
    return new


def _schema(resource: Resource) -> Schema:
    if isinstance(resource, CustomResource):
        return resource.served.merge_schema
    schema = schema_of(resource.api_version, resource.kind)
    if schema is None:
        raise LookupError(f"schema.txt has no type for {resource.api_version} {resource.kind}")
    return schema


def _apply(
    live: Object,
    config: Object,
    known: Managers,
    wish: ManagedFieldsEntry,
    schema: Schema,
    force: bool,
) -> Object:
    managers = copy.deepcopy(known)
    last = managers.pop(wish.identity, None)
    merged = overlay(copy.deepcopy(live), copy.deepcopy(config), schema)
    wished = fields_of(config, schema)
    mine = msgspec.structs.replace(wish, fields=ownable(wished, wish.subresource))
    new = merged
    if last is not None:
        owned = wished.union(*(entry.fields for entry in managers.values()))
        new = _pruned(merged, last.fields, owned, schema)
        # Name and namespace are not removed when an apply leaves them out.
        meta = merged["metadata"]
        identity = {key: meta[key] for key in _IDENTITY if key in meta}
        new["metadata"] = {**identity, **new.get("metadata", {})}
    changes = owned_changes(live, new, schema, wish.subresource)
    changed = changes.modified | changes.added
    conflicts = [(entry, entry.fields & changed) for entry in managers.values()]
    if not force and any(fields for _, fields in conflicts):
        raise _Conflicts([pair for pair in conflicts if pair[1]])
    give_up(managers.values(), changes)
    if new == live:
        mine.time = last.time if last is not None else ""  # nothing happened to the object
    managers[mine.identity] = mine
    forget_empty(managers)
    result: Object = copy.deepcopy(new)
    write_managers(result, managers)
    return result


def _pruned(merged: Object, last: Fields, owned: Fields, schema: Schema) -> Any:
    """Without the fields that were applied last time and have no owner now."""
    everything = with_named_fields(fields_of(merged, schema), schema)
    was = with_named_fields(last, schema)
    owned = with_named_fields(owned, schema)
    remains = _named_fields(without(merged, was, schema), schema)
    remains = _named_fields(without(merged, everything - (remains | owned), schema), schema)
    # Fields that never had an owner, such as defaults, are kept.
    return without(merged, (everything - remains) & was, schema)


def _named_fields(value: Any, schema: Schema) -> Fields:
    return with_named_fields(fields_of(value, schema), schema)


def _claim_everything(
    managers: Managers, live: Object, schema: Schema, subresource: str, now: str
) -> None:
    """Fields that were set before the first apply get an owner of their own."""
    changes = owned_changes(empty_object(schema), live, schema, subresource)
    fields = changes.added | changes.modified
    entry = ManagedFieldsEntry(
        BEFORE_FIRST_APPLY, UPDATE, live["apiVersion"], fields, subresource, now
    )
    if fields:
        managers[entry.identity] = entry


# --- kubectl without --server-side ----------------------------------------------------------------


def _set_by_kubectl(live: Object, schema: Schema) -> Fields:
    """The fields of a client-side apply that still have the applied value."""
    written = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if not written:
        return set()
    try:
        last = msgspec.json.decode(written)
    except NOT_JSON:
        return set()
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return set()
    changes = compare(last, live, schema)
    return fields_of(last, schema) - changes.modified - changes.added - changes.removed


def _renew_last_applied(new: Object, config: Object) -> None:
    """Update the annotation, so that a later client-side apply has its last state."""
    annotations = new["metadata"].get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    config = copy.deepcopy(config)
    own = config.get("metadata", {}).get("annotations")
    if own:
        own.pop(LAST_APPLIED, None)
    annotations[LAST_APPLIED] = msgspec.json.encode(config, order="sorted").decode() + "\n"


# --- decoding and messages ------------------------------------------------------------------------


def _decoded(resource: Resource, body: bytes) -> Object:
    config = _parsed(body)
    if config is None:
        config = {}
    if not isinstance(config, dict):
        kind = "array" if isinstance(config, list) else "string"
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    if (config.get("apiVersion"), config.get("kind")) != (resource.api_version, resource.kind):
        raise bad_request(f"invalid object type: {_kind(config)}")
    meta = config.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        raise bad_request("metadata.managedFields must be nil")
    return config


def _parsed(body: bytes) -> Any:
    """JSON or YAML; kubectl sends JSON, which is much slower to read as YAML."""
    try:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(body)
        return yaml.load(body, max_nodes=MAX_NODES)
    except NOT_YAML as error:
        words = why_unreadable(error).partition("\n")[0]
        raise bad_request(
            f"error decoding YAML: error converting YAML to JSON: yaml: {words}"
        ) from None


def _kind(config: Object) -> str:
    group, _, version = str(config.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={config.get('kind') or ''}"


def _refused(conflicts: list[tuple[ManagedFieldsEntry, Fields]]) -> ConflictError:
    conflicts.sort(key=lambda pair: pair[0].identity)
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {entry.described()}",
            "field": path_text(path),
        }
        for entry, fields in conflicts
        for path in in_reading_order(fields)
    ]
    if len(causes) == 1:
        [cause] = causes
        said = f"1 conflict: {cause['message']}: {cause['field']}"
    else:
        lines: list[str] = []
        for entry, fields in conflicts:
            lines.append(f"conflicts with {entry.described()}:")
            lines += [f"- {path_text(path)}" for path in in_reading_order(fields)]
        said = f"{len(causes)} conflicts: " + "\n".join(lines)
    message = f"Apply failed with {said}"
    return ConflictError(message, code=409, reason="Conflict", details={"causes": causes})
