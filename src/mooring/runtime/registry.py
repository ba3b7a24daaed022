"""The registry: from a name in a configuration file to a plugin class.

Plugins come from entry points of the group `mooring.plugins` (the default plugins too), from
`module:Class` paths in the file, and from classes passed in code. All names are known at the start;
modules are imported only when a profile uses them. A class that breaks the contract is refused at
the start.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import FunctionType
from typing import Any, Final, TypeGuard, get_args, get_origin

from mooring.errors import ConfigError, Problem
from mooring.framework import _internal
from mooring.framework import plugin as contract
from mooring.framework._renamed import MEMBERS
from mooring.framework.depends_on import DependsOn
from mooring.framework.events import ClusterEvent
from mooring.framework.plugin import IN_DECISIONS, POINTS, Base
from mooring.framework.scores import Normalizer
from mooring.observe.suggestions import closest, did_you_mean
from mooring.observe.texts import named

_CONTRACT: Final = (contract.__name__, _internal.__name__)

GROUP: Final = "mooring.plugins"


class Registry:
    """All plugins that profiles can use, by name."""

    def __init__(self) -> None:
        self._sources: dict[str, EntryPoint | type[Base]] = {}
        self._classes: dict[str, type[Base]] = {}  # those that were loaded and keep the contract

    @classmethod
    def discover(cls, plugins: Iterable[type[Base]] = ()) -> Registry:
        """Installed entry points and classes passed in code; reports names that are taken twice."""
        registry = cls()
        problems: list[Problem] = []
        sources: list[EntryPoint | type[Base]] = [*_installed(tuple(sys.path)), *plugins]
        for source in sources:
            name = getattr(source, "name", None)
            if not isinstance(name, str):
                problems.append(Problem(_origin(source), "a plugin class needs a `name`"))
                continue
            known = registry._sources.setdefault(name, source)
            if known is not source and not registry._is_known(name, source):
                origins = f"{_origin(known)} and {_origin(source)}"
                text = f"a plugin named {name} already exists: {origins}"
                problems.append(Problem(f"plugin {name}", text))
        if problems:
            raise ConfigError(problems)
        return registry

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._sources)

    def add_path(self, path: str) -> str:
        """Add the class `module:Class`; returns its plugin name."""
        module_name, _, attribute = path.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:
            raise LookupError(f"can't import {path}: {named(error)}") from error
        faults = contract_faults(found)
        if faults:
            raise LookupError(f"{path}: {'; '.join(faults)}")
        name: str = found.name
        known = self._sources.setdefault(name, found)
        if known is not found and not self._is_known(name, found):
            raise LookupError(
                f"a plugin named {name} already exists: it comes from {_origin(known)}, and {path}"
                " has the same name"
            )
        return name

    def get(self, name: str) -> type[Base]:
        """The class of that name; LookupError says what is wrong with it."""
        found = self._classes.get(name)
        if found is not None:
            return found
        source = self._sources.get(name)
        if source is None:
            hint = did_you_mean(name, self._sources)
            raise LookupError(f'plugin "{name}" does not exist{hint}')
        try:
            loaded: Any = source.load() if _is_entry_point(source) else source
        except Exception as error:
            text = f"plugin {name} from {_origin(source)} can't be loaded: {named(error)}"
            raise LookupError(text) from error
        faults = contract_faults(loaded)
        if not faults and loaded.name != name:
            faults = [f"its name is {loaded.name!r}, registered as {name!r}"]
        if faults:
            raise LookupError(f"plugin {name} from {_origin(source)}: {'; '.join(faults)}")
        self._classes[name] = loaded
        return self._classes[name]

    def _is_known(self, name: str, plugin: object) -> bool:
        """Whether the name is registered for this class, which may come from several sources."""
        try:
            return self.get(name) is plugin
        except LookupError:
            return False


@cache
def _installed(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points on `path`, which is sys.path; cached, because it reads many files."""
    return tuple(entry_points(group=GROUP))


def _is_entry_point(source: EntryPoint | type[Base]) -> TypeGuard[EntryPoint]:
    """True also for those of importlib_metadata: once imported, it finds the packages."""
    return isinstance(source, EntryPoint) or type(source).__name__ == "EntryPoint"


def _origin(source: EntryPoint | type[Base]) -> str:
    """The origin of a plugin, for messages; not computed before, because it reads files."""
    if _is_entry_point(source):
        dist = f" ({source.dist.name} {source.dist.version})" if source.dist is not None else ""
        return f"{source.value}{dist}"
    return f"{source.__module__}:{getattr(source, '__qualname__', source)}"


