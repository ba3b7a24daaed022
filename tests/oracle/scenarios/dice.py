"""The one source of chance, and the names, uids and times that objects are made with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Object = dict[str, Any]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_PODS = ("web", "api", "db", "job", "p")


class Dice:
    """Seeded chance. Names and uids never repeat within one scenario."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._names: set[str] = set()
        self._starts: set[str] = set()

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def some(self, choices: Sequence[T], fewest: int, most: int) -> list[T]:
        """Different ones, in any order."""
        count = self.between(fewest, min(most, len(choices)))
        return self._random.sample(list(choices), count)

    def between(self, lowest: int, highest: int) -> int:
        return self._random.randint(lowest, highest)

    def shuffle(self, items: Sequence[T]) -> list[T]:
        return self._random.sample(list(items), len(items))

    def word(self, length: int = 5) -> str:
        return "".join(self._random.choice(_LETTERS) for _ in range(length))

    def name(self, prefix: str) -> str:
        while (name := f"{prefix}-{self.word()}") in self._names:
            pass
        self._names.add(name)
        return name

    def pod_name(self) -> str:
        return self.name(self.pick(_PODS))

    def node_name(self) -> str:
        """As different clouds call them; the order of names matters nowhere but in ties."""
        while True:
            number = self.between(1, 400)
            name = self.pick(
                (
                    f"worker{number}",
                    f"kube-node-{number}",
                    f"m{number}",
                    f"n-{self.word(3)}",
                    f"gke-pool-{self.word(4)}",
                    f"ip-10-0-{self.between(0, 255)}-{self.between(0, 255)}.ec2.internal",
                )
            )
            if name not in self._names:
                self._names.add(name)
                return name

    def uid(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def moment(self, day: int | None = None) -> str:
        """A time in January 2026, on the day given or any of the first twenty."""
        seconds = self._random.randrange(24 * 3600)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"2026-01-{day or self.between(1, 20):02}T{clock}Z"

    def start_time(self) -> str:
        """A time at which no other pod started: the order among victims must be clear."""
        while (moment := self.moment()) in self._starts:
            pass
        self._starts.add(moment)
        return moment

    def meta(self, name: str, namespace: str | None = None, **more: Any) -> Object:
        """The metadata of a stored object; empty extras are left out."""
        meta: Object = {"name": name, "uid": self.uid(), "creationTimestamp": self.moment()}
        if namespace is not None:
            meta["namespace"] = namespace
        meta.update({key: value for key, value in more.items() if value})
        return meta
