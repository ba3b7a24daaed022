"""From a profile of v1alpha1 to v1beta3 to one of v1.

Up to v1beta2 each extension point had its own list of defaults, and scores had other weights.
In v1 the defaults come from multiPoint, so a list of additions and removals stays as it is. The
scores are always written out in full, with the weights they had.
"""

from typing import Any

from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.config.legacy import names
from mooring.config.legacy.scores import Args, convert_scores
from mooring.config.legacy.types import OldProfile
from mooring.config.notes import Findings
from mooring.config.show import plugin_sets
from mooring.config.types import API_VERSION, PluginConfig, PluginRef, PluginSet

Document = dict[str, Any]
_GROUP = API_VERSION.partition("/")[0]
_ALWAYS_ON = frozenset(ref.name for ref in DEFAULT_MULTIPOINT)


def convert_profile(
    old: OldProfile,
    path: str,
    findings: Findings,
    *,
    scores: tuple[PluginRef, ...],
    spread_is_by_selector: bool = False,
) -> Document:
    """Convert a profile of a version with default lists per point; `scores` is one of them."""
    place = f"{path}plugins"
    sets, args = _sets_and_args(old, path, findings)
    plugins: dict[str, PluginSet] = {}
    for point, chosen in sets.items():
        if _is_off("*", chosen) and point in names.NEWER_AT:
            newer = " and ".join(names.NEWER_AT[point])
            findings.note(f"{place}.{point}", f"newer plugins are disabled as well: {newer}")
        if point != "score":
            plugins[point] = _convert_set(chosen, f"{place}.{point}", findings)
    chosen = sets.get("score", PluginSet())
    wanted = _merge_scores(scores, chosen)
    converted = convert_scores(
        wanted, args, f"{place}.score", findings, spread_is_by_selector=spread_is_by_selector
    )
    plugins["score"] = _score_set(converted, everything_off=_is_off("*", chosen))
    text = (
        "written out with the weights that were the default then;"
        " v1 has TaintToleration 3, NodeAffinity 2 and InterPodAffinity 2"
    )
    findings.note(f"{place}.score", text)
    return to_profile(old.scheduler_name, plugins, args)


def convert_v1beta3_profile(old: OldProfile, path: str, findings: Findings) -> Document:
    """Convert a profile with the defaults of v1: only names may differ."""
    place = f"{path}plugins"
    sets, args = _sets_and_args(old, path, findings)
    _fold_selector_spread(sets, args, place, findings)
    plugins = {
        point: PluginSet(
            enabled=tuple(
                ref
                for ref in _known(chosen.enabled, f"{place}.{point}.enabled", findings)
                if ref.name not in names.SELECTOR_SPREADS
            ),
            disabled=_still_disabled(chosen),
        )
        for point, chosen in sets.items()
    }
    return to_profile(old.scheduler_name, plugins, args)


def _sets_and_args(
    old: OldProfile, path: str, findings: Findings
) -> tuple[dict[str, PluginSet], Args]:
    """Plugin sets by point and arguments by plugin, without what was removed."""
    args = collect_args(old.plugin_config, f"{path}pluginConfig", findings)
    sets = {point: chosen or PluginSet() for point, chosen in old.plugins.items()}
    refuse_removed(sets, args, f"{path}plugins", findings)
    return sets, args


def to_profile(scheduler_name: str | None, plugins: dict[str, PluginSet], args: Args) -> Document:
    """Write a profile as it stands in a file, without what is empty."""
    profile: Document = {}
    if scheduler_name is not None:
        profile["schedulerName"] = scheduler_name
    written = plugin_sets(plugins)
    if written:
        profile["plugins"] = written
    entries = [{"name": name, "args": value} for name, value in args.items() if value]
    if entries:
        profile["pluginConfig"] = entries
    return profile


def collect_args(entries: tuple[PluginConfig, ...], path: str, findings: Findings) -> Args:
    """Arguments by plugin, in terms of v1 where they name the version they are written in."""
    args: Args = {}
    for index, entry in enumerate(entries):
        place = f"{path}[{index}]"
        if entry.name in args:
            findings.refuse(place, f'Duplicate value: "{entry.name}"')
        if entry.name in names.VOLUME_LIMITS:
            findings.note(place, f"{entry.name} is gone: {_LIMITS}")
            continue
        given = dict(entry.args)
        group, _, version = str(given.get("apiVersion", "")).partition("/")
        if group == _GROUP and version != "v1":
            given["apiVersion"] = API_VERSION
        if entry.name in names.STRATEGIES:
            given.pop("apiVersion", None)
            given.pop("kind", None)
        args[entry.name] = given
    return args


