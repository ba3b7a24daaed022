"""Termination of namespaces: their content is deleted first."""

from __future__ import annotations

from collections import Counter
from typing import Final

from mooring.cluster.apiserver.customresources.catalogue import CustomResources
from mooring.cluster.apiserver.errors import forbidden
from mooring.cluster.apiserver.resources import NAMESPACES, PODS, Resource
from mooring.cluster.apiserver.store import Item, Object, Store

_SETTLED: Final = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)
_REMAINING: Final = "Some resources are remaining"
_REMOVED: Final = "All content successfully removed"
_HELD: Final = "Some content in the namespace has finalizers remaining"
_FREE: Final = "All content-preserving finalizers finished"
_PROTECTED: Final = ("default", "kube-system", "kube-public")


class NamespaceTermination:
    """The terminating namespaces, and how many objects are left in each; pods go first.

    Nothing can be created in a terminating namespace, so counting down is enough.
    """

    def __init__(self, store: Store, custom: CustomResources) -> None:
        self._store = store
        self._custom = custom
        self._left: dict[str, int] = {}
        self._pods_left: dict[str, int] = {}
        for item in store.list(NAMESPACES):
            if b'"deletionTimestamp":' in item.raw:  # from before a restart
                self.begin_termination(item.name)

    def check_deletable(self, name: str) -> None:
        """Refuse to delete the namespaces that every cluster needs."""
        if name in _PROTECTED:
            raise forbidden(NAMESPACES, name, "this namespace may not be deleted")

    def begin_termination(self, name: str) -> list[tuple[Resource, Item]]:
        """The content to delete first: the pods, or everything if there are none."""
        content = self._content(name)
        if content:
            self._left[name] = len(content)
        self._pods_left.pop(name, None)
        pods = [(found, item) for found, item in content if found.key == PODS.key]
        if pods:
            self._pods_left[name] = len(pods)
        return pods or content

    def remaining(self, name: str) -> list[tuple[Resource, Item]]:
        """The content of a namespace without pods, to delete now."""
        return self._content(name)

    def has_lost_its_pods(self, resource: Resource, name: str) -> bool:
        """Count a removed pod; True if it was the last of a terminating namespace."""
        if resource.key != PODS.key or name not in self._pods_left:
            return False
        self._pods_left[name] -= 1
        if self._pods_left[name]:
            return False
        del self._pods_left[name]
        return True

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

    def conditions(self, name: str, now: str) -> list[Object]:
        """What the status of a terminating namespace says about the content that is left."""
        content = self._content(name)
        kinds: Counter[str] = Counter(found.qualified for found, _ in content)
        finalizers: Counter[str] = Counter(
            finalizer
            for _, item in content
            for finalizer in item.decoded()["metadata"].get("finalizers", ())
        )
        left = ", ".join(
            f"{kind}{'' if '.' in kind else '.'} has {count} resource instances"
            for kind, count in sorted(kinds.items())
        )
        held = ", ".join(
            f"{finalizer} in {count} resource instances"
            for finalizer, count in sorted(finalizers.items())
        )
        said = [
            *_SETTLED,
            ("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"{_REMAINING}: {left}")
            if left
            else ("NamespaceContentRemaining", "False", "ContentRemoved", _REMOVED),
            ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", f"{_HELD}: {held}")
            if held
            else ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", _FREE),
        ]
        return [
            {
                "type": kind,
                "status": status,
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            for kind, status, reason, message in said
        ]

    def _content(self, name: str) -> list[tuple[Resource, Item]]:
        return [
            (found, item)
            for found in self._custom.all()
            if found.namespaced
            for item in self._store.list(found, name)
        ]
