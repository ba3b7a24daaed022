"""Resources that an extender manages and the scheduler ignores (`ignoredByScheduler`)."""

from __future__ import annotations

from typing import Final

import msgspec

from mooring.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig

_PLUGIN: Final = "NodeResourcesFit"  # the plugin that checks resources


def with_managed_resources(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration in which no profile counts what extenders have `ignoredByScheduler`.

    As in kube-scheduler, this takes the place of `ignoredResources` that a profile states itself.
    """
    ignored = [
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    if not ignored:
        return config
    profiles = tuple(_ignoring(profile, ignored) for profile in config.profiles)
    return msgspec.structs.replace(config, profiles=profiles)


def _ignoring(profile: KubeSchedulerProfile, resources: list[str]) -> KubeSchedulerProfile:
    given = {entry.name: entry.args for entry in profile.plugin_config}
    given[_PLUGIN] = {**given.get(_PLUGIN, {}), "ignoredResources": resources}
    entries = tuple(PluginConfig(name=name, args=args) for name, args in given.items())
    return msgspec.structs.replace(profile, plugin_config=entries)
