"""v1alpha1 and v1alpha2, in which preemption and volume binding were not plugins yet."""

from collections.abc import Callable
from typing import Any

import msgspec

from mooring.config.legacy import names
from mooring.config.legacy.beta import check_extension_points
from mooring.config.legacy.policy import convert_policy
from mooring.config.legacy.profile import convert_profile, to_profile
from mooring.config.legacy.sections import (
    Document,
    convert_common_fields,
    convert_extenders,
    decode_legacy,
)
from mooring.config.legacy.types import (
    POINTS,
    Alpha,
    OldProfile,
    PluginSets,
    PolicySource,
    V1Alpha1,
    V1Alpha2,
)
from mooring.config.notes import Findings
from mooring.config.types import DEFAULT_SCHEDULER_NAME, PluginRef, PluginSet

FetchPolicy = Callable[[PolicySource, Findings], tuple[dict[Any, object], str] | None]
"""The Policy that the file refers to, and its place; None after a problem was reported."""

# The weight of EvenPodsSpreadPriority in 1.18; it is 2 since 1.19.
_SPREAD_WEIGHT = 1
_PROVIDERS = ("DefaultProvider", "ClusterAutoscalerProvider")


def convert_v1alpha2(raw: dict[Any, object], findings: Findings) -> Document | None:
    """Convert a document of Kubernetes 1.18."""
    old: V1Alpha2 | None = decode_legacy(raw, V1Alpha2, findings, lenient=True)
    if old is None:
        return None
    new = convert_common_fields(old, findings)
    profiles = []
    for index, profile in enumerate(old.profiles or (OldProfile(),)):
        path = f"profiles[{index}]."
        check_extension_points(profile, "v1alpha2", path, findings, lenient=True)
        plugins = _v1_points(profile.plugins, f"{path}plugins", findings)
        plain = msgspec.structs.replace(profile, plugins=plugins)
        profiles.append(
            convert_profile(
                plain, path, findings, scores=names.ALPHA_SCORES, spread_is_by_selector=True
            )
        )
    new["profiles"] = profiles
    if old.extenders:
        new["extenders"] = convert_extenders(old.extenders, findings)
    _move_fields_to_plugins(new, old, findings)
    return new


def convert_v1alpha1(
    raw: dict[Any, object], findings: Findings, fetch: FetchPolicy
) -> Document | None:
    """Convert a document of Kubernetes 1.10 to 1.18, with the Policy it refers to."""
    old: V1Alpha1 | None = decode_legacy(raw, V1Alpha1, findings, lenient=True)
    if old is None:
        return None
    new = convert_common_fields(old, findings)
    source = old.algorithm_source
    if source.policy is not None and not source.provider:
        if not _add_policy(new, old, source.policy, findings, fetch):
            return None
    else:
        if source.policy is not None:
            text = "has no effect beside algorithmSource.provider"
            findings.note("algorithmSource.policy", text)
        _add_provider(new, old, findings)
    _move_fields_to_plugins(new, old, findings)
    return new


def _add_policy(
    new: Document, old: V1Alpha1, source: PolicySource, findings: Findings, fetch: FetchPolicy
) -> bool:
    for given, name in (old.plugins, "plugins"), (old.plugin_config, "pluginConfig"):
        if given:
            text = f"using {name[0].upper()}{name[1:]} and Policy simultaneously is not supported"
            findings.refuse(name, text)
    found = fetch(source, findings)
    if found is None:
        return False
    raw, place = found
    within = Findings(place)
    chosen = convert_policy(
        raw,
        within,
        spread_weight=_SPREAD_WEIGHT,
        hard_affinity=old.hard_pod_affinity_symmetric_weight,
    )
    findings.add(within)
    if chosen is None:
        return False
    name = old.scheduler_name or DEFAULT_SCHEDULER_NAME
    new["profiles"] = [to_profile(name, chosen.plugins, chosen.args)]
    if chosen.extenders:
        new["extenders"] = chosen.extenders
    return True


