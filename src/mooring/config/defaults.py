"""The defaults of a configuration.

Two independent steps. `apply_defaults` fills in single fields and is run by `load`.
`merge_plugins` merges the user's plugin sets into the default ones; it needs to know which plugins
are installed, so the callers that know them run it: the runtime, and `show`.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from mooring.config.duration import Duration
from mooring.config.types import (
    DEFAULT_SCHEDULER_NAME,
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
)

# The default plugins of Kubernetes 1.36 in their order, with the score weights it gives them.
DEFAULT_MULTIPOINT: tuple[PluginRef, ...] = (
    PluginRef("SchedulingGates"),
    PluginRef("PrioritySort"),
    PluginRef("NodeUnschedulable"),
    PluginRef("NodeName"),
    PluginRef("TaintToleration", 3),
    PluginRef("NodeAffinity", 2),
    PluginRef("NodePorts"),
    PluginRef("NodeResourcesFit", 1),
    PluginRef("VolumeRestrictions"),
    PluginRef("NodeVolumeLimits"),
    PluginRef("VolumeBinding"),
    PluginRef("VolumeZone"),
    PluginRef("PodTopologySpread", 2),
    PluginRef("InterPodAffinity", 2),
    PluginRef("DynamicResources", 2),
    PluginRef("DefaultPreemption"),
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef("DefaultBinder"),
    PluginRef("NodeDeclaredFeatures"),
)

DEFAULT_EXTENDER_TIMEOUT = Duration.of(5)


def apply_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Set the defaults that depend on other fields or replace an explicit zero.

    As in kube-scheduler, zero durations, rates and names in `leaderElection`,
    `clientConnection` and an extender's `httpTimeout` count as unset. Applying it twice changes
    nothing.
    """
    contention = config.enable_contention_profiling
    profiles = _named(config.profiles or (KubeSchedulerProfile(),))
    own_lease = LeaderElectionConfiguration(resource_name=profiles[0].scheduler_name)
    return msgspec.structs.replace(
        config,
        leader_election=_without_zeros(config.leader_election, own_lease),
        client_connection=_without_zeros(config.client_connection, ClientConnection()),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
        profiles=profiles,
        extenders=tuple(map(_with_timeout, config.extenders)),
    )


def default_plugins(available: Collection[str]) -> tuple[PluginRef, ...]:
    """The default list, restricted to the plugins in `available`.

    Default plugins of Kubernetes that are not installed are left out, so that an empty
    configuration always works.
    """
    return tuple(ref for ref in DEFAULT_MULTIPOINT if ref.name in available)


def merge_plugins(defaults: Plugins, user: Plugins) -> Plugins:
    """Merge the user's sets into the default ones, point by point.

    Disabling removes default entries only, and is remembered for the expansion. A default that
    the user enables again keeps its place and takes the user's weight; everything else the user
    enables follows in the order given. Applying the same defaults twice changes nothing.
    """
    theirs = user.by_point()
    return Plugins.of_points(
        {point: _merge_set(ours, theirs[point]) for point, ours in defaults.by_point().items()}
    )


def effective_plugins(profile: KubeSchedulerProfile, available: Collection[str]) -> Plugins:
    """The profile's plugins, merged into the defaults that are installed."""
    defaults = Plugins(multi_point=PluginSet(enabled=default_plugins(available)))
    return merge_plugins(defaults, profile.plugins)


def resolve_names(plugins: Plugins, resolve: Callable[[str], str]) -> Plugins:
    """Rewrite every plugin name, `*` excepted.

    For names given as `module:Class`; to be done before merging, because names are compared
    there.
    """

    def renamed(refs: tuple[PluginRef, ...]) -> tuple[PluginRef, ...]:
        return tuple(
            ref if ref.name == "*" else PluginRef(resolve(ref.name), ref.weight) for ref in refs
        )

    return Plugins.of_points(
        {
            point: PluginSet(enabled=renamed(chosen.enabled), disabled=renamed(chosen.disabled))
            for point, chosen in plugins.by_point().items()
        }
    )


def _merge_set(defaults: PluginSet, user: PluginSet) -> PluginSet:
    disabled = tuple(PluginRef(ref.name) for ref in (*user.disabled, *defaults.disabled))
    dropped = {ref.name for ref in disabled}
    # If a name is enabled twice, the last entry counts; `expand_point` reports the repetition.
    replacements = {ref.name: index for index, ref in enumerate(user.enabled)}
    kept: list[PluginRef] = []
    placed: set[int] = set()
    for ref in () if "*" in dropped else defaults.enabled:
        if ref.name in dropped:
            continue
        index = replacements.get(ref.name)
        if index is None:
            kept.append(ref)
        else:
            kept.append(user.enabled[index])
            placed.add(index)
    kept.extend(ref for index, ref in enumerate(user.enabled) if index not in placed)
    return PluginSet(enabled=tuple(kept), disabled=disabled)


_S = TypeVar("_S", LeaderElectionConfiguration, ClientConnection)


def _without_zeros(section: _S, defaults: _S) -> _S:
    """Replace zero values by defaults; `false` is a value, not an unset field."""
    unset = {
        name: getattr(defaults, name)
        for name in section.__struct_fields__
        if not getattr(section, name) and not isinstance(getattr(section, name), bool)
    }
    return msgspec.structs.replace(section, **unset)


def _named(profiles: tuple[KubeSchedulerProfile, ...]) -> tuple[KubeSchedulerProfile, ...]:
    if len(profiles) == 1 and not profiles[0].scheduler_name:
        return (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return profiles


def _with_timeout(extender: Extender) -> Extender:
    if extender.http_timeout:
        return extender
    return msgspec.structs.replace(extender, http_timeout=DEFAULT_EXTENDER_TIMEOUT)
