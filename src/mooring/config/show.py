"""The effective configuration: as plain data, and as a file for `mooring config show`.

Loading the text and showing it once more gives the same text.
"""

from collections.abc import Collection, Mapping

from mooring.config._field_errors import to_plain
from mooring.config.defaults import apply_defaults, effective_plugins
from mooring.config.source import dump_yaml
from mooring.config.types import (
    API_VERSION,
    KIND,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    PluginSet,
)

ArgsByPlugin = Mapping[str, object]
"""Plugin name to its effective arguments: a mapping, or the plugin's own Args Struct."""


def to_document(
    config: KubeSchedulerConfiguration,
    available_plugins: Collection[str],
    effective_args: Mapping[str, ArgsByPlugin] | None = None,
) -> dict[str, object]:
    """The configuration with all defaults filled in.

    `available_plugins` says which of the default plugins there are to merge. `effective_args`
    gives, by schedulerName and then by plugin, arguments to print in place of those that were
    given; plugins that were given none are added.
    """
    config = apply_defaults(config)
    data = {"apiVersion": API_VERSION, "kind": KIND, **_without_nulls(to_plain(config))}
    data["profiles"] = [
        _profile(profile, available_plugins, (effective_args or {}).get(profile.scheduler_name, {}))
        for profile in config.profiles
    ]
    data["extenders"] = [_without_nulls(to_plain(extender)) for extender in config.extenders]
    if not config.extenders:
        del data["extenders"]
    return data


def to_yaml(
    config: KubeSchedulerConfiguration,
    available_plugins: Collection[str],
    effective_args: Mapping[str, ArgsByPlugin] | None = None,
) -> str:
    """The document as a file."""
    return dump_yaml(to_document(config, available_plugins, effective_args))


def _profile(
    profile: KubeSchedulerProfile, available: Collection[str], effective_args: ArgsByPlugin
) -> dict[str, object]:
    data: dict[str, object] = {"schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        data["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    plugins = plugin_sets(effective_plugins(profile, available).by_point())
    if plugins:
        data["plugins"] = plugins
    args: dict[str, object] = {entry.name: entry.args for entry in profile.plugin_config}
    args.update(effective_args)
    if args:
        data["pluginConfig"] = [
            {"name": name, "args": to_plain(value)} for name, value in args.items()
        ]
    return data


def plugin_sets(sets: Mapping[str, PluginSet]) -> dict[str, object]:
    """Plugin sets as they are in a file, without empty ones."""
    written = {point: _plugin_set(chosen) for point, chosen in sets.items()}
    return {point: chosen for point, chosen in written.items() if chosen}


def _plugin_set(chosen: PluginSet) -> dict[str, object]:
    lists = {"enabled": chosen.enabled, "disabled": chosen.disabled}
    return {name: [_ref(ref) for ref in refs] for name, refs in lists.items() if refs}


def _ref(ref: PluginRef) -> dict[str, object]:
    return {"name": ref.name, "weight": ref.weight} if ref.weight else {"name": ref.name}


def _without_nulls(data: object) -> dict[str, object]:
    assert isinstance(data, dict)
    return {key: value for key, value in data.items() if value is not None}
