"""The profile of one schedulerName: its plugins, in order, with weights.

Two steps, so that `mooring config validate` can run the first alone: `plan_profiles` checks the
configuration against the registry and finds every problem; `ProfilePlan.build` builds the plugins.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast

import msgspec

from mooring import config as cfg
from mooring.api.meta import Object
from mooring.api.quantity import INT64_MAX
from mooring.config import types as cfg_types
from mooring.config.managed_resources import with_managed_resources
from mooring.errors import ConfigError, Problem
from mooring.framework._internal import InternalPlugin, gated_reads
from mooring.framework.handle import Handle
from mooring.framework.plugin import POINTS, Args, Base, Bind, QueueSort
from mooring.framework.scores import MAX_SCORE
from mooring.observe.suggestions import did_you_mean
from mooring.observe.texts import named
from mooring.runtime.registry import Registry

log = logging.getLogger(__name__)
P = TypeVar("P", bound=Base)
_NEEDED: Final = (Bind, QueueSort)  # points without which a profile can't work


class ProfilePlan(msgspec.Struct, frozen=True):
    """The plugins of a profile by extension point, not built yet."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    classes: dict[str, type[Base]]
    args: dict[str, Args]
    points: dict[str, tuple[str, ...]]  # plugin names in order, by point
    weights: dict[str, int]  # of the score plugins
    notes: tuple[cfg.Note, ...] = ()  # what has no effect
    feature_gates: frozenset[str] = frozenset()  # that are turned on

    @property
    def reads(self) -> frozenset[type[Object]]:
        """The kinds that its plugins look up."""
        return frozenset(
            kind
            for found in self.classes.values()
            for kind in (*found.reads, *gated_reads(found, self.feature_gates))
        )

    def build(self, handle: Handle) -> Profile:
        """Build the plugins; raises ConfigError with every plugin that fails."""
        for note in self.notes:
            log.warning("configuration note", extra={"path": note.path, "note": note.text})
        handle.objects.declare(self.reads)
        plugins: dict[str, Base] = {}
        problems: list[Problem] = []
        for name, plugin_class in self.classes.items():
            try:
                plugin = plugins[name] = plugin_class(self.args[name], handle)
                if isinstance(plugin, InternalPlugin):
                    plugin.feature_gates = self.feature_gates
            except Exception as error:
                log.debug("plugin refused to start", extra={"plugin": name}, exc_info=error)
                text = f'initializing plugin "{name}": {named(error)}'
                problems.append(Problem(f"profile {self.scheduler_name}", text))
        if problems:
            raise ConfigError(problems)
        return Profile(self, plugins)


class Profile:
    """Built plugins by extension point."""

    def __init__(self, plan: ProfilePlan, plugins: dict[str, Base]) -> None:
        self.scheduler_name: str = plan.scheduler_name
        self.percentage_of_nodes_to_score: int | None = plan.percentage_of_nodes_to_score
        self.weights: dict[str, int] = plan.weights
        self.plugins = plugins
        self._points = {
            POINTS[point]: tuple(plugins[name] for name in names)
            for point, names in plan.points.items()
        }

    def at(self, point: type[P]) -> tuple[P, ...]:
        """The plugins of a point, in order: `at(Filter)`."""
        return cast("tuple[P, ...]", self._points[point])

    def without(self, names: frozenset[str]) -> Profile:
        """The profile without these plugins, except at QueueSort and Bind, which need one."""
        other = copy.copy(self)
        other.plugins = {name: one for name, one in self.plugins.items() if name not in names}
        other._points = {
            point: tuple(one for one in plugins if point in _NEEDED or one.name not in names)
            for point, plugins in self._points.items()
        }
        return other

    def close(self) -> None:
        """Close every plugin; a failure is logged, and the others are closed."""
        for name, plugin in self.plugins.items():
            try:
                plugin.close()
            except (Exception, SystemExit) as error:
                log.error("plugin failed to close", extra={"plugin": name}, exc_info=error)


def plan_profiles(
    config: cfg_types.KubeSchedulerConfiguration,
    registry: Registry,
    feature_gates: frozenset[str] = frozenset(),
) -> list[ProfilePlan]:
    """Plan every profile; raises ConfigError with all problems of all profiles."""
    profiles = with_managed_resources(config).profiles
    planners = [
        _Planner(profile, f"profiles[{index}]", registry) for index, profile in enumerate(profiles)
    ]
    plans = [planner.plan() for planner in planners]
    problems = [problem for planner in planners for problem in planner.problems]
    problems = problems or _differing_sort(plans)
    if problems:
        raise ConfigError(problems)
    return [msgspec.structs.replace(plan, feature_gates=feature_gates) for plan in plans]


def profile_problems(
    config: cfg_types.KubeSchedulerConfiguration, registry: Registry
) -> list[Problem]:
    """What `plan_profiles` would refuse."""
    try:
        plan_profiles(config, registry)
    except ConfigError as error:
        return list(error.problems)
    return []


