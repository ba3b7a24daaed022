"""The custom resources of one server: which definitions are served, by path, kind and key."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mooring.cluster.apiserver.customresources.resource import CustomKind, CustomResource
from mooring.cluster.apiserver.resources import (
    DEFINITIONS,
    RESOURCES,
    Resource,
    by_key,
    by_kind,
    by_path,
)
from mooring.cluster.apiserver.store import Object, Store, StoreChange


class CustomResources:
    """Follows the definitions in a store. A definition is served once it is established."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kinds: dict[str, CustomKind] = {}  # by key, which is the definition's name
        self._by_path: dict[tuple[str, str, str], CustomResource] = {}
        self._by_kind: dict[tuple[str, str], CustomResource] = {}
        self.resources: tuple[CustomResource, ...] = ()
        self.on_change: Callable[[], None] | None = None
        for item in store.list(DEFINITIONS):
            self._learn(item.decoded(), store.version)
        self._index()
        store.listen(self._follow)

    # --- what is served ------------------------------------------------------------------------

    def find(self, group: str, version: str, name: str) -> Resource | None:
        """The resource of a path, custom or not."""
        return by_path(group, version, name) or self._by_path.get((group, version, name))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        return by_kind(api_version, kind) or self._by_kind.get((api_version, kind))

    def by_key(self, key: str) -> Resource | None:
        """The resource that the objects under a key of the store are of."""
        if (found := by_key(key)) is not None:
            return found
        kind = self._kinds.get(key)
        return kind.stored if kind is not None else None

    def all(self) -> Iterator[Resource]:
        """Every resource that has objects of its own, once."""
        yield from (found for found in RESOURCES if not found.storage)
        yield from (kind.stored for kind in self._kinds.values())

    def kind(self, key: str) -> CustomKind | None:
        return self._kinds.get(key)

    # --- following the definitions -------------------------------------------------------------

    def _follow(self, change: StoreChange) -> None:
        if change.resource != DEFINITIONS.key:
            return
        if change.type == "DELETED":
            self._kinds.pop(change.new.name, None)
            self._store.end_subscriptions(change.new.name)
        else:
            self._learn(change.new.decoded(), change.version)
        self._index()

    def _learn(self, definition: Object, version: int) -> None:
        meta = definition["metadata"]
        name = meta["name"]
        if not is_established(definition):
            self._kinds.pop(name, None)
            return
        known = self._kinds.get(name)
        same = (meta["uid"], meta.get("generation", 0))
        if known is None or (known.uid, known.generation) != same:
            known = self._kinds[name] = CustomKind(definition, version)
        known.is_terminating = "deletionTimestamp" in meta

    def _index(self) -> None:
        self.resources = tuple(
            resource for name in sorted(self._kinds) for resource in self._kinds[name].resources
        )
        self._by_path = {(one.group, one.version, one.name): one for one in self.resources}
        self._by_kind = {(one.api_version, one.kind): one for one in self.resources}


def is_established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
