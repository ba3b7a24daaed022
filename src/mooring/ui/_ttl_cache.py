"""A bounded cache whose entries expire."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Keeps at most `most` values, each for its own number of seconds."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most = most
        self._now = now
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()  # -> value, expiry

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is None:
            return None
        value, end = found
        if self._now() >= end:
            del self._kept[key]
            return None
        return value

    def put(self, key: K, value: V, seconds: float) -> None:
        self._kept[key] = (value, self._now() + seconds)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
