"""Device classes by the extended resource that they serve.

DynamicResources makes claims for such resources; NodeResourcesFit leaves them to it on nodes that
do not offer them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import mooring.framework as fw
from mooring.api.requests import is_extended
from mooring.api.resource import IMPLICIT_RESOURCE_PREFIX, DeviceClass
from mooring.cache.objects import Objects


class ResourceClasses:
    """Device classes by the extended resource that they serve."""

    def __init__(self, objects: Callable[[], Objects]) -> None:
        self._of = objects
        self._version: int = -1
        self._explicit: dict[str, str] = {}

    def class_of(self, resource: str) -> str | None:
        """The name of the class that serves a resource."""
        if self._version != self._objects.version(DeviceClass):
            self._learn()
        found = self._explicit.get(resource)
        if found is None and resource.startswith(IMPLICIT_RESOURCE_PREFIX):
            name = resource.removeprefix(IMPLICIT_RESOURCE_PREFIX)
            if self.exists(name):
                return name
        return found

    def all(self) -> list[DeviceClass]:
        return list(self._objects.list(DeviceClass))

    def exists(self, name: str) -> bool:
        """Whether there is a class of this name."""
        return self._objects.get(DeviceClass, name) is not None

    @property
    def _objects(self) -> Objects:
        return self._of()

    def _learn(self) -> None:
        self._version = self._objects.version(DeviceClass)
        # The newest counts, then the smallest name: the last one written wins.
        classes = [
            one for one in self._objects.list(DeviceClass) if one.spec.extended_resource_name
        ]
        classes.sort(key=lambda one: one.name, reverse=True)
        classes.sort(key=lambda one: one.metadata.creation_timestamp or "")
        self._explicit = {one.spec.extended_resource_name or "": one.name for one in classes}

    def served(self, pod: fw.Pod) -> tuple[tuple[str, int], ...]:
        """The scalar resources that a pod asks for, if at least one is served by a class."""
        requests = pod.all_requests
        names = [name for name in requests if is_servable(name)]
        if not names:
            return ()  # most pods ask for none
        scalars = tuple([(name, requests[name]) for name in sorted(names) if requests[name]])
        return scalars if any(self.class_of(name) is not None for name, _ in scalars) else ()


@lru_cache(maxsize=1_000)
def is_servable(resource: str) -> bool:
    """Whether a class may serve a resource, by its name."""
    return resource.startswith(IMPLICIT_RESOURCE_PREFIX) or is_extended(resource)
