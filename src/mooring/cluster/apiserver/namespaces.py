"""Termination of namespaces: their content is deleted first."""

from __future__ import annotations

from typing import Final

from mooring.cluster.apiserver.errors import forbidden
from mooring.cluster.apiserver.resources import NAMESPACES, RESOURCES, Resource
from mooring.cluster.apiserver.store import Item, Store

_PROTECTED: Final = ("default", "kube-system", "kube-public")


class NamespaceTermination:
    """The terminating namespaces, and how many objects are left in each.

    Nothing can be created in a terminating namespace, so counting down is enough.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: dict[str, int] = {}
        for item in store.list(NAMESPACES):
            if b'"deletionTimestamp":' in item.raw:  # from before a restart
                self._left[item.name] = len(self._content(item.name))

    def check_deletable(self, name: str) -> None:
        """Refuse to delete the namespaces that every cluster needs."""
        if name in _PROTECTED:
            raise forbidden(NAMESPACES, name, "this namespace may not be deleted")

    def begin_termination(self, name: str) -> list[tuple[Resource, Item]]:
        """The content to delete before the namespace itself."""
        content = self._content(name)
        if content:
            self._left[name] = len(content)
        return content

    def has_emptied(self, name: str) -> bool:
        """Count one object less; True if it was the last of a terminating namespace."""
        left = self._left.get(name)
        if left is None:
            return False
        if left > 1:
            self._left[name] = left - 1
            return False
        del self._left[name]
        return True

    def _content(self, name: str) -> list[tuple[Resource, Item]]:
        kinds = {found.key: found for found in RESOURCES if found.namespaced and not found.storage}
        return [(found, item) for found in kinds.values() for item in self._store.list(found, name)]
