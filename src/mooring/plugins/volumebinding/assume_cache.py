"""Objects as they will be once the watch shows our writes.

Until the watch shows the effect of a decision, the next pods must not be given the same volume. So
the changed object is assumed: it replaces the stored one until the watch shows another version than
the one it was made from.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class OutOfDate(Exception):
    """The object has changed since the decision was made."""


class AssumeCache(Generic[T]):
    """The objects of one kind, some of them assumed."""

    def __init__(self, type_: type[T], objects: Callable[[], Objects]) -> None:
        self._type: type[T] = type_
        self._objects = objects
        self._assumed: dict[tuple[str, str], T] = {}
        self._changed: set[str] = set()  # names, until they are taken

    def __len__(self) -> int:
        return len(self._assumed)

    def stored(self, name: str, namespace: str = "") -> T | None:
        """What the watch has shown."""
        return self._objects().get(self._type, name, namespace)

    def get(self, name: str, namespace: str = "") -> T | None:
        stored = self.stored(name, namespace)
        if stored is None:
            self._assumed.pop((namespace, name), None)
            return None
        return self.latest(stored)

    def latest(self, stored: T) -> T:
        """The assumed object, or the stored one."""
        if not self._assumed:
            return stored
        key = (stored.namespace, stored.name)
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if assumed.metadata.resource_version == stored.metadata.resource_version:
            return assumed
        del self._assumed[key]
        return stored

    def assume(self, value: T) -> None:
        """Replace the stored object; OutOfDate if this was made from another version."""
        stored = self.stored(value.name, value.namespace)
        known = stored.metadata.resource_version if stored is not None else "none"
        made_from = value.metadata.resource_version
        if stored is None or known != made_from:
            raise OutOfDate(f'"{value.key}" is out of sync (stored: {known}, assume: {made_from})')
        self._assumed[value.namespace, value.name] = value
        self._changed.add(value.name)

    def restore(self, value: T) -> None:
        """Assume it no longer, unless another object was assumed in its place since."""
        key = (value.namespace, value.name)
        if self._assumed.get(key) is value:
            del self._assumed[key]
            self._changed.add(value.name)

    def assumed(self) -> Iterator[T]:
        """Those that are assumed, some perhaps overtaken by the watch; `get` says which."""
        return iter(self._assumed.values())

    def take_changed(self) -> set[str]:
        """The names of those that were assumed, or are no longer, since the last call."""
        changed, self._changed = self._changed, set()
        return changed
