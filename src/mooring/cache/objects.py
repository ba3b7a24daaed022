"""Objects that are neither pod nor node: services, claims, storage classes, budgets.

Filled by the event handlers, read by plugins through `handle.objects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Objects:
    """Stores per type, keyed by namespace and name."""

    def __init__(self) -> None:
        self._stores: dict[type[Any], dict[tuple[str, str], Any]] = {}

    def get(self, type_: type[T], name: str, namespace: str = "") -> T | None:
        store = self._stores.get(type_)
        return cast("T | None", store.get((namespace, name))) if store else None

    def list(self, type_: type[T]) -> Sequence[T]:
        return list(self._stores.get(type_, {}).values())

    def put(self, value: Any) -> Any | None:
        """Store a value; returns the one it replaces."""
        store = self._stores.setdefault(type(value), {})
        key = (value.metadata.namespace, value.metadata.name)
        old = store.get(key)
        store[key] = value
        return old

    def remove(self, value: Any) -> Any | None:
        """Forget a value by its type and name; returns what was stored."""
        key = (value.metadata.namespace, value.metadata.name)
        return self._stores.get(type(value), {}).pop(key, None)
