"""Who owns which fields of an object: `metadata.managedFields`.

The real server keeps this for every write. Here an object is followed only from the moment on that
somebody gives a name (`fieldManager=`, as kubectl does) when creating it, or applies to it: the
pods that controllers make by the thousand carry nothing and cost nothing. An apply to an object
nobody followed finds everything owned by `before-first-apply`, as on the real server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.patching.fieldsets import (
    Comparison,
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

# Nobody owns what says which object it is, and what only the server sets.
_UNOWNED: Final[frozenset[Path]] = frozenset(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


class ManagedFieldsEntry(msgspec.Struct):
    """One manager and what it owns."""

    manager: str
    operation: str
    api_version: str
    fields: Fields
    subresource: str = ""
    time: str = ""

    @property
    def identity(self) -> Identity:
        """Applies replace each other whatever their version; updates are told apart by it."""
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
    operation: str,
    subresource: str,
    now: str,
    *,
    agent: str = "",
) -> Object:
    """`new` with managedFields after a write that is no apply (an apply has written its own).

    `manager` is what the caller named itself with `fieldManager`, `agent` what stands in for it
    (the user agent up to the slash) where the object is followed anyway. Call it on every write,
    with defaults filled in; `new` is changed in place and returned.
    """
    if operation == APPLY:
        return new
    given = new["metadata"].pop("managedFields", None)
    if subresource:
        given = None  # only a write to the object itself may say who owns what
    before = (old or {}).get("metadata", {}).get("managedFields")
    if not before and not given and not (old is None and manager):
        return new  # by far the most writes: nobody follows this object
    if given in ([], [{}]):
        return new  # the documented way to be forgotten
    managers = read_managers(given) or read_managers(before) or {}
    schema = schema_of(new.get("apiVersion", ""), new.get("kind", ""))
    if schema is not None:
        name = manager or agent or _UNNAMED
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
    """Whoever wrote owns what changed, and nobody else does any more."""
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


def owned_changes(old: Object, new: Object, schema: Schema, subresource: str) -> Comparison:
    """What changed, as far as this part of the object may change it."""
    return Comparison(*(ownable(part, subresource) for part in compare(old, new, schema)))


def ownable(fields: Fields, subresource: str) -> Fields:
    """Without what the server resets, and without what nobody owns."""
    reset = "f:spec" if subresource == "status" else "f:status"
    return {path for path in fields if path and path[0] != reset} - _UNOWNED


def give_up(entries: Iterable[ManagedFieldsEntry], changes: Comparison) -> None:
    lost = changes.removed | changes.modified | changes.added
    for entry in entries:
        entry.fields -= lost


def forget_empty(managers: Managers) -> None:
    for identity in [found for found, entry in managers.items() if not entry.fields]:
        del managers[identity]


# --- as they are written --------------------------------------------------------------------------


def read_managers(entries: Any) -> Managers | None:
    """From `metadata.managedFields`; None if that is not what it should be."""
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
