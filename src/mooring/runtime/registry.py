"""From a name in a configuration file to a plugin class.

Three doors: entry points of the group `mooring.plugins` (ours come in there too), a `module:Class`
path written in the file, and classes handed over in code. Names are known early, modules are
imported only when a profile uses them, and a class that does not keep the contract is refused
before anything runs.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import msgspec

from mooring.errors import ConfigError, Problem
from mooring.framework import _internal
from mooring.framework import plugin as contract
from mooring.framework._renamed import MEMBERS
from mooring.framework.depends_on import DependsOn
from mooring.framework.events import ClusterEvent
from mooring.framework.plugin import Base
from mooring.framework.scores import Normalizer
from mooring.observe.texts import named

_CONTRACT: Final = (contract.__name__, _internal.__name__)

GROUP: Final = "mooring.plugins"

POINTS: Final[dict[str, type[Base]]] = {
    "preEnqueue": contract.PreEnqueue,
    "queueSort": contract.QueueSort,
    "preFilter": contract.PreFilter,
    "filter": contract.Filter,
    "postFilter": contract.PostFilter,
    "preScore": contract.PreScore,
    "score": contract.Score,
    "reserve": contract.Reserve,
    "permit": contract.Permit,
    "preBind": contract.PreBind,
    "bind": contract.Bind,
    "postBind": contract.PostBind,
}
"""The extension points by their name in configuration files."""

_IN_DECISIONS: Final = (contract.PreFilter, contract.Filter, contract.PreScore, contract.Score)


class _Entry(msgspec.Struct, frozen=True):
    source: EntryPoint | str  # or the path of a class
    load: Callable[[], object]

    @property
    def origin(self) -> str:
        """Where it comes from, for messages; found out only then, because it reads files."""
        return self.source if isinstance(self.source, str) else _origin(self.source)


class Registry:
    """Every plugin this process could run."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._classes: dict[str, type[Base]] = {}

    @classmethod
    def discover(cls, plugins: Iterable[type[Base]] = ()) -> Registry:
        """Installed entry points plus classes handed over in code; every clash is reported."""
        registry = cls()
        problems: list[Problem] = []
        for point in entry_points(group=GROUP):
            problems += registry._add(point.name, point, point.load)
        for plugin in plugins:
            name = getattr(plugin, "name", None)
            origin = f"{plugin.__module__}:{plugin.__qualname__}"
            if not isinstance(name, str):
                problems.append(Problem(origin, "a plugin class needs a `name`"))
            elif not registry._is_known(name, plugin):
                problems += registry._add(name, origin, partial(_itself, plugin))
        if problems:
            raise ConfigError(problems)
        return registry

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._entries)

    def add_path(self, path: str) -> str:
        """Make the class behind `module:Class` known; returns its plugin name."""
        found = _import_class(path)
        name = getattr(found, "name", None)
        if not isinstance(name, str):
            raise LookupError(f"{path} has no plugin `name`")
        known = self._entries.get(name)
        if known is None:
            self._entries[name] = _Entry(path, lambda: found)
        elif not self._is_known(name, found):
            raise LookupError(
                f"a plugin named {name} already exists: it comes from {known.origin}, and {path}"
                " has the same name"
            )
        return name

    def get(self, name: str) -> type[Base]:
        """The class of that name; LookupError says what is wrong with it."""
        found = self._classes.get(name)
        if found is not None:
            return found
        entry = self._entries.get(name)
        if entry is None:
            raise LookupError(f'plugin "{name}" does not exist')
        try:
            loaded = entry.load()
        except Exception as error:
            raise LookupError(
                f"plugin {name} from {entry.origin} can't be loaded: {named(error)}"
            ) from error
        faults = contract_faults(loaded)
        if not faults and isinstance(loaded, type) and getattr(loaded, "name", None) != name:
            faults = [f"its name is {getattr(loaded, 'name', None)!r}, registered as {name!r}"]
        if faults or not isinstance(loaded, type):
            raise LookupError(f"plugin {name} from {entry.origin}: {'; '.join(faults)}")
        self._classes[name] = loaded
        return loaded

    def _is_known(self, name: str, plugin: object) -> bool:
        """Whether the name stands for this very class; it may come in by several doors."""
        try:
            return name in self._entries and self.get(name) is plugin
        except LookupError:
            return False

    def _add(
        self, name: str, source: EntryPoint | str, load: Callable[[], object]
    ) -> list[Problem]:
        entry = _Entry(source, load)
        known = self._entries.setdefault(name, entry)
        if known is entry:
            return []
        message = f"a plugin named {name} already exists: {known.origin} and {entry.origin}"
        return [Problem(f"plugin {name}", message)]


