"""The objects, as bytes, and their history.

Every write gets the next resourceVersion, replaces one item, and is sent to the subscriptions in
order. Items are immutable: to change an object, decode it and put another one. The history is
bounded; a request for a version before its beginning raises Expired.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from mooring.cluster.apiserver.resources import Resource

Object = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

MAX_PENDING: Final = 20_000  # events for one subscription; a slower reader is cut off


class Item(msgspec.Struct, frozen=True, gc=False):
    """One object at one version."""

    namespace: str
    name: str
    uid: str
    version: int  # its resourceVersion
    raw: bytes  # JSON, with apiVersion and kind as it was stored
    labels: Mapping[str, str]
    fields: Mapping[str, str]  # what field selectors may ask for

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def path(self) -> str:
        """The key as etcd would sort it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def decoded(self) -> Object:
        """A copy that may be changed."""
        value: Object = _decode(self.raw)
        return value


class StoreChange(msgspec.Struct, frozen=True, gc=False):
    """One write: `old` is None for a creation; for a deletion `new` is the last state."""

    type: EventType
    version: int
    resource: str  # the key of the resource
    new: Item
    old: Item | None


class Expired(Exception):
    """The history does not reach back that far."""


Fields = Callable[[Object], Mapping[str, str]]
"""What field selectors may ask of an object of one kind."""


