"""The JSON of objects, for extenders: they may read fields that our structs do not have.

It costs memory, so it is kept only for objects that are `wanted`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic

import msgspec

from mooring.api.unreadable import NOT_JSON
from mooring.client._decoding import O

_LEFT_OUT: Final = ("apiVersion", "kind")  # items of a list do not have them either


class RawObjects(Generic[O]):
    """The JSON of one kind's objects by uid, of those that are `wanted`."""

    def __init__(self, wanted: Callable[[O], bool] = lambda value: True) -> None:
        self._wanted = wanted
        self._kept: dict[str, bytes] = {}
        self._trimmed: set[str] = set()  # uids

    def put(self, value: O, raw: msgspec.Raw) -> None:
        uid = value.metadata.uid
        self._trimmed.discard(uid)
        if self._wanted(value):
            self._kept[uid] = bytes(raw)  # a copy: the raw one holds on to a whole page
        else:
            self._kept.pop(uid, None)

    def drop(self, uid: str) -> None:
        self._kept.pop(uid, None)
        self._trimmed.discard(uid)

    def get(self, uid: str) -> bytes | None:
        """The latest JSON, without its kind and without `managedFields`; None if not kept."""
        found = self._kept.get(uid)
        if found is None or uid in self._trimmed:
            return found
        try:
            document: dict[str, Any] = msgspec.json.decode(found)
        except NOT_JSON:  # in a field that our struct does not have
            del self._kept[uid]
            return None
        for name in _LEFT_OUT:
            document.pop(name, None)
        if isinstance(meta := document.get("metadata"), dict):
            meta.pop("managedFields", None)
        found = self._kept[uid] = msgspec.json.encode(document)
        self._trimmed.add(uid)
        return found

    def __len__(self) -> int:
        return len(self._kept)
