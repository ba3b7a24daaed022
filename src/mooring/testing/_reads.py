"""Records what a plugin reads of its arguments and its handle during an evaluation.

A watched object behaves like the original and records each read as an expression:
`node.labels['disk']`, `pod.requests('cpu')`, `handle.clock.now()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework import plugin as contract
from mooring.framework.plugin import Base
from mooring.testing._bench import Bench, Case, Fault, Members, varied

_METHODS: Final[Mapping[str, str]] = {
    "pre_filter": "nodes",
    "filter": "node",
    "filter_all": "nodes",
    "pre_score": "nodes",
    "score": "node",
    "score_all": "nodes",
    "normalize_score": "nodes",
}
"""The methods of a decision, and their argument after the state and the pod."""
_OF_CONTRACT: Final = (contract.Filter, contract.Score)
_PARTS: Final = (Pod, Node, Nodes, msgspec.Struct)


class Reads:
    """The recorded reads, and the keys of labels and annotations that no example has."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.missing: set[str] = set()
        self.found: set[str] = set()
        self.failed: bool = False  # the plugin does not work with watched objects

    @property
    def never_found(self) -> set[str]:
        return self.missing - self.found


def watch(plugin_class: type[Base], args: contract.Args, cases: Iterable[Case]) -> Reads:
    """Evaluate the pods of all cases, and record what is read."""
    reads = Reads()
    watched = varied(plugin_class, _watched_members(plugin_class, reads))
    for case in cases:
        try:
            Bench(watched, args, case).evaluate()
        except Fault:
            reads.failed = True
    return reads


def _watched_members(plugin_class: type[Base], reads: Reads) -> Members:
    def watched(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(self: Base, state: object, pod: object, place: object, *rest: object) -> Any:
            shown = _Watched(pod, "pod", reads), _Watched(place, name, reads)
            return function(self, state, *shown, *rest)

        return call

    def __init__(self: Base, args: contract.Args, handle: Any) -> None:
        plugin_class.__init__(self, args, _Watched(handle, "handle", reads))

    members: dict[str, object] = {"__init__": __init__}
    for method, name in _METHODS.items():
        function = getattr(plugin_class, method, None)
        is_own = all(function is not getattr(one, method, None) for one in _OF_CONTRACT)
        if function is not None and is_own:
            members[method] = watched(function, name)
    return members


class _Watched:
    """Anything with attributes."""

    def __init__(self, value: Any, path: str, reads: Reads) -> None:
        self._value = value
        self._path = path
        self._reads = reads

    @property  # type: ignore[misc]  # passes for the real one in isinstance()
    def __class__(self) -> type[Any]:
        return type(self._value)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._value, name)
        path = f"{self._path}.{name}"
        if callable(value):
            return lambda *args, **kwargs: self._called(value, path, args, kwargs)
        return self._wrapped(value, path)

    def _called(self, method: Any, path: str, args: Any, kwargs: Any) -> Any:
        result = method(*[_behind(arg) for arg in args], **kwargs)
        if isinstance(result, Node | Nodes):
            return _Watched(result, path, self._reads)
        shown = ""
        if args and isinstance(args[0], type | str):
            shown = args[0].__name__ if isinstance(args[0], type) else repr(args[0])
        self._reads.seen.add(f"{path}({shown})")
        return result

    def _wrapped(self, value: Any, path: str) -> Any:
        if isinstance(value, _PARTS) or (path.count(".") == 1 and path.startswith("handle.")):
            return _Watched(value, path, self._reads)
        if isinstance(value, Mapping):
            return _WatchedMapping(value, path, self._reads)
        self._reads.seen.add(path)
        return value

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        for item in self._value:
            yield self._wrapped(item, f"{self._path}[…]")

    def __getitem__(self, index: Any) -> Any:
        return self._wrapped(self._value[index], f"{self._path}[…]")

    def __eq__(self, other: object) -> bool:
        return bool(self._value == _behind(other))

    def __hash__(self) -> int:
        return hash(self._value)


def _behind(value: Any) -> Any:
    return value._value if type(value) is _Watched else value


class _WatchedMapping(Mapping[str, Any]):
    """Labels and other mappings, of which keys are read."""

    def __init__(self, value: Mapping[str, Any], path: str, reads: Reads) -> None:
        self._value = value
        self._path = path
        self._reads = reads

    def __getitem__(self, key: str) -> Any:
        path = f"{self._path}[{key!r}]"
        self._reads.seen.add(path)
        (self._reads.found if key in self._value else self._reads.missing).add(path)
        return self._value[key]

    def __iter__(self) -> Iterator[str]:
        self._reads.seen.add(self._path)
        return iter(self._value)

    def __len__(self) -> int:
        self._reads.seen.add(self._path)
        return len(self._value)
