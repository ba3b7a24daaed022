"""The kinds that a definition makes: one `CustomResource` per version that is served.

Versions share their objects, which are stored in the storage version. A conversion changes the
apiVersion and prunes: strategy `None`, the only one here.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.customresources.columns import columns_of
from mooring.cluster.apiserver.customresources.json_paths import Path, json_path
from mooring.cluster.apiserver.customresources.pruning import prune, set_defaults
from mooring.cluster.apiserver.customresources.structural import Structural, merge_schema
from mooring.cluster.apiserver.customresources.validation_rules import RuleSet
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.schema import Schema
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.tables.columns import Layout

_encode: Final = msgspec.json.Encoder().encode


class ScalePaths(msgspec.Struct, frozen=True):
    """Where the scale subresource finds its values."""

    spec: Path
    status: Path
    selector: Path | None
    spec_text: str  # as messages give it


class CustomVersion:
    """One version of a definition, compiled."""

    def __init__(self, version: Object) -> None:
        self.name: str = version["name"]
        self.document: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.structural: Structural = Structural(self.document)
        self.merge_schema: Schema = merge_schema(self.structural)
        self.rules: RuleSet = RuleSet(self.document)
        subresources = version.get("subresources") or {}
        self.has_status: bool = "status" in subresources
        self.scale: ScalePaths | None = _scale_paths(subresources.get("scale"))
        self.layout: Layout = columns_of(version.get("additionalPrinterColumns") or [])
        self.selectable: dict[str, Path] = {
            one["jsonPath"].removeprefix("."): json_path(one["jsonPath"], whole_keys=True)
            for one in version.get("selectableFields") or ()
        }
        self.warning: str | None = version.get("deprecationWarning")
        self.is_deprecated: bool = bool(version.get("deprecated"))


def _scale_paths(scale: Object | None) -> ScalePaths | None:
    if scale is None:
        return None
    selector = scale.get("labelSelectorPath")
    spec = scale["specReplicasPath"]
    status = json_path(scale["statusReplicasPath"])
    return ScalePaths(json_path(spec), status, json_path(selector) if selector else None, spec)


class CustomKind:
    """A definition, compiled; replaced when its spec changes."""

    def __init__(self, definition: Object, since: int) -> None:
        spec = definition["spec"]
        names = spec["names"]
        self.uid: str = definition["metadata"]["uid"]
        self.generation: int = definition["metadata"].get("generation", 0)
        self.since: int = since  # the store's version: objects before it may need defaults
        self.is_terminating: bool = False
        self.list_kind: str = names["listKind"]
        self.singular: str = names["singular"]
        self.versions: dict[str, CustomVersion] = {
            one["name"]: CustomVersion(one) for one in spec["versions"]
        }
        self.storage: CustomVersion = next(
            self.versions[one["name"]] for one in spec["versions"] if one.get("storage")
        )
        self.resources: tuple[CustomResource, ...] = tuple(
            self._resource(spec, self.versions[one["name"]])
            for one in spec["versions"]
            if one.get("served")
        )
        # For the server's own reads and writes, even if the storage version is not served.
        self.stored: CustomResource = self._resource(spec, self.storage)

    def _resource(self, spec: Object, version: CustomVersion) -> CustomResource:
        names = spec["names"]
        subresources = ("status",) * version.has_status + ("scale",) * (version.scale is not None)
        return CustomResource(
            group=spec["group"],
            version=version.name,
            name=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=subresources,
            of=self,
            served=version,
        )


class CustomResource(Resource, frozen=True, kw_only=True):
    """A kind that a CustomResourceDefinition defines, in one of its versions."""

    of: CustomKind
    served: CustomVersion
    is_custom: bool = True

    @property
    def singular(self) -> str:
        return self.of.singular

    @property
    def list_kind(self) -> str:
        return self.of.list_kind

    def fit(self, value: Object) -> list[str]:
        """Prune an object and fill in defaults, in place; the paths of unknown fields."""
        unknown = prune(value, self.served.structural)
        set_defaults(value, self.served.structural)
        return unknown

    def read(self, item: Item) -> Object:
        """A stored object in this version."""
        value = item.decoded()
        stored = value.get("apiVersion", "").rpartition("/")[2]
        written = self.of.versions.get(stored, self.of.storage)
        prune(value, written.structural)
        set_defaults(value, written.structural)
        if stored != self.version:
            value["apiVersion"] = self.api_version
            prune(value, self.served.structural)
        return value

    def raw(self, item: Item) -> bytes:
        """The same as bytes; mostly those that are stored."""
        head = f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()
        if item.version > self.of.since and item.raw.startswith(head):
            return item.raw
        return _encode(self.read(item))

    def to_stored(self, value: Object) -> Object:
        """The object to store; what the storage version does not have is removed from `value`."""
        if self.served is self.of.storage:
            return value
        prune(value, self.of.storage.structural)
        head: dict[str, Any] = {"kind": self.kind, "apiVersion": self.of.stored.api_version}
        return head | {key: part for key, part in value.items() if key not in head}
