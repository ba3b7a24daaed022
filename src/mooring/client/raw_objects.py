"""Objects as the server wrote them, for those to whom our structs are not enough.

Structs hold the fields that scheduling needs, and an extender may want others. What is kept here is
JSON; it costs memory, so somebody has to say of which objects it is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic

import msgspec

from mooring.api.unreadable import NOT_JSON
from mooring.client._decoding import O

_LEFT_OUT: Final = ("apiVersion", "kind")  # lists do not say them of their items either


class RawObjects(Generic[O]):
    """The JSON of one kind's objects by uid, of those that are `wanted`."""

    def __init__(self, wanted: Callable[[O], bool] = lambda value: True) -> None:
        self._wanted = wanted
        self._kept: dict[str, bytes] = {}
        self._trimmed: set[str] = set()  # uids of those that are fit to be handed on

    def put(self, value: O, raw: msgspec.Raw) -> None:
        """An object was read from this JSON."""
        uid = value.metadata.uid
        self._trimmed.discard(uid)
        if self._wanted(value):
            self._kept[uid] = bytes(raw)  # a copy: the raw one holds on to a whole page
        else:
            self._kept.pop(uid, None)

    def drop(self, uid: str) -> None:
        """An object is gone."""
        self._kept.pop(uid, None)
        self._trimmed.discard(uid)

    def get(self, uid: str) -> bytes | None:
        """The latest JSON, without its kind and without `managedFields`; None if not kept."""
        found = self._kept.get(uid)
        if found is None or uid in self._trimmed:
            return found
        try:
            document: dict[str, Any] = msgspec.json.decode(found)
        except NOT_JSON:  # in a field that our struct has not, and that was passed over
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
