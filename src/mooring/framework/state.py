"""The cycle state: data that plugins store between the extension points of one attempt.

A plugin declares a typed key once, `SPREAD: StateKey[Counts] = StateKey("spread")`, and
`state[SPREAD]` is a `Counts`: no strings, no casts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Failed(Exception):
    """Raised by a method that returns no status, to fail the attempt with exactly this text.

    Any other exception counts as a bug: its traceback is logged, and its type is in the message.
    """


class StateKey(Generic[T]):
    """The name of one value in the cycle state. Keys are compared by identity.

    `missing` is the error of the attempt if a plugin finds no value, because the extension point
    that stores it is disabled.
    """

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = "") -> None:
        self.name: str = name
        self.missing: str = missing

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class CycleState:
    """The state of one scheduling attempt.

    It is cloned before a what-if (nominated pods, preemption): values with a `clone` method are
    cloned, others are shared, so a value that `add_pod` or `remove_pod` changes needs the method.
    """

    __slots__ = (
        "_earlier",
        "_exhaustive",
        "_pods_to_activate",
        "_skip_filter",
        "_skip_pre_bind",
        "_skip_score",
        "_values",
        "active_filters",
    )

    def __init__(self, *, exhaustive: bool = False) -> None:
        self._exhaustive = exhaustive
        self._values: dict[StateKey[Any], Any] = {}
        self._skip_filter: set[str] = set()
        self._skip_score: set[str] = set()
        self._skip_pre_bind: set[str] = set()
        self._pods_to_activate: set[str] = set()
        # For the runtime: the number of skipped filters, and the filters that are not skipped.
        self.active_filters: tuple[int, Any] = (-1, None)
        # The state of an earlier pod of the same class, if there was one: see `_internal`.
        self._earlier: CycleState | None = None

    @property
    def exhaustive(self) -> bool:
        """Whether to ignore configured limits and evaluate everything, to explain a decision."""
        return self._exhaustive

    @property
    def skip_filter(self) -> set[str]:
        """The plugins whose Filter is skipped; SKIP at PreFilter adds them."""
        return self._skip_filter

    @property
    def skip_score(self) -> set[str]:
        """The plugins whose Score is skipped."""
        return self._skip_score

    @property
    def skip_pre_bind(self) -> set[str]:
        """The plugins whose PreBind is skipped."""
        return self._skip_pre_bind

    @property
    def pods_to_activate(self) -> set[str]:
        """Pods ("namespace/name") to retry at once if this attempt succeeds; plugins add to it."""
        return self._pods_to_activate

    def __getitem__(self, key: StateKey[T]) -> T:
        try:
            return cast("T", self._values[key])
        except KeyError:
            if key.missing:
                raise Failed(key.missing) from None
            raise KeyError(f"{key.name}: not found in the cycle state") from None

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        self._values[key] = value

    def __delitem__(self, key: StateKey[Any]) -> None:
        self._values.pop(key, None)

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[StateKey[Any]]:
        return iter(self._values)

    def get(self, key: StateKey[T]) -> T | None:
        return self._values.get(key)

    def begin_like(self, other: CycleState, earlier: CycleState | None = None) -> None:
        """Replace the content by that of another state, without cloning it.

        `earlier` is the state of an earlier pod, for `_internal.earlier_value`.
        """
        if earlier is not None:
            earlier._earlier = None  # only the state of one earlier pod is kept
        self._earlier = earlier
        self._values = dict(other._values)
        self._skip_filter = set(other._skip_filter)
        self._skip_score = set(other._skip_score)
        self.active_filters = other.active_filters

    def absorb(self, other: CycleState) -> None:
        """Add the content of another state, without cloning it."""
        if other._values:
            self._values.update(other._values)
        if other._skip_filter:
            self._skip_filter |= other._skip_filter
        if other._skip_score:
            self._skip_score |= other._skip_score

    def clone(self) -> CycleState:
        other = CycleState(exhaustive=self._exhaustive)
        for key, value in self._values.items():
            clone = getattr(value, "clone", None)
            other._values[key] = clone() if clone is not None else value
        other._skip_filter = set(self._skip_filter)
        other._skip_score = set(self._skip_score)
        other._skip_pre_bind = set(self._skip_pre_bind)
        other._pods_to_activate = self._pods_to_activate
        other.active_filters = self.active_filters
        return other
