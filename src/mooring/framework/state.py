"""What plugins remember between the points of one scheduling attempt.

A plugin declares a typed key once, `SPREAD: StateKey[Counts] = StateKey("spread")`, and
`state[SPREAD]` is a `Counts`: no strings, no casts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Failed(Exception):
    """Raise it to fail an attempt with exactly this text, where an answer holds no status.

    Any other exception is taken for a bug: its traceback is logged and its type named.
    """


class StateKey(Generic[T]):
    """The name of one value in the cycle state. Keys are compared by identity.

    `missing` is what the attempt fails with if a plugin finds no value, because the point that
    should have stored it is disabled.
    """

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = "") -> None:
        self.name: str = name
        self.missing: str = missing

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class CycleState:
    """One attempt's memory.

    `clone` is taken before a what-if (nominated pods, preemption): values with a `clone` method are
    cloned by it, others are shared, so a value that `add_pod`/`remove_pod` changes needs one.
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
        # For the runtime alone: how many filters are skipped, and which are not.
        self.active_filters: tuple[int, Any] = (-1, None)
        # The state of an earlier pod of the same class, if there was one: see `_internal`.
        self._earlier: CycleState | None = None

    @property
    def exhaustive(self) -> bool:
        """Whether to look at everything, whatever limits are configured, to explain a decision."""
        return self._exhaustive

    @property
    def skip_filter(self) -> set[str]:
        """The plugins that are not to be asked to filter; SKIP at PreFilter puts them here."""
        return self._skip_filter

    @property
    def skip_score(self) -> set[str]:
        """Likewise for PreScore and Score."""
        return self._skip_score

    @property
    def skip_pre_bind(self) -> set[str]:
        """Likewise for `pre_flight` and PreBind."""
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
        """Forget everything and take over what another state holds, without cloning it.

        `earlier` is the state of a pod before, for `_internal.earlier_value`.
        """
        if earlier is not None:
            earlier._earlier = None  # one pod back, and no further
        self._earlier = earlier
        self._values = dict(other._values)
        self._skip_filter = set(other._skip_filter)
        self._skip_score = set(other._skip_score)
        self.active_filters = other.active_filters

    def absorb(self, other: CycleState) -> None:
        """Take over what another state holds besides what is here, without cloning it."""
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
