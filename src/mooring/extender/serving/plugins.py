"""The plugins of an extender, from classes and a configuration.

A scheduler adds configured plugins to the default ones. An extender serves the configured ones
only, because the calling scheduler runs the defaults already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from typing import Final, TypeGuard, TypeVar

import msgspec

from mooring import config as cfg
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.plugins import DecisionPlugins
from mooring.errors import ConfigError, PluginError, Problem
from mooring.extender.serving.functions import FunctionPlugin
from mooring.extender.serving.handle import ExtenderHandle
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.extender.serving.request import Failure
from mooring.extender.wire import VERBS, AnyVerb
from mooring.framework.plugin import IN_DECISIONS, POINTS, Args, Base
from mooring.queue.nominator import NominatedPods
from mooring.runtime.commit import Committer
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile, ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.runtime.runner import Runner

log = logging.getLogger(__name__)
T = TypeVar("T")

SERVED: Final[tuple[type[Base], ...]] = (
    *IN_DECISIONS,
    *(point for verb in VERBS for point in verb.points),
)
"""The extension points that a verb of the protocol serves."""

_EVERYTHING: Final = cfg.PluginRef("*")
# Every profile needs both. The first is never called; the second binds if no other plugin does.
_SORTER: Final = cfg.PluginRef("PrioritySort")
_BINDER: Final = cfg.PluginRef("DefaultBinder")


def plan_serving(
    plugins: Sequence[type[Base]], config: cfg.KubeSchedulerConfiguration | None = None
) -> ProfilePlan:
    """Plan the plugins to serve: these classes, and those that the configuration enables by name.

    Arguments and weights come from the configuration's one profile. Raises ConfigError.
    """
    plugins = [plugin for plugin in plugins if not _is_only_a_function(plugin)]
    config = cfg.default_configuration() if config is None else config
    if len(config.profiles) != 1:
        text = f"an extender serves one profile, found {len(config.profiles)}"
        raise ConfigError([Problem("profiles", text)])
    registry = Registry.discover(plugins)
    profile = config.profiles[0]
    chosen = _chosen(profile.plugins, [plugin.name for plugin in plugins], registry)
    # The extenders of the configuration are called by schedulers; this process may be one of them.
    alone = msgspec.structs.replace(
        config,
        profiles=(msgspec.structs.replace(profile, plugins=chosen),),
        extenders=(),
    )
    (plan,) = plan_profiles(alone, registry)
    problems: list[Problem] = []
    for name, found in plan.classes.items():
        points = {point: kind for point, kind in POINTS.items() if issubclass(found, kind)}
        unserved = ", ".join(point for point, kind in points.items() if kind not in SERVED)
        if not unserved or name == _SORTER.name:
            continue
        if not issubclass(found, SERVED):
            text = f"no verb of an extender serves its extension points: {unserved}"
            problems.append(Problem(f"plugin {name}", text))
        else:
            extra = {"plugin": name, "points": unserved}
            log.warning("no verb of an extender serves these extension points", extra=extra)
    if problems:
        raise ConfigError(problems)
    return plan


def _chosen(given: cfg.Plugins, names: Iterable[str], registry: Registry) -> cfg.Plugins:
    enabled = {_resolved(name, registry) for name in cfg.enabled_names(given)}
    others = tuple(cfg.PluginRef(name) for name in names if name not in enabled)
    sets = given.by_point()
    sets["multiPoint"] = cfg.PluginSet(
        enabled=(*given.multi_point.enabled, *others), disabled=(_EVERYTHING,)
    )
    sets["queueSort"] = cfg.PluginSet(enabled=(_SORTER,), disabled=(_EVERYTHING,))
    if _BINDER.name not in enabled:
        sets["bind"] = cfg.PluginSet(
            enabled=(*given.bind.enabled, _BINDER), disabled=given.bind.disabled
        )
    return cfg.Plugins.of_points(sets)


def _is_only_a_function(plugin: type[Base]) -> TypeGuard[type[FunctionPlugin]]:
    """Whether a handler has to call it, because it has no extension point."""
    is_plugin = issubclass(plugin, tuple(POINTS.values()))
    return issubclass(plugin, FunctionPlugin) and not is_plugin


def _resolved(name: str, registry: Registry) -> str:
    if ":" not in name:
        return name
    try:
        return registry.add_path(name)
    except LookupError:
        return name  # the planner reports it, with its place


class ServedPlugins:
    """The plugins of one plan, their runners, and the functions that have no extension point."""

    def __init__(
        self,
        plan: ProfilePlan,
        plugins: Iterable[type[Base]],
        handle: ExtenderHandle,
        metrics: ExtenderMetrics,
        budget: float,
    ) -> None:
        self._functions = [one(Args(), handle) for one in plugins if _is_only_a_function(one)]
        self.handle: ExtenderHandle = handle
        self.guard: Guard = Guard(metrics, budget=budget)
        self.guard.record_plugins = True
        self.profile: Profile = plan.build(handle)
        self.runner: Runner = Runner(self.profile, self.guard)
        nominator = NominatedPods()  # empty: only the calling scheduler knows nominated pods
        self.evaluator: PodEvaluator = PodEvaluator(
            DecisionPlugins(self.profile, self.guard), nominator
        )
        self.committer: Committer = Committer(self.profile, self.guard)
        handle.attach(nominator, self.evaluator.what_if, activate=lambda pods: None)

    def functions(self, verb: AnyVerb) -> list[FunctionPlugin]:
        """The functions that answer a verb and are called by its handler."""
        return [function for function in self._functions if function.verb is verb]

    def answers(self, verb: AnyVerb) -> bool:
        """Whether a plugin answers a verb, besides DefaultBinder, which is always there."""
        plugins = chain.from_iterable(map(self.profile.at, verb.points))
        return any(plugin.name != _BINDER.name for plugin in plugins)

    async def wait_for(
        self, plugin: Base, point: str, function: Callable[..., Awaitable[T]], *args: object
    ) -> T:
        """Await a function within the time budget of plugins; raises `Failure`."""
        running = f'running "{plugin.name}" {point} function'
        try:
            async with asyncio.timeout(self.guard.budget):
                return await self.guard.acall(plugin, point, function, *args)
        except TimeoutError as error:
            late = self.guard.too_slow(plugin, point)
            raise Failure(f"{running}: {late}", plugin.name) from error
        except PluginError as error:
            raise Failure(f"{running}: {error}", plugin.name) from error