def _add_provider(new: Document, old: V1Alpha1, findings: Findings) -> None:
    provider = old.algorithm_source.provider or _PROVIDERS[0]
    scores = names.ALPHA_SCORES
    if provider not in _PROVIDERS:
        text = f'algorithm provider "{provider}" is not registered'
        findings.refuse("algorithmSource.provider", f"{text}; expected {' or '.join(_PROVIDERS)}")
    elif provider != _PROVIDERS[0]:
        scores = tuple(
            PluginRef(names.MOST_ALLOCATED, ref.weight)
            if ref.name == names.LEAST_ALLOCATED
            else ref
            for ref in scores
        )
    given = OldProfile(
        scheduler_name=old.scheduler_name,
        plugins=old.plugins,
        plugin_config=old.plugin_config,
    )
    check_extension_points(given, "v1alpha1", "", findings, lenient=True)
    sets = dict(given.plugins)
    if "postFilter" in sets:
        findings.note("plugins.postFilter", "is preScore in v1: it ran before the scores")
        sets["preScore"] = sets.pop("postFilter")
    plugins = _v1_points(sets, "plugins", findings)
    plain = msgspec.structs.replace(given, plugins=plugins)
    profile = convert_profile(plain, "", findings, scores=scores, spread_is_by_selector=True)
    weight = old.hard_pod_affinity_symmetric_weight
    if weight is not None:
        _add_hard_affinity(profile, weight, findings)
    new["profiles"] = [profile]


def _add_hard_affinity(profile: Document, weight: int, findings: Findings) -> None:
    given = next((e for e in _entries(profile) if e["name"] == names.AFFINITY), None)
    if given is None:
        _entries(profile).append(
            {"name": names.AFFINITY, "args": {"hardPodAffinityWeight": weight}}
        )
    elif given["args"].get("hardPodAffinityWeight") != weight:
        text = f"differs from hardPodAffinityWeight in the arguments of {names.AFFINITY}"
        findings.refuse("hardPodAffinitySymmetricWeight", text)


def _v1_points(sets: PluginSets, path: str, findings: Findings) -> PluginSets:
    """The sets by extension points of v1, where `unreserve` is part of `reserve`.

    Those of v1alpha1 are named as in v1alpha2.
    """
    known = {
        point: chosen
        for point, chosen in sets.items()
        if point in POINTS["v1alpha2"] and point != "unreserve"
    }
    undoing = sets.get("unreserve")
    if undoing is not None and undoing.enabled:
        findings.note(f"{path}.unreserve", "is part of reserve in v1")
        reserving = known.get("reserve") or PluginSet()
        present = {ref.name for ref in reserving.enabled}
        added = tuple(ref for ref in undoing.enabled if ref.name not in present)
        known["reserve"] = PluginSet(
            enabled=(*reserving.enabled, *added), disabled=reserving.disabled
        )
    return known


def _move_fields_to_plugins(new: Document, old: Alpha, findings: Findings) -> None:
    for profile in new["profiles"]:
        off: list[Document] = (
            profile.setdefault("plugins", {})
            .setdefault("multiPoint", {})
            .setdefault("disabled", [])
        )
        binds_volumes = all(ref["name"] != names.VOLUME_BINDING for ref in off)
        if old.bind_timeout_seconds is not None and binds_volumes:
            args = {"bindTimeoutSeconds": old.bind_timeout_seconds}
            entries = [e for e in _entries(profile) if e["name"] != names.VOLUME_BINDING]
            profile["pluginConfig"] = [*entries, {"name": names.VOLUME_BINDING, "args": args}]
        if old.disable_preemption:
            off.append({"name": "DefaultPreemption"})
        if not off:
            del profile["plugins"]["multiPoint"]
    if old.bind_timeout_seconds is not None:
        findings.note("bindTimeoutSeconds", f"is an argument of {names.VOLUME_BINDING} in v1")
    if old.disable_preemption:
        findings.note("disablePreemption", "switches the plugin DefaultPreemption off in v1")


def _entries(profile: Document) -> list[Document]:
    entries: list[Document] = profile.setdefault("pluginConfig", [])
    return entries
