"""Read-only mappings.

Objects in this room are values, shared between the cache, the queue and every plugin: the maps
inside them must never change, and a whole `PodSpec` must be usable as a dictionary key.
"""

from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V], Generic[K, V]):
    """A `dict` that never changes once built: equal to any dict with the same items, hashable."""

    __slots__ = ()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is read-only; build a new one with dict(...)")

    if not TYPE_CHECKING:  # to a type checker it is a dict; what it refuses shows at run time
        __setitem__ = _refuse
        __delitem__ = _refuse
        __ior__ = _refuse
        update = _refuse
        pop = _refuse
        popitem = _refuse
        clear = _refuse
        setdefault = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # dict sets it to None: ours cannot change
        return hash(frozenset(self.items()))

    # The default protocols rebuild a dict item by item, through the __setitem__ refused above.
    def __reduce__(self) -> tuple[type[Self], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

    def __copy__(self) -> Self:
        return self


EMPTY: Final[FrozenDict[str, str]] = FrozenDict()
