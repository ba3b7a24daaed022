"""Objects of a cluster in memory that plugins change: claims and their like."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from msgspec import structs

from mooring.api.codec import convert, to_builtins
from mooring.api.meta import Object
from mooring.client.errors import ConflictError, NotFound
from mooring.framework._internal import MERGE

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class ObjectWrites:
    """Fulfils `framework._internal.ObjectWriter` on top of a store of objects."""

    def __init__(self) -> None:
        self._generated = itertools.count(1)
        self._background: set[asyncio.Future[None]] = set()

    def find(self, kind: type[O], name: str, namespace: str) -> O | None:
        raise NotImplementedError

    def store(self, value: O) -> O:
        """Store an object; as it is then."""
        raise NotImplementedError

    def drop(self, value: Object) -> None:
        raise NotImplementedError

    async def get(self, kind: type[O], name: str, namespace: str = "") -> O:
        found = self.find(kind, name, namespace)
        if found is None:
            raise NotFound(f'{kind.KIND} "{name}" not found', code=404, reason="NotFound")
        return found

    async def create(self, value: O) -> O:
        meta = value.metadata
        if not meta.name:
            name = f"{meta.generate_name}{next(self._generated)}"
            value = structs.replace(value, metadata=structs.replace(meta, name=name))
        return self.store(value)

    async def change(
        self, value: O, change: Mapping[str, Any], *, subresource: str = "", kind: str = MERGE
    ) -> O:
        current = await self.get(type(value), value.name, value.namespace)
        wanted = change.get("metadata", {})
        for field, known in (
            ("uid", current.uid),
            ("resourceVersion", current.metadata.resource_version),
        ):
            if wanted.get(field, known) != known:
                text = f'Operation cannot be fulfilled on {value.KIND} "{value.name}": {field}'
                raise ConflictError(text, code=409, reason="Conflict")
        return self.store(convert(merged(to_builtins(current), change), type(value)))

    async def remove(self, value: Object) -> None:
        self.drop(value)

    def soon(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.ensure_future(write())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def cancel_writes(self) -> None:
        """End the writes in the background that wait to be repeated."""
        for task in self._background:
            task.cancel()


def merged(current: Any, change: Any) -> Any:
    """A merge patch applied; of lists, entries that are to be deleted by uid."""
    if isinstance(change, list) and any("$patch" in one for one in change if isinstance(one, dict)):
        gone = {one["uid"] for one in change}
        return [one for one in current or [] if one.get("uid") not in gone]
    if not isinstance(change, Mapping):
        return change
    result = dict(current) if isinstance(current, Mapping) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
