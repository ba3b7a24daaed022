"""v1beta1, v1beta2 and v1beta3: the shape of v1, with other defaults in older versions."""

from typing import Any

import msgspec

from mooring.config.decode import unknown_field
from mooring.config.legacy import names
from mooring.config.legacy.profile import convert_profile, convert_v1beta3_profile
from mooring.config.legacy.sections import Document, convert_common_fields, decode_legacy
from mooring.config.legacy.types import POINTS, OldProfile, V1Beta, V1Beta3
from mooring.config.notes import Findings
from mooring.config.source import child_path

_IGNORED_IN_V1BETA2 = ("multiPoint", "preEnqueue")


def convert_beta(raw: dict[Any, object], version: str, findings: Findings) -> Document | None:
    """Convert a document of one of the beta versions; None when its shape is wrong."""
    type_ = V1Beta3 if version == "v1beta3" else V1Beta
    old: V1Beta3 | None = decode_legacy(raw, type_, findings, lenient=False)
    if old is None:
        return None
    new = convert_common_fields(old, findings)
    if old.parallelism is not None:
        new["parallelism"] = old.parallelism
    profiles = []
    for index, profile in enumerate(old.profiles or (OldProfile(),)):
        path = f"profiles[{index}]."
        check_extension_points(profile, version, path, findings)
        profiles.append(_convert(profile, version, path, findings))
    new["profiles"] = profiles
    if old.extenders:
        new["extenders"] = list(old.extenders)
    return new


def check_extension_points(
    profile: OldProfile, version: str, path: str, findings: Findings, *, lenient: bool = False
) -> None:
    """Look for plugin sets that the version does not know."""
    for point in profile.plugins:
        if point not in POINTS[version]:
            place = child_path(f"{path}plugins", point)
            if lenient:
                findings.note(place, "unknown field; kube-scheduler ignored it as well")
            else:
                findings.refuse(place, unknown_field(point, POINTS[version]))


def _convert(profile: OldProfile, version: str, path: str, findings: Findings) -> Document:
    if version == "v1beta3":
        return convert_v1beta3_profile(profile, path, findings)
    plugins = dict(profile.plugins)
    if version == "v1beta2":
        for point in _IGNORED_IN_V1BETA2:
            if plugins.pop(point, None) is not None:
                text = f"left out: kube-scheduler read {point} of v1beta2 without acting on it"
                findings.note(f"{path}plugins.{point}", text)
    scores = names.V1BETA2_SCORES
    if version == "v1beta1":
        scores = names.V1BETA1_SCORES
    bare = msgspec.structs.replace(profile, plugins=plugins)
    converted = convert_profile(bare, path, findings, scores=scores)
    if version == "v1beta1":
        _set_list_defaulting(converted)
    return converted


def _set_list_defaulting(profile: Document) -> None:
    """In v1beta1 default constraints took effect without `defaultingType: List`."""
    for entry in profile.get("pluginConfig", ()):
        args = entry["args"]
        if entry["name"] == names.SPREAD and args.get("defaultConstraints"):
            args.setdefault("defaultingType", "List")
