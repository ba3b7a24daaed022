"""A heap whose items can be found, replaced and removed by name.

Removal only forgets the name; the entry stays in the heap, is skipped when it is popped, and is
swept out when removed entries outnumber the others. Everything is O(log n), amortised.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

_MOST_COMPARED: Final = 5_000  # entries, in a millisecond or a few
_SWEEP_FLOOR: Final = 64  # below this many leftovers a sweep is not worth it


class _Held(NamedTuple, Generic[T]):
    item: T
    arrival: int
    push: int


class NamedHeap(Generic[T]):
    """Smallest item first, by `order`; equal items in the order they were added.

    `order` is called once per push or replacement, and its result must not change afterwards.
    """

    __slots__ = ("_counter", "_heap", "_held", "_order")

    def __init__(self, order: Callable[[T], object]) -> None:
        self._order = order
        # (order, arrival, push, name); `push` is unique, so names are never compared.
        self._heap: list[tuple[object, int, int, str]] = []
        self._held: dict[str, _Held[T]] = {}
        self._counter = itertools.count()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __iter__(self) -> Iterator[T]:
        """All items, smallest first; the heap stays as it is."""
        return (self._held[entry[3]].item for entry in sorted(filter(self._is_live, self._heap)))

    def items(self) -> list[T]:
        """All, in no order, at the price of a copy."""
        return [held.item for held in self._held.values()]

    def ahead_of(self, name: str) -> int | None:
        """How many come before the item of that name; None if there is none, or too many."""
        held = self._held.get(name)
        if held is None or len(self._heap) > _MOST_COMPARED:
            return None
        own = (self._order(held.item), held.arrival)
        return sum(1 for entry in self._heap if entry[:2] < own and self._is_live(entry))

    def get(self, name: str) -> T | None:
        held = self._held.get(name)
        return None if held is None else held.item

    def put(self, name: str, item: T) -> None:
        """Add or replace the item of that name; a replacement keeps its place among equals."""
        held = self._held.get(name)
        push = next(self._counter)
        arrival = push if held is None else held.arrival
        self._held[name] = _Held(item, arrival, push)
        heapq.heappush(self._heap, (self._order(item), arrival, push, name))
        self._sweep()

    def remove(self, name: str) -> T | None:
        held = self._held.pop(name, None)
        if held is None:
            return None
        self._sweep()
        return held.item

    def peek(self) -> T | None:
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return self._held[self._heap[0][3]].item if self._heap else None

    def pop(self) -> T | None:
        while self._heap:
            entry = heapq.heappop(self._heap)
            if self._is_live(entry):
                return self._held.pop(entry[3]).item
        return None

    def _is_live(self, entry: tuple[object, int, int, str]) -> bool:
        held = self._held.get(entry[3])
        return held is not None and held.push == entry[2]

    def _sweep(self) -> None:
        if len(self._heap) > 2 * len(self._held) + _SWEEP_FLOOR:
            self._heap = list(filter(self._is_live, self._heap))
            heapq.heapify(self._heap)
