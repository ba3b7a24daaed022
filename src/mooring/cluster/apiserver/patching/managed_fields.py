"""Field management: which manager owns which fields, in `metadata.managedFields`.

kube-apiserver tracks every write. Here an object is tracked from the moment it is created with a
`fieldManager` (as kubectl does) or applied to: the thousands of pods that controllers create have
no managedFields and cost nothing. The first apply to an untracked object finds all fields owned by
`before-first-apply`, as on the real server.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.patching.fieldsets import (
    FieldChanges,
    Fields,
    Path,
    compare,
    from_tree,
    to_tree,
)
from mooring.cluster.apiserver.schema import Schema, empty_object, schema_of
from mooring.cluster.apiserver.store import Object

APPLY: Final = "Apply"
UPDATE: Final = "Update"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
_UNNAMED: Final = "unknown"

Identity = tuple[str, str, str, str]

# Identity and server-set fields have no owner.
_UNOWNED_METADATA: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
    "managedFields", "resourceVersion",
)  # fmt: skip
_UNOWNED: Final[frozenset[Path]] = frozenset(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _UNOWNED_METADATA),
    ]
)


class ManagedFieldsEntry(msgspec.Struct):
    """One manager and the fields it owns."""

    manager: str
    operation: str
    api_version: str
    fields: Fields
    subresource: str = ""
    time: str = ""

    @property
    def identity(self) -> Identity:
        """Applies replace each other in any version; updates are distinguished by version."""
        version = "" if self.operation == APPLY else self.api_version
        return self.manager, self.operation, version, self.subresource

    def described(self) -> str:
        """As conflicts name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


Managers = dict[Identity, ManagedFieldsEntry]


def tracked(
    old: Object | None,
    new: Object,
    manager: str,
    subresource: str,
    now: str,
    *,
    agent: str = "",
    schema: Schema | None = None,
) -> Object:
    """`new` with managedFields after a write other than an apply, which writes its own.

    `manager` is the caller's `fieldManager`; `agent`, the user agent up to the slash, replaces it
    where the object is tracked anyway. `new` has its defaults; it is changed in place and returned.
    Custom objects have a `schema` of their own, and are always tracked.
    """
    given = new["metadata"].pop("managedFields", None)
    if subresource:
        given = None  # only a write to the object itself may set managedFields
    before = (old or {}).get("metadata", {}).get("managedFields")
    if schema is None and not before and not given and not (old is None and manager):
        return new  # most writes: the object is not tracked
    if given in ([], [{}]):
        return new  # the documented way to stop tracking
    managers = read_managers(given) or read_managers(before) or {}
    schema = schema or schema_of(new.get("apiVersion", ""), new.get("kind", ""))
    if schema is not None:
        name = manager or agent or _UNNAMED
        # Elements that lack their keys can't be followed; validation refuses them later.
        with suppress(ValueError):
            _follow(managers, old or empty_object(schema), new, schema, name, subresource, now)
    write_managers(new, managers)
    return new


def _follow(
    managers: Managers,
    old: Object,
    new: Object,
    schema: Schema,
    manager: str,
    subresource: str,
    now: str,
) -> None:
    """The writer owns the fields that changed, and no other manager does."""
    changes = owned_changes(old, new, schema, subresource)
    give_up(managers.values(), changes)
    taken = changes.modified | changes.added
    forget_empty(managers)
    if not taken:
        return
    entry = ManagedFieldsEntry(manager, UPDATE, new["apiVersion"], taken, subresource, now)
    previous = managers.get(entry.identity)
    if previous is not None:
        entry.fields |= previous.fields
    managers[entry.identity] = entry


def owned_changes(old: Object, new: Object, schema: Schema, subresource: str) -> FieldChanges:
    """The changes that this subresource may make."""
    return FieldChanges(*(ownable(part, subresource) for part in compare(old, new, schema)))


def ownable(fields: Fields, subresource: str) -> Fields:
    """Without fields that the server resets or that have no owner."""
    reset = "f:spec" if subresource == "status" else "f:status"
    return {path for path in fields if path and path[0] != reset} - _UNOWNED


def give_up(entries: Iterable[ManagedFieldsEntry], changes: FieldChanges) -> None:
    lost = changes.removed | changes.modified | changes.added
    for entry in entries:
        entry.fields -= lost


def forget_empty(managers: Managers) -> None:
    for identity in [found for found, entry in managers.items() if not entry.fields]:
        del managers[identity]


# --- as they are written --------------------------------------------------------------------------


def read_managers(entries: Any) -> Managers | None:
    """From `metadata.managedFields`; None if that is malformed."""
    found: Managers = {}
    for entry in entries or ():
        try:
            if entry["operation"] not in (APPLY, UPDATE) or entry["fieldsType"] != "FieldsV1":
                return None
            read = ManagedFieldsEntry(
                entry.get("manager", ""),
                entry["operation"],
                entry["apiVersion"],
                from_tree(entry.get("fieldsV1") or {}),
                entry.get("subresource", ""),
                entry.get("time", ""),
            )
        except (KeyError, TypeError, AttributeError):
            return None
        found[read.identity] = read
    return found


def write_managers(value: Object, managers: Managers) -> None:
    """To `metadata.managedFields`, in the server's order."""
    if not managers:
        value["metadata"].pop("managedFields", None)
        return
    ordered = sorted(
        managers.values(),
        key=lambda entry: (
            entry.operation,
            entry.time,
            entry.manager,
            entry.api_version,
            entry.subresource,
        ),
    )
    value["metadata"]["managedFields"] = [_written(entry) for entry in ordered]


def _written(entry: ManagedFieldsEntry) -> Object:
    written: Object = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time:
        written["time"] = entry.time
    written |= {"fieldsType": "FieldsV1", "fieldsV1": to_tree(entry.fields)}
    if entry.subresource:
        written["subresource"] = entry.subresource
    return written
