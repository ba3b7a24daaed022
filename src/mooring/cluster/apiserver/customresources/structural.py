"""The structural schema of a version: what is known of each field of its objects.

Made of an `openAPIV3Schema` that `schema_rules.py` has accepted. Pruning, defaulting and the
schemas of patches follow it; `object_rules.py` reads the document itself, for its value rules.
"""

from __future__ import annotations

from typing import Any, Final

from mooring.cluster.apiserver.schema import ANY, Key, Schema
from mooring.cluster.apiserver.store import Object

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
VALIDATIONS: Final = "x-kubernetes-validations"
OF_OBJECTS: Final = ("apiVersion", "kind", "metadata")  # fields that every object has

_VALUE_NAMES: Final = {
    "string": "string",
    "integer": "int64",
    "number": "double",
    "boolean": "boolean",
}
_TEXT: Final = Schema(form="value", name="string")
_META: Final = Schema(form="struct", name="meta.v1.ObjectMeta")


class Structural:
    """One node of a structural schema."""

    __slots__ = (
        "additional",
        "default",
        "document",
        "has_default",
        "is_embedded",
        "is_nullable",
        "items",
        "preserves",
        "properties",
    )

    def __init__(self, document: Object) -> None:
        self.document: Object = document
        self.properties: dict[str, Structural] = {
            name: Structural(part) for name, part in (document.get("properties") or {}).items()
        }
        more = document.get("additionalProperties")
        # A boolean says nothing about what is below: the keys stay, their content is pruned.
        self.additional: Structural | None = None
        if more is not None:
            self.additional = Structural(more if isinstance(more, dict) else {})
        items = document.get("items")
        self.items: Structural = Structural(items) if isinstance(items, dict) else NOTHING
        self.preserves: bool = bool(document.get(PRESERVE))
        self.is_embedded: bool = bool(document.get(EMBEDDED))
        self.is_nullable: bool = bool(document.get("nullable"))
        self.has_default: bool = document.get("default") is not None
        self.default: Any = document.get("default")

    def at(self, name: str) -> Structural | None:
        """The schema of a field; None if it is unknown, or kept without being known."""
        return self.properties.get(name) or self.additional


NOTHING: Final[Structural] = Structural.__new__(Structural)
"""The schema of values about which nothing is said."""
NOTHING.document = {}
NOTHING.properties = {}
NOTHING.additional = None
NOTHING.items = NOTHING
NOTHING.preserves = NOTHING.is_embedded = NOTHING.is_nullable = NOTHING.has_default = False
NOTHING.default = None


# --- for patches ----------------------------------------------------------------------------------


def merge_schema(structural: Structural) -> Schema:
    """The schema of whole objects, for server-side apply and managed fields."""
    return _struct(structural, is_object=True)


def _struct(node: Structural, *, is_object: bool = False) -> Schema:
    members: dict[str, Schema] = {}
    if is_object or node.is_embedded:
        members = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}
    members |= {
        name: _schema(part) for name, part in node.properties.items() if name not in members
    }
    return Schema(
        form="struct",
        members=members,
        element=ANY if node.preserves else None,
        is_atomic=node.document.get(MAP_TYPE) == "atomic",
    )


def _schema(node: Structural) -> Schema:
    document = node.document
    if document.get(INT_OR_STRING):
        return Schema(form="value", name="intorstring")
    kind = document.get("type", "")
    if kind in _VALUE_NAMES:
        return Schema(form="value", name=_VALUE_NAMES[kind])
    if kind == "array":
        return _list(node)
    if kind != "object":
        return ANY
    if node.additional is not None and not node.properties:
        is_atomic = document.get(MAP_TYPE) == "atomic"
        element = _schema(node.additional) if node.additional.document else ANY
        return Schema(form="map", element=element, is_atomic=is_atomic)
    return _struct(node)


def _list(node: Structural) -> Schema:
    relation = node.document.get(LIST_TYPE, "atomic")
    properties = node.items.properties
    keys = tuple(
        Key(name, properties[name].default if name in properties else None)
        for name in node.document.get(MAP_KEYS) or ()
    )
    return Schema(
        form="list",
        element=_schema(node.items),
        is_atomic=relation == "atomic",
        keys=keys if relation == "map" else (),
    )