def _itself(plugin: type[Base]) -> object:
    return plugin


def implements(plugin: type[Base], point: str) -> bool:
    return issubclass(plugin, POINTS[point])


def contract_faults(candidate: object) -> list[str]:
    """What keeps a class from being a plugin; empty if nothing does."""
    if not (isinstance(candidate, type) and issubclass(candidate, Base)):
        return [
            f"{candidate!r} is not a plugin class: it inherits from no point of mooring.framework"
        ]
    faults = []
    if not isinstance(getattr(candidate, "name", None), str) or not candidate.name:
        faults.append("it needs a `name`")
    served = [point for point in POINTS.values() if issubclass(candidate, point)]
    if not served:
        faults.append("it serves no extension point")
    missing = sorted(getattr(candidate, "__abstractmethods__", ()))
    if missing:
        faults.append(f"it lacks {', '.join(missing)}()")
    events = candidate.wakes_on
    if events is not None and not (
        isinstance(events, tuple) and all(isinstance(event, ClusterEvent) for event in events)
    ):
        faults.append("its wakes_on must be a tuple of ClusterEvents, or None")
    declared: object = candidate.depends_on
    if declared is not None and not isinstance(declared, DependsOn):
        faults.append("its depends_on must be NODE or NODE_AND_PODS of mooring.framework, or None")
    faults += _old_words(candidate)
    faults += _normalizer_faults(candidate)
    for point in candidate.__mro__:
        if point.__module__ in _CONTRACT and issubclass(point, Base):
            faults += _signature_faults(candidate, point)
    return list(dict.fromkeys(faults))


def _old_words(candidate: type[Base]) -> list[str]:
    """Members that declared something in earlier versions, with what to write now.

    Only where they did: a PostBind plugin may call anything of its own a `stamp`.
    """
    found = []
    if issubclass(candidate, _IN_DECISIONS):
        for word, instead in MEMBERS.items():
            if any(word in vars(base) for base in candidate.__mro__):
                found.append(f"{candidate.__name__} has `{word}`: {instead}")
    return found


def _normalizer_faults(candidate: type[Base]) -> list[str]:
    if not issubclass(candidate, contract.Score):
        return []
    declared: object = candidate.normalizer
    if declared is None:
        return []
    if not isinstance(declared, Normalizer):
        return [
            "its normalizer must be BEST_IS_100, LEAST_IS_100 or MIN_MAX of mooring.framework,"
            " or None"
        ]
    if candidate.normalize_score is not contract.Score.normalize_score:
        return ["it declares a normalizer and has normalize_score(): only one of them can count"]
    return []


def _signature_faults(candidate: type[Base], point: type[Base]) -> list[str]:
    faults = []
    for name, wanted in vars(point).items():
        if name.startswith("_") or not inspect.isfunction(wanted):
            continue
        found = inspect.getattr_static(candidate, name)
        if not callable(getattr(candidate, name)):
            faults.append(f"{name} must be a method")
        if found is wanted or not inspect.isfunction(found):
            continue
        expected = [p for p in inspect.signature(wanted).parameters if p != "self"]
        try:
            inspect.signature(found).bind(None, *expected)
        except TypeError:
            faults.append(f"{name}() must take ({', '.join(['self', *expected])})")
        if inspect.iscoroutinefunction(wanted) and not inspect.iscoroutinefunction(found):
            faults.append(f"{name}() must be `async def`")
        if inspect.iscoroutinefunction(found) and not inspect.iscoroutinefunction(wanted):
            faults.append(f"{name}() must be a plain `def`: a decision does no I/O")
    return faults


def _import_class(path: str) -> object:
    module_name, _, attribute = path.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise LookupError(f"can't import {path}: {named(error)}") from error
    faults = contract_faults(found)
    if faults:
        raise LookupError(f"{path}: {'; '.join(faults)}")
    return found


def _origin(point: EntryPoint) -> str:
    dist = f" ({point.dist.name} {point.dist.version})" if point.dist is not None else ""
    return f"{point.value}{dist}"
