"""Validation beyond the types: ranges, names, and rules between fields.

The texts are kube-scheduler's. `load` calls `validate` after defaulting, and reports the problems
together with those of decoding.
"""

from collections.abc import Iterator, Sequence

from mooring.api.requests import is_extended
from mooring.config._field_errors import duplicate, invalid, required
from mooring.config.types import (
    API_VERSION,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    Plugins,
)
from mooring.errors import Problem

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


def validate(config: KubeSchedulerConfiguration) -> list[Problem]:
    """Every rule the configuration breaks; `apply_defaults` must have been applied."""
    return list(_all_problems(config))


def _all_problems(config: KubeSchedulerConfiguration) -> Iterator[Problem]:
    burst = config.client_connection.burst
    if burst < 0:
        yield invalid("clientConnection.burst", burst, "must be non-negative")
    yield from _leader_election(config.leader_election)
    if config.parallelism <= 0:
        text = "should be an integer value greater than zero"
        yield invalid("parallelism", config.parallelism, text)
    yield from _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        text = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", longest, text)
    yield from _profiles(config.profiles)
    yield from _extenders(config.extenders)


def _leader_election(election: LeaderElectionConfiguration) -> Iterator[Problem]:
    if not election.leader_elect:
        return  # the other fields have no effect then
    lease, renew, retry = election.lease_duration, election.renew_deadline, election.retry_period
    for name, period in ("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry):
        if period.nanoseconds <= 0:
            yield invalid(f"leaderElection.{name}", period, "must be greater than zero")
    if lease <= renew:
        # The value in the message is the deadline, as in kube-scheduler.
        text = "must be greater than `RenewDeadline`"
        yield invalid("leaderElection.leaseDuration", renew, text)
    if not election.resource_lock:
        yield required("leaderElection.resourceLock")
    elif election.resource_lock != "leases":
        text = 'resourceLock value must be "leases"'
        yield invalid("leaderElection.resourceLock", election.resource_lock, text)
    if not election.resource_namespace:
        yield required("leaderElection.resourceNamespace")
    if not election.resource_name:
        yield required("leaderElection.resourceName")


def _percentage(path: str, value: int | None) -> Iterator[Problem]:
    if value is not None and not 0 <= value <= 100:
        yield invalid(path, value, "not in valid range [0-100]")


def _profiles(profiles: Sequence[KubeSchedulerProfile]) -> Iterator[Problem]:
    if not profiles:
        yield required("profiles")
        return
    seen: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        if not profile.scheduler_name:
            yield required(f"{path}.schedulerName")
        elif profile.scheduler_name in seen:
            yield duplicate(f"{path}.schedulerName", profile.scheduler_name)
        seen.add(profile.scheduler_name)
        share = profile.percentage_of_nodes_to_score
        yield from _percentage(f"{path}.percentageOfNodesToScore", share)
        yield from _plugins(f"{path}.plugins", profile.plugins)
        yield from _plugin_config(f"{path}.pluginConfig", profile.plugin_config)
    yield from _queue_sort(profiles)


def _plugins(path: str, plugins: Plugins) -> Iterator[Problem]:
    for point, chosen in plugins.by_point().items():
        for index, ref in enumerate(chosen.enabled):
            place = f"{path}.{point}.enabled[{index}]"
            yield from _removed(place, ref.name)
            if ref.weight < 0:
                yield invalid(f"{place}.weight", ref.weight, "must be non-negative")


def _plugin_config(path: str, entries: Sequence[PluginConfig]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.name in seen:
            yield duplicate(f"{path}[{index}]", entry.name)
        seen.add(entry.name)
        yield from _removed(f"{path}[{index}]", entry.name)


def _removed(path: str, name: str) -> Iterator[Problem]:
    if name in REMOVED_PLUGINS:
        text = (
            f'was invalid in version "{API_VERSION}" '
            f'(KubeSchedulerConfiguration is version "{API_VERSION}")'
        )
        yield invalid(path, name, text)


def _queue_sort(profiles: Sequence[KubeSchedulerProfile]) -> Iterator[Problem]:
    """All profiles share one queue, so they have to agree on its order."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        text = "only one queue sort plugin can be enabled"
        yield invalid("profiles[0].plugins.queueSort.enabled", len(first.enabled), text)
    name = first.enabled[0].name if first.enabled else ""
    args = _args_of(profiles[0], name)
    for index, profile in enumerate(profiles[1:], start=1):
        chosen = profile.plugins.queue_sort
        if chosen != first:
            path = f"profiles[{index}].plugins.queueSort"
            yield invalid(path, chosen, "must be the same for all profiles")
        if name and _args_of(profile, name) != args:
            path = f"profiles[{index}].pluginConfig[{name}].args"
            text = "queueSort must be the same for all profiles"
            yield invalid(path, _args_of(profile, name), text)


def _args_of(profile: KubeSchedulerProfile, name: str) -> dict[str, object]:
    return next((entry.args for entry in profile.plugin_config if entry.name == name), {})


def _extenders(extenders: Sequence[Extender]) -> Iterator[Problem]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            text = "must have a positive weight applied to it"
            yield invalid(f"{path}.weight", extender.weight, text)
        for position, resource in enumerate(extender.managed_resources):
            place = f"{path}.managedResources[{position}].name"
            if not is_extended(resource.name):
                yield invalid(place, resource.name, "is an invalid extended resource name")
            if resource.name in managed:
                yield invalid(place, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield invalid("extenders", found, "only one extender can implement bind")
