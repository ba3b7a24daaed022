"""Objects that are neither pod nor node: services, claims, storage classes, budgets.

Filled by the event handlers, read by plugins through `handle.objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, TypeVar, cast

from msgspec import structs

T = TypeVar("T")
_Key = tuple[str, str]  # namespace and name
_Index = dict[Hashable, dict[_Key, Any]]


class Objects:
    """Stores per type, keyed by namespace and name."""

    def __init__(self) -> None:
        self._stores: dict[type[Any], dict[tuple[str, str], Any]] = {}
        self._by_namespace: dict[tuple[type[Any], str], dict[str, Any]] = {}
        self._indexes: dict[type[Any], dict[Callable[[Any], Hashable], _Index]] = {}
        self.changes: int = 0  # grows with every version
        self._versions: dict[type[Any], int] = {}
        self._declared: frozenset[type[Any]] | None = None
        self._unread: dict[type[Any], list[set[_Key]]] = {}  # of each reader

    def declare(self, kinds: Iterable[type[Any]]) -> None:
        """From now on only declared kinds can be read: others are not watched."""
        self._declared = (self._declared or frozenset()) | frozenset(kinds)

    def is_declared(self, type_: type[Any]) -> bool:
        """Whether objects of a kind can be read."""
        return self._declared is None or type_ in self._declared

    def get(self, type_: type[T], name: str, namespace: str = "") -> T | None:
        self._check(type_)
        store = self._stores.get(type_)
        return cast("T | None", store.get((namespace, name))) if store else None

    def list(self, type_: type[T]) -> Sequence[T]:
        self._check(type_)
        return list(self._stores.get(type_, {}).values())

    def in_namespace(self, type_: type[T], namespace: str) -> Collection[T]:
        """Those of one namespace; a view that is true during the call, not to be kept."""
        self._check(type_)
        return self._by_namespace.get((type_, namespace), {}).values()

    def select(self, type_: type[T], by: Callable[[T], Hashable], value: Hashable) -> Collection[T]:
        """Those of which `by` says `value`; a view that is true during the call, not to be kept.

        All objects are looked at the first time; from then on the index is kept current. So `by`
        must be one and the same function, and always say the same of an object.
        """
        self._check(type_)
        indexes = self._indexes.setdefault(type_, {})
        index = indexes.get(by)
        if index is None:
            index = indexes[by] = {}
            for key, known in self._stores.get(type_, {}).items():
                index.setdefault(by(known), {})[key] = known
        return index.get(value, {}).values()

    def unread(self, type_: type[Any]) -> set[tuple[str, str]]:
        """A set that the key of every object of a kind is put into when it comes, changes or goes.

        The reader takes them out; it begins with those that are there.
        """
        keys = set(self._stores.get(type_, {}))
        self._unread.setdefault(type_, []).append(keys)
        return keys

    def touch(self, type_: type[Any]) -> None:
        """A reader takes objects of this kind for others than are stored: a new version."""
        self._versions[type_] = self.version(type_) + 1
        self.changes += 1

    def version(self, type_: type[Any]) -> int:
        """A number that grows whenever an object of this type comes, changes or goes.

        A change that shows in nothing but its version is none.
        """
        return self._versions.get(type_, 0)

    def put(self, value: Any) -> Any | None:
        """Store a value; returns the one it replaces."""
        store = self._stores.setdefault(type(value), {})
        namespace, name = key = (value.metadata.namespace, value.metadata.name)
        old = store.get(key)
        store[key] = value
        self._by_namespace.setdefault((type(value), namespace), {})[name] = value
        self._changed(type(value), key, old, value)
        return old

    def remove(self, value: Any) -> Any | None:
        """Forget a value by its type and name; returns what was stored."""
        namespace, name = key = (value.metadata.namespace, value.metadata.name)
        neighbours = self._by_namespace.get((type(value), namespace), {})
        neighbours.pop(name, None)
        if not neighbours:
            self._by_namespace.pop((type(value), namespace), None)
        old = self._stores.get(type(value), {}).pop(key, None)
        if old is not None:
            self._changed(type(value), key, old, None)
        return old

    def _check(self, type_: type[Any]) -> None:
        if not self.is_declared(type_):
            # An empty answer would be worse: it would look like a cluster that has none.
            raise LookupError(f"{type_.__name__} objects are not watched: name them in `reads`")

    def _changed(self, type_: type[Any], key: _Key, old: Any | None, new: Any | None) -> None:
        if not _looks_alike(old, new):
            self.touch(type_)
        for unread in self._unread.get(type_, ()):
            unread.add(key)
        for by, index in self._indexes.get(type_, {}).items():
            if old is not None:
                said = by(old)
                del index[said][key]
                if not index[said]:
                    del index[said]
            if new is not None:
                index.setdefault(by(new), {})[key] = new


def _looks_alike(old: Any | None, new: Any | None) -> bool:
    """Whether two states of an object differ in nothing that we read, but for their versions."""
    if old is None or new is None:
        return False
    meta = structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return bool(structs.replace(old, metadata=meta) == new)