class Store:
    """All objects of one cluster; not thread-safe: one event loop owns it."""

    def __init__(
        self, *, history: int = 50_000, fields: Callable[[str], Fields] | None = None
    ) -> None:
        self._items: dict[str, dict[tuple[str, str], Item]] = {}
        self._history: deque[StoreChange] = deque()
        self._history_limit = history
        self._forgotten = 0  # the version of the last change that left the history
        self._fields = fields
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._listeners: list[Callable[[StoreChange], None]] = []
        self._untold: deque[StoreChange] = deque()  # changes that listeners have not got yet
        self._is_telling = False
        self.version: int = 0
        self.unsaved: str = ""  # why changes can't be saved at the moment, if they can't

    # --- reading -------------------------------------------------------------------------------

    def get(self, resource: Resource, namespace: str, name: str) -> Item | None:
        return self._items.get(resource.key, {}).get((namespace, name))

    def list(self, resource: Resource, namespace: str = "", *, at: int | None = None) -> list[Item]:
        """In the order of etcd's keys; with `at`, the objects at that version, or Expired."""
        found = self.items(resource) if at is None else self._items_at(resource.key, at)
        chosen = [item for item in found if not namespace or item.namespace == namespace]
        return sorted(chosen, key=lambda item: item.path)

    def items(self, resource: Resource) -> Collection[Item]:
        """In no particular order."""
        return self._items.get(resource.key, {}).values()

    def _items_at(self, key: str, version: int) -> Collection[Item]:
        """The objects at an earlier version: later changes of the history are undone."""
        self._check_kept(version)
        items = dict(self._items.get(key, {}))
        for change in reversed(self._history):
            if change.version <= version:
                break
            if change.resource == key:
                if change.old is None:
                    items.pop(change.new.key, None)
                else:
                    items[change.old.key] = change.old
        return items.values()

    def _check_kept(self, version: int) -> None:
        if version < self._forgotten:
            raise Expired(f"too old resource version: {version} ({self._forgotten})")

    def count(self, resource: Resource) -> int:
        return len(self._items.get(resource.key, {}))

    # --- writing -------------------------------------------------------------------------------

    def put(self, resource: Resource, value: Object) -> Item:
        """Create or replace; sets the resourceVersion of `value`, which the store then owns."""
        meta = value["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        items = self._items.setdefault(resource.key, {})
        old = items.get((namespace, name))
        item = self._next(resource, value)
        items[item.key] = item
        kind: EventType = "ADDED" if old is None else "MODIFIED"
        self._notify(StoreChange(kind, item.version, resource.key, item, old))
        return item

    def remove(self, resource: Resource, namespace: str, name: str) -> Item | None:
        """Remove an object; its last state, at the version of its removal."""
        old = self._items.get(resource.key, {}).pop((namespace, name), None)
        if old is None:
            return None
        last = self._next(resource, old.decoded())
        self._notify(StoreChange("DELETED", last.version, resource.key, last, old))
        return last

    def restore(self, version: int, objects: Iterable[tuple[str, int, bytes]]) -> None:
        """Start from another store's version: keys of resources, versions and objects.

        The history before is unknown, as after a compaction; listeners are not called.
        """
        for key, of, raw in objects:
            item = self._item(key, of, _decode(raw), raw)
            self._items.setdefault(key, {})[item.key] = item
        self.version = version
        self.compact()

    def _next(self, resource: Resource, value: Object) -> Item:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        return self._item(resource.key, self.version, value, _encode(value))

    def _item(self, key: str, version: int, value: Object, raw: bytes) -> Item:
        meta = value["metadata"]
        return Item(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            version=version,
            raw=raw,
            labels=meta.get("labels") or {},
            fields=self._fields(key)(value) if self._fields is not None else {},
        )

    # --- watching ------------------------------------------------------------------------------

    def listen(self, listener: Callable[[StoreChange], None]) -> None:
        """Call this with every change of any object, in order; for controllers and persistence.

        A listener may write: every listener gets the first change before the one that it caused.
        """
        self._listeners.append(listener)

    def subscribe(self, resource: Resource, since: int | None = None) -> Subscription:
        """Changes of a resource after version `since`; raises Expired. None: from now on."""
        subscription = Subscription(self, resource.key)
        if since is not None and since < self.version:
            self._check_kept(since)
            start = bisect_right(self._history, since, key=lambda change: change.version)
            for place in range(start, len(self._history)):
                if self._history[place].resource == resource.key:
                    subscription.push(self._history[place])
        self._subscriptions.setdefault(resource.key, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.get(subscription.resource, set()).discard(subscription)

    def end_subscriptions(self, key: str) -> None:
        """End the watches of a resource that is no longer served."""
        for subscription in tuple(self._subscriptions.get(key, ())):
            subscription.close()

    def compact(self) -> None:
        """Forget the history: watches that want to resume have to list again."""
        self._history.clear()
        self._forgotten = self.version

    def _notify(self, change: StoreChange) -> None:
        self._history.append(change)
        if len(self._history) > self._history_limit:
            self._forgotten = self._history.popleft().version
        for subscription in tuple(self._subscriptions.get(change.resource, ())):
            subscription.push(change)
        self._untold.append(change)
        if self._is_telling:
            return  # a listener has written: the outer call delivers this change next
        self._is_telling = True
        try:
            while self._untold:
                change = self._untold.popleft()
                for listener in self._listeners:
                    listener(change)
        finally:
            self._is_telling = False


class Subscription:
    """Changes of one resource, in order, for one reader."""

    def __init__(self, store: Store, resource: str) -> None:
        self.resource: str = resource
        self._store = store
        self._waiting: deque[StoreChange] = deque()
        self._arrived = asyncio.Event()
        self.has_ended: bool = False  # nothing more will arrive; what arrived may still be taken

    def push(self, change: StoreChange) -> None:
        if len(self._waiting) >= MAX_PENDING:
            self.close()  # too slow; the reader has to list again
            return
        self._waiting.append(change)
        self._arrived.set()

    def close(self) -> None:
        """End it; the reader gets the rest and then nothing."""
        self.has_ended = True
        self._store.unsubscribe(self)
        self._arrived.set()

    def take(self) -> list[StoreChange]:
        """All changes since the last call."""
        batch = list(self._waiting)
        self._waiting.clear()
        return batch

    def wake(self) -> None:
        """Wake the reader, so that it checks the clock."""
        self._arrived.set()

    async def arrival(self) -> None:
        """Wait until there is something to take, or `wake` is called."""
        if self._waiting or self.has_ended:
            return
        await self._arrived.wait()
        self._arrived.clear()
