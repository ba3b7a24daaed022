"""Answers that stay true for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """The last so many answers, each for so many seconds."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most = most
        self._now = now
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()  # -> answer, end

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is None:
            return None
        answer, end = found
        if self._now() >= end:
            del self._kept[key]
            return None
        return answer

    def put(self, key: K, answer: V, seconds: float) -> None:
        self._kept[key] = (answer, self._now() + seconds)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
