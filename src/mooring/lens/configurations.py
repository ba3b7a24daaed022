"""Configurations that differ a little from the one in force: what remedies try out.

A change is made to the configuration itself, which is then planned as at the start of a scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from mooring import config as cfg
from mooring.api import core
from mooring.api.merging import merge_patch
from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.config.types import PluginConfig
from mooring.errors import ConfigError
from mooring.framework.explaining import Edit, ObjectChange, PluginChange
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry

# Their rules are also those of kubelets and volumes: a pod that escapes them fails later.
_NEEDED: Final = frozenset(one.name for one in DEFAULT_MULTIPOINT)
_MOST_PROFILES: Final = 3  # others that are tried

Changes = Sequence[PluginChange]


class Configurations:
    """The profiles of a configuration, as they are and with changes."""

    def __init__(self, config: cfg.KubeSchedulerConfiguration, registry: Registry) -> None:
        self._config = config
        self._registry = registry
        self.plans: dict[str, ProfilePlan] = {
            plan.scheduler_name: plan for plan in plan_profiles(config, registry)
        }
        self._without: dict[tuple[str, str], Edit | None] = {}

    def plan(self, name: str, changes: Changes) -> ProfilePlan:
        """The profile of a schedulerName with these changes; ConfigError if there is none such."""
        if not changes:
            return self.plans[name]
        profiles = tuple(
            _changed(one, changes, self._registry) if one.scheduler_name == name else one
            for one in self._config.profiles
        )
        plans = plan_profiles(structs.replace(self._config, profiles=profiles), self._registry)
        return next(plan for plan in plans if plan.scheduler_name == name)

    def patch(self, name: str, before: Changes, change: PluginChange) -> dict[str, Any]:
        """A merge patch of the profile, once other changes were made."""
        profile = next(one for one in self._config.profiles if one.scheduler_name == name)
        first = _changed(profile, before, self._registry)
        then = _changed(first, [change], self._registry)
        return merge_patch(msgspec.to_builtins(first), msgspec.to_builtins(then))

    def without(self, name: str, plugin: str) -> Edit | None:
        """The profile without a plugin of the user; None for others, and if it can't do without."""
        if plugin in _NEEDED:
            return None
        key = (name, plugin)
        if key not in self._without:
            self._without[key] = self._disabling(name, plugin)
        return self._without[key]

    def _disabling(self, name: str, plugin: str) -> Edit | None:
        change = PluginChange(plugin, None)
        try:
            if plugin in self.plan(name, [change]).classes:
                return None
        except ConfigError:  # the only plugin of a point that needs one
            return None
        text = f"disable {plugin}"
        return Edit.of_args(text, plugin, None, family=text, cost=2)

    def other_profiles(self, name: str) -> list[Edit]:
        """The pod in the care of another profile of this configuration."""
        others = [other for other in self.plans if other != name]
        return [_in_care_of(other) for other in others[:_MOST_PROFILES]]


def _in_care_of(name: str) -> Edit:
    def to(pod: core.Pod) -> core.Pod:
        return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name=name))

    change = ObjectChange(core.Pod, "", "", to)
    text = f"schedulerName {name}, another profile"
    return Edit(target="configuration", text=text, changes=(change,), family="schedulerName")


def _changed(
    profile: cfg.KubeSchedulerProfile, changes: Changes, registry: Registry
) -> cfg.KubeSchedulerProfile:
    for change in changes:
        profile = _changed_once(profile, change, registry)
    return profile


def _changed_once(
    profile: cfg.KubeSchedulerProfile, change: PluginChange, registry: Registry
) -> cfg.KubeSchedulerProfile:
    def is_meant(name: str) -> bool:
        return (registry.add_path(name) if ":" in name else name) == change.plugin

    args = [one for one in profile.plugin_config if not is_meant(one.name)]
    if change.args is not None:
        named = next((one.name for one in profile.plugin_config if is_meant(one.name)), None)
        fields = msgspec.to_builtins(change.args)
        args.append(PluginConfig(name=named or change.plugin, args=fields))
        return structs.replace(profile, plugin_config=tuple(args))
    sets = {
        point: structs.replace(
            one, enabled=tuple(ref for ref in one.enabled if not is_meant(ref.name))
        )
        for point, one in profile.plugins.by_point().items()
    }
    plugins = cfg.Plugins.of_points(sets)
    return structs.replace(profile, plugins=plugins, plugin_config=tuple(args))