def contract_faults(candidate: object) -> list[str]:
    """The violations of the plugin contract by a class."""
    if not (isinstance(candidate, type) and issubclass(candidate, Base)):
        return [
            f"{candidate!r} is not a plugin class: it inherits from no point of mooring.framework"
        ]
    return list(_class_faults(candidate))


@cache
def _class_faults(candidate: type[Base]) -> tuple[str, ...]:
    faults = []
    if not isinstance(getattr(candidate, "name", None), str) or not candidate.name:
        faults.append("it needs a `name`")
    if not issubclass(candidate, tuple(POINTS.values())):
        faults.append("it serves no extension point")
    for name in sorted(getattr(candidate, "__abstractmethods__", ())):
        written = closest(name, _own_methods(candidate))
        faults.append(
            f"it lacks {name}()" + (f"; is {written}() meant to be it?" if written else "")
        )
    faults += _argument_faults(candidate)
    events = candidate.wakes_on
    if events is not None and not (
        isinstance(events, tuple) and all(isinstance(event, ClusterEvent) for event in events)
    ):
        faults.append("its wakes_on must be a tuple of ClusterEvents, or None")
    declared: object = candidate.depends_on
    if declared is not None and not isinstance(declared, DependsOn):
        faults.append("its depends_on must be NODE or NODE_AND_PODS of mooring.framework, or None")
    if issubclass(candidate, contract.Score) and candidate.normalizer is not None:
        faults += _normalizer_faults(candidate)
    if issubclass(candidate, IN_DECISIONS):
        # Members that were declarations in earlier versions. At other points they were not: a
        # PostBind plugin may have a member of its own called `stamp`.
        own = {member for base in candidate.__mro__ for member in vars(base)}
        for word, instead in MEMBERS.items():
            if word in own:
                faults.append(f"{candidate.__name__} has `{word}`: {instead}")
    for point in candidate.__mro__:
        if point.__module__ in _CONTRACT and issubclass(point, Base):
            faults += _signature_faults(candidate, point)
    return tuple(dict.fromkeys(faults))


def _own_methods(candidate: type[Base]) -> list[str]:
    """The methods that the author wrote: one of them may be a misspelt method of the contract."""
    own = [base for base in candidate.__mro__ if base.__module__ not in _CONTRACT]
    return [name for base in own for name, value in vars(base).items() if callable(value)]


def _argument_faults(candidate: type[Base]) -> Iterator[str]:
    for base in (
        base for found in candidate.__mro__ for base in vars(found).get("__orig_bases__", ())
    ):
        for given in get_args(base) if get_origin(base) is contract.Plugin else ():
            if isinstance(given, type) and not issubclass(given, contract.Args):
                yield (
                    f"Plugin[{given.__name__}]: the arguments must be a subclass of"
                    f" mooring.framework.Args: class {given.__name__}(fw.Args, frozen=True)"
                )
    if candidate.__init__ is not Base.__init__:
        try:
            inspect.signature(candidate.__init__).bind(None, None, None)
        except TypeError:
            yield "__init__() must take (self, args, handle)"


def _normalizer_faults(candidate: type[contract.Score]) -> Iterator[str]:
    if not isinstance(candidate.normalizer, Normalizer):
        names = "BEST_IS_100, LEAST_IS_100 or MIN_MAX of mooring.framework"
        yield f"its normalizer must be {names}, or None"
    elif candidate.normalize_score is not contract.Score.normalize_score:
        yield "it declares a normalizer and has normalize_score(): only one of them can count"


def _signature_faults(candidate: type[Base], point: type[Base]) -> Iterator[str]:
    for name, wanted in vars(point).items():
        if name.startswith("_") or not inspect.isfunction(wanted):
            continue
        found = inspect.getattr_static(candidate, name)
        if not callable(getattr(candidate, name)):
            yield f"{name} must be a method"
        if found is wanted or not inspect.isfunction(found):
            continue
        if not _has_same_arguments(found, wanted):
            expected = [p for p in inspect.signature(wanted).parameters if p != "self"]
            try:
                inspect.signature(found).bind(None, *expected)
            except TypeError:
                yield f"{name}() must take ({', '.join(['self', *expected])})"
        waits, may_wait = map(inspect.iscoroutinefunction, (found, wanted))
        if may_wait and not waits:
            yield f"{name}() must be `async def`"
        if waits and not may_wait:
            yield f"{name}() must be a plain `def`: a decision does no I/O"


def _has_same_arguments(found: FunctionType, wanted: FunctionType) -> bool:
    """Whether that can be seen at once: to make signatures takes its time."""
    one, other = found.__code__, wanted.__code__
    count = one.co_argcount
    return (
        (count, one.co_kwonlyargcount) == (other.co_argcount, 0)
        and one.co_varnames[:count] == other.co_varnames[:count]
        and not hasattr(found, "__wrapped__")
    )