def refuse_removed(sets: dict[str, PluginSet], args: Args, path: str, findings: Findings) -> None:
    """Refuse plugins without a counterpart, unless they have no effect."""
    told: set[str] = set()
    for point, chosen in sets.items():
        for index, ref in enumerate(chosen.enabled):
            place = f"{path}.{point}.enabled[{index}]"
            if ref.name in names.REMOVED:
                findings.refuse(place, removed_message(ref.name))
            elif ref.name in names.REMOVED_UNLESS_UNUSED and ref.name not in told:
                told.add(ref.name)
                given = args.get(ref.name, {})
                if any(given.get(field) for field in names.REMOVED_UNLESS_UNUSED[ref.name]):
                    findings.refuse(place, removed_message(ref.name))
                else:
                    findings.note(place, f"{ref.name} without arguments does nothing; left out")
    for name in (*names.REMOVED_UNLESS_UNUSED, *names.REMOVED):
        args.pop(name, None)


def removed_message(name: str) -> str:
    """The message for a plugin without a counterpart."""
    return f"{name} has no counterpart in v1{names.ALTERNATIVES.get(name, '')}"


def _convert_set(chosen: PluginSet, path: str, findings: Findings) -> PluginSet:
    enabled: list[PluginRef] = []
    for ref in _known(chosen.enabled, f"{path}.enabled", findings):
        name = names.SPREAD if ref.name in names.SELECTOR_SPREADS else ref.name
        # A default that is enabled again keeps its place; in v1 that entry would move it forward.
        stays = name in _ALWAYS_ON and not _is_off(name, chosen)
        if not stays and PluginRef(name) not in enabled:
            enabled.append(PluginRef(name))
    return PluginSet(enabled=tuple(enabled), disabled=_still_disabled(chosen))


def _merge_scores(defaults: tuple[PluginRef, ...], chosen: PluginSet) -> list[PluginRef]:
    own = {ref.name: ref for ref in chosen.enabled}
    merged = [own.pop(ref.name, ref) for ref in defaults if not _is_off(ref.name, chosen)]
    merged += own.values()
    return [ref for ref in merged if not _is_removed(ref.name)]


def _score_set(scores: list[PluginRef], *, everything_off: bool) -> PluginSet:
    used = {ref.name for ref in scores}
    unused = tuple(PluginRef(name) for name in names.V1_SCORES if name not in used)
    disabled = (PluginRef("*"),) if everything_off else unused
    return PluginSet(enabled=tuple(scores), disabled=disabled)


def _known(enabled: tuple[PluginRef, ...], path: str, findings: Findings) -> list[PluginRef]:
    kept = []
    for index, ref in enumerate(enabled):
        if ref.name in names.VOLUME_LIMITS:
            findings.note(f"{path}[{index}]", f"{ref.name} is gone: {_LIMITS}")
        elif not _is_removed(ref.name):
            kept.append(ref)
    return kept


def _fold_selector_spread(
    sets: dict[str, PluginSet], args: Args, path: str, findings: Findings
) -> None:
    """Fold SelectorSpread into PodTopologySpread, which v1beta3 enables by default."""
    using = [
        (point, ref)
        for point, chosen in sets.items()
        for ref in chosen.enabled
        if ref.name in names.SELECTOR_SPREADS
    ]
    if not using:
        return
    point, ref = using[0]
    shared, scoring = sets.get("multiPoint", PluginSet()), sets.get("score", PluginSet())
    scores = [ref]
    if not (_is_off(names.SPREAD, shared) or _is_off(names.SPREAD, scoring)):
        scores.append(PluginRef(names.SPREAD, 2))
    else:
        text = f"{ref.name} is done by {names.SPREAD}, which is disabled; enable that instead"
        findings.refuse(f"{path}.{point}", text)
    convert_scores(scores, args, f"{path}.{point}", findings, spread_is_by_selector=False)


def _is_off(name: str, chosen: PluginSet) -> bool:
    return any(ref.name in ("*", name) for ref in chosen.disabled)


def _is_removed(name: str) -> bool:
    return name in names.REMOVED_UNLESS_UNUSED or name in names.REMOVED


def _still_disabled(chosen: PluginSet) -> tuple[PluginRef, ...]:
    """The disabled plugins, without those that are removed; unknown names are kept."""
    old = {*names.STRATEGIES, *names.SELECTOR_SPREADS, names.AVOID_PODS, *names.VOLUME_LIMITS}
    return tuple(
        PluginRef(ref.name)
        for ref in chosen.disabled
        if ref.name not in old and not _is_removed(ref.name)
    )


_LIMITS = "volumes of all kinds are counted by NodeVolumeLimits, as CSI volumes"