class _Planner:
    """Plans one profile and collects its problems and notes."""

    def __init__(
        self, profile: cfg_types.KubeSchedulerProfile, path: str, registry: Registry
    ) -> None:
        self.profile = profile
        self.path = path
        self.registry = registry
        self.problems: list[Problem] = []
        self.notes: list[cfg.Note] = []

    def plan(self) -> ProfilePlan:
        resolve = self._resolve_paths()
        own = cfg.resolve_names(self.profile.plugins, resolve)
        plugins = cfg.effective_plugins(
            msgspec.structs.replace(self.profile, plugins=own), self.registry.names
        )
        classes = self._load_classes(plugins)
        points = {point: self._expand(plugins, point, classes) for point in POINTS}
        for point in cfg.POINTS:
            if point not in POINTS and plugins.at(point).enabled:
                self._report(f"plugins.{point}", "this extension point is not served yet")
        if not self.problems:  # a missing plugin may be one that was refused before
            self._check_required(points)
        weights = {ref.name: ref.weight for ref in points["score"]}
        if MAX_SCORE * sum(weights.values()) > INT64_MAX:
            text = "score plugins: total score of Score plugins could overflow"
            self._report("plugins.score", text)
        return ProfilePlan(
            scheduler_name=self.profile.scheduler_name,
            percentage_of_nodes_to_score=self.profile.percentage_of_nodes_to_score,
            classes=classes,
            args=self._decode_args(classes, resolve),
            points={point: tuple(ref.name for ref in refs) for point, refs in points.items()},
            weights=weights,
            notes=tuple(self.notes),
        )

    def _report(self, place: str, message: object) -> None:
        self.problems.append(Problem(f"{self.path}.{place}", str(message)))

    def _entries(self) -> Iterator[tuple[str, str]]:
        """Every enabled plugin name of the file, with its place."""
        for point, chosen in self.profile.plugins.by_point().items():
            for index, ref in enumerate(chosen.enabled):
                yield ref.name, f"plugins.{point}.enabled[{index}].name"

    def _resolve_paths(self) -> Callable[[str], str]:
        names: dict[str, str] = {}
        for name, place in self._entries():
            if ":" in name and name not in names:
                names[name] = name
                try:
                    names[name] = self.registry.add_path(name)
                except LookupError as error:
                    self._report(place, error.args[0])
        return lambda name: names.get(name, name)

    def _load_classes(self, plugins: cfg_types.Plugins) -> dict[str, type[Base]]:
        places = dict(self._entries())
        classes: dict[str, type[Base]] = {}
        for name in cfg.enabled_names(plugins):
            try:
                classes[name] = self.registry.get(name)
            except LookupError as error:
                if ":" not in name:  # a path that can't be imported was reported before
                    self._report(places.get(name, "plugins"), error.args[0])
        return classes

    def _expand(
        self, plugins: cfg_types.Plugins, point: str, classes: dict[str, type[Base]]
    ) -> tuple[cfg_types.PluginRef, ...]:
        def serves(name: str) -> bool:
            # A missing plugin was reported already, and is not reported again for each point.
            return name not in classes or issubclass(classes[name], POINTS[point])

        try:
            return cfg.expand_point(plugins, point, serves, f"{self.path}.plugins")
        except ConfigError as error:
            self.problems += error.problems
            return ()

    def _check_required(self, points: dict[str, tuple[cfg_types.PluginRef, ...]]) -> None:
        profile = f'profile with scheduler name "{self.profile.scheduler_name}"'
        sorters = len(points["queueSort"])
        if sorters != 1:
            text = f"only one queue sort plugin required for {profile}, but got {sorters}"
            self._report("plugins.queueSort", text)
        if not points["bind"]:
            self._report("plugins.bind", f"at least one bind plugin is needed for {profile}")

    def _decode_args(
        self, classes: dict[str, type[Base]], resolve: Callable[[str], str]
    ) -> dict[str, Args]:
        given: dict[str, Any] = {}
        written: dict[str, str] = {}  # the names as they are in the file
        for entry in self.profile.plugin_config:
            name = resolve(entry.name)
            place = f"pluginConfig[{entry.name}]"
            if name in given and written[name] != entry.name:  # else the file was refused for it
                self._report(place, f'Duplicate value: "{name}" has its arguments already')
            given[name], written[name] = entry.args, entry.name
            if name not in classes:
                self.notes.append(cfg.Note(f"{self.path}.{place}", self._not_enabled(name)))
        decoded: dict[str, Args] = {}
        for name, plugin_class in classes.items():
            path = f"{self.path}.pluginConfig[{written.get(name, name)}].args"
            args, found = cfg.decode_args(given.get(name), plugin_class.args_type, name, path)
            self.problems += found
            if args is not None:
                decoded[name] = args
        return decoded

    def _not_enabled(self, name: str) -> str:
        text = f"has no effect: the plugin {name} is not enabled in this profile"
        if name in self.registry.names:
            return text
        return f"has no effect: there is no plugin {name}{did_you_mean(name, self.registry.names)}"


def _differing_sort(plans: list[ProfilePlan]) -> list[Problem]:
    """All profiles share one queue, so they must sort it alike."""
    first = plans[0].points["queueSort"][0]
    problems = []
    for index, plan in enumerate(plans[1:], start=1):
        name = plan.points["queueSort"][0]
        if name != first:
            text = f'queueSort must be the same for all profiles: "{name}" here, "{first}" before'
            problems.append(Problem(f"profiles[{index}].plugins.queueSort", text))
        elif plan.args[name] != plans[0].args[first]:
            text = "queueSort must be the same for all profiles, its arguments too"
            problems.append(Problem(f"profiles[{index}].pluginConfig[{name}].args", text))
    return problems
