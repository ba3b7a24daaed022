"""From the scores of an older version to those of v1, with the arguments that belong to them.

Several score plugins are settings of another plugin in v1: the three that score resources are
strategies of NodeResourcesFit, and SelectorSpread is what PodTopologySpread does for pods without
constraints. A plugin has one such setting, so two of these scores at once can't be expressed.
"""

from collections.abc import Sequence
from typing import Any

from mooring.config.legacy import names
from mooring.config.notes import Findings
from mooring.config.types import PluginRef

Args = dict[str, dict[str, Any]]
"""Arguments by plugin; changed in place here."""


def convert_scores(
    scores: Sequence[PluginRef],
    args: Args,
    path: str,
    findings: Findings,
    *,
    spread_is_by_selector: bool,
) -> list[PluginRef]:
    """The scores of v1, each with its weight.

    `spread_is_by_selector` says that pods without constraints were spread by SelectorSpread
    alone, as before 1.20; later PodTopologySpread did that by itself.
    """
    converted = _by_resources(scores, args, path, findings)
    converted = _by_selector(converted, args, path, findings, spread_is_by_selector)
    kept = []
    for ref in converted:
        if ref.name == names.AVOID_PODS:
            text = (
                "NodePreferAvoidPods has no counterpart: nodes with the annotation"
                " scheduler.alpha.kubernetes.io/preferAvoidPods are no longer avoided;"
                " a PreferNoSchedule taint can do that"
            )
            findings.note(path, text)
        else:
            kept.append(PluginRef(ref.name, ref.weight or 1))
    return kept


def _by_resources(
    scores: Sequence[PluginRef], args: Args, path: str, findings: Findings
) -> list[PluginRef]:
    used = [ref.name for ref in scores if ref.name in names.STRATEGIES or ref.name == names.FIT]
    if len(used) > 1:
        text = (
            f"scores by {' and '.join(used)} at once, which one NodeResourcesFit"
            " cannot do in v1; disable all but one of them"
        )
        findings.refuse(path, text)
    for name in names.STRATEGIES:
        given = args.pop(name, None)
        if name in used:
            _set_strategy(name, given or {}, args, path, findings)
        elif given is not None:
            findings.note(path, f"{name} is not enabled: its arguments have no effect")
    return [
        PluginRef(names.FIT, ref.weight) if ref.name in names.STRATEGIES else ref for ref in scores
    ]


def _set_strategy(
    name: str, given: dict[str, Any], args: Args, path: str, findings: Findings
) -> None:
    fit = args.get(names.FIT, {})
    if fit.pop("scoringStrategy", None) is not None:
        text = f"scoringStrategy of {names.FIT} had no effect, as {name} was scoring"
        findings.note(path, text)
    resources = given.get("resources")
    strategy: dict[str, Any] = {"type": names.STRATEGIES[name]}
    if resources:
        strategy["resources"] = resources
    if name == names.RATIO:
        strategy["requestedToCapacityRatio"] = {"shape": given.get("shape") or []}
        if not given.get("shape"):
            findings.refuse(path, f"{name}: shape: at least one point must be specified")
    if name != names.LEAST_ALLOCATED:
        findings.note(path, f"{name} is the scoringStrategy of {names.FIT} in v1")
    if name != names.LEAST_ALLOCATED or resources:
        args[names.FIT] = {**fit, "scoringStrategy": strategy}


def _by_selector(
    scores: list[PluginRef],
    args: Args,
    path: str,
    findings: Findings,
    spread_is_by_selector: bool,
) -> list[PluginRef]:
    selecting = [ref for ref in scores if ref.name in names.SELECTOR_SPREADS]
    spreading = any(ref.name == names.SPREAD for ref in scores)
    given = args.get(names.SPREAD, {})
    if not selecting:
        if spread_is_by_selector and spreading:
            args[names.SPREAD] = {**given, "defaultingType": "List"}
        return scores
    if given.get("defaultConstraints"):
        text = (
            f"{selecting[0].name} beside defaultConstraints of {names.SPREAD}"
            " cannot be expressed in v1; disable one of them"
        )
        findings.refuse(path, text)
    given.pop("defaultingType", None)
    text = (
        f"{selecting[0].name} is done by {names.SPREAD} with its built-in constraints"
        " (defaultingType System)"
    )
    findings.note(path, text)
    others = [ref for ref in scores if ref not in selecting]
    if not spreading:
        text = f"{names.SPREAD} now also scores the constraints that pods have themselves"
        findings.note(path, text)
        others.append(PluginRef(names.SPREAD, selecting[0].weight))
    return others
