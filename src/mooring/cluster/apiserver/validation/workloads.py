"""What may be wrong with things that make pods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mooring.api.codec import convert
from mooring.api.meta import LabelSelector
from mooring.api.selectors import Selector, SelectorError
from mooring.cluster.apiserver.failures import (
    Problems,
    not_allowed,
    required,
    unsupported,
    wrong,
)
from mooring.cluster.apiserver.metadata import label_problems
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.containers import NEGATIVE
from mooring.cluster.apiserver.validation.pods import template_spec_problems
from mooring.cluster.apiserver.validation.selectors import label_selector_problems

IMMUTABLE: Final = "field is immutable"
_PERCENT: Final = re.compile(r"[0-9]+%")
_NO_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)
_MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_SET_MAY_CHANGE: Final = (
    "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
    "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip


def deployment_problems(value: Object) -> Problems:
    spec = value["spec"]
    found = count_problems(spec, "spec", "replicas")
    found += _selected_template_problems(spec, "deployment")
    found += _strategy_problems(spec["strategy"], "spec.strategy")
    found += count_problems(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    deadline = spec["progressDeadlineSeconds"]
    found += count_problems(spec, "spec", "progressDeadlineSeconds")
    if deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        found.append(wrong("spec.progressDeadlineSeconds", deadline, why))
    return found


def replica_set_problems(value: Object) -> Problems:
    spec = value["spec"]
    found = count_problems(spec, "spec", "replicas", "minReadySeconds")
    return found + _selected_template_problems(spec, "deployment")


def stateful_set_problems(value: Object) -> Problems:
    spec = value["spec"]
    found: Problems = []
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        found.append(wrong("spec.podManagementPolicy", policy, why))
    if spec["updateStrategy"]["type"] not in ("RollingUpdate", "OnDelete"):
        why = "must be 'RollingUpdate' or 'OnDelete'"
        found.append(wrong("spec.updateStrategy", spec["updateStrategy"], why))
    found += count_problems(spec, "spec", "replicas", "minReadySeconds")
    claims = [
        {"name": claim["metadata"].get("name", ""), "persistentVolumeClaim": {"claimName": "x"}}
        for claim in spec.get("volumeClaimTemplates") or ()
    ]
    if claims:
        template = spec["template"]
        pod = template["spec"]
        own = {claim["name"] for claim in claims}
        rest = [one for one in pod.get("volumes") or () if one.get("name") not in own]
        spec = {**spec, "template": {**template, "spec": {**pod, "volumes": [*claims, *rest]}}}
    return found + _selected_template_problems(spec, "statefulset")


def daemon_set_problems(value: Object) -> Problems:
    spec = value["spec"]
    selector, template = spec.get("selector"), spec["template"]
    found = label_selector_problems(selector, "spec.selector")
    if not _selects(selector, template):
        found.append(_mismatch(template))
    if selector is not None and not _tests(selector):
        why = "empty selector is invalid for daemonset"
        found.append(wrong("spec.selector", selector, why))
    found += template_spec_problems(template, "spec.template")
    found += _restart_problems(template)
    found += count_problems(spec, "spec", "minReadySeconds")
    strategy = spec["updateStrategy"]
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
        found.append(unsupported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete")))
    return found + count_problems(spec, "spec", "revisionHistoryLimit")


def replication_controller_problems(value: Object) -> Problems:
    spec = value["spec"]
    found = count_problems(spec, "spec", "minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        found.append(required("spec.selector"))
    found += count_problems(spec, "spec", "replicas")
    if template is None:
        return [*found, required("spec.template")]
    labels = template["metadata"].get("labels") or {}
    if any(labels.get(key) != wanted for key, wanted in selector.items()):
        found.append(_mismatch(template))
    found += template_spec_problems(template, "spec.template")
    return found + _restart_problems(template)


def job_problems(value: Object) -> Problems:
    spec, meta = value["spec"], value["metadata"]
    found: Problems = []
    if not spec.get("manualSelector"):
        exact = (spec.get("selector") or {}).get("matchLabels") or {}
        own = {"batch.kubernetes.io/controller-uid": meta.get("uid", "")}
        legacy = {"controller-uid": meta.get("uid", "")}
        if exact not in (own, legacy):
            why = "`selector` not auto-generated"
            found.append(wrong("spec.selector", spec.get("selector"), why))
    found += _job_spec_problems(spec, "spec")
    if not _selects(spec.get("selector"), spec["template"]):
        found.append(_mismatch(spec["template"]))
    return found


def cron_job_problems(value: Object) -> Problems:
    spec = value["spec"]
    found: Problems = []
    if not spec.get("schedule"):
        found.append(required("spec.schedule"))
    if spec["concurrencyPolicy"] not in ("Allow", "Forbid", "Replace"):
        policies = ("Allow", "Forbid", "Replace")
        found.append(unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], policies))
    found += _job_spec_problems(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return found + count_problems(spec, "spec", *limits)


def _job_spec_problems(spec: Mapping[str, Any], field: str) -> Problems:
    counts = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    found = count_problems(spec, field, *counts, "ttlSecondsAfterFinished")
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        found.append(unsupported(f"{field}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed" and "completions" not in spec:
        why = "when completion mode is Indexed"
        found.append(required(f"{field}.completions", why))
    template = spec["template"]
    found += template_spec_problems(template, f"{field}.template")
    policy = template["spec"].get("restartPolicy", "")
    place = f"{field}.template.spec.restartPolicy"
    if policy == "Always":
        found.append(required(place, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        found.append(unsupported(place, policy, ("OnFailure", "Never")))
    return found


# --- changes -----------------------------------------------------------------------------------


def selector_change_problems(new: Object, old: Object) -> Problems:
    """Of deployments, replica sets and daemon sets."""
    selector = new["spec"].get("selector")
    if selector == old["spec"].get("selector"):
        return []
    return [wrong("spec.selector", selector, IMMUTABLE)]


def stateful_set_change_problems(new: Object, old: Object) -> Problems:
    before = {key: part for key, part in old["spec"].items() if key not in _STATEFUL_SET_MAY_CHANGE}
    after = {key: part for key, part in new["spec"].items() if key not in _STATEFUL_SET_MAY_CHANGE}
    if before == after:
        return []
    why = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [not_allowed("spec", why)]


def job_change_problems(new: Object, old: Object) -> Problems:
    spec, before = new["spec"], old["spec"]
    found: Problems = []
    fields = ["completions", "selector", "template", "completionMode", "podFailurePolicy"]
    if spec.get("completionMode") == "Indexed":
        fields.remove("completions")  # an indexed job may grow, together with its parallelism
    if before.get("suspend") and spec["template"] != before["template"]:
        fields.remove("template")  # nothing has started yet
    for field in fields:
        if spec.get(field) != before.get(field):
            found.append(wrong(f"spec.{field}", spec.get(field), IMMUTABLE))
    return found


# --- parts -------------------------------------------------------------------------------------


def count_problems(holder: Mapping[str, Any], field: str, *names: str) -> Problems:
    """Of numbers that may not be negative."""
    return [
        wrong(f"{field}.{name}", holder[name], NEGATIVE)
        for name in names
        if holder.get(name, 0) < 0
    ]


def share_problems(share: Any, field: str) -> Problems:
    """Of a number or a percentage."""
    if isinstance(share, str):
        return [] if _PERCENT.fullmatch(share) else [wrong(field, share, _NO_PERCENT)]
    return [] if share >= 0 else [wrong(field, share, NEGATIVE)]


def _selected_template_problems(spec: Mapping[str, Any], kind: str) -> Problems:
    selector, template = spec.get("selector"), spec["template"]
    found: Problems = []
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += label_selector_problems(selector, "spec.selector")
        if not _tests(selector):
            why = f"empty selector is invalid for {kind}"
            found.append(wrong("spec.selector", selector, why))
    if not found or selector is None or not _tests(selector):
        if not _selects(selector, template):
            found.append(_mismatch(template))
        found += template_spec_problems(template, "spec.template")
    else:
        why = "" if kind == "statefulset" else "invalid label selector"
        found.append(wrong("spec.selector", selector, why))
    return found + _restart_problems(template)


def _restart_problems(template: Mapping[str, Any]) -> Problems:
    policy = template["spec"].get("restartPolicy")
    if policy == "Always":
        return []
    return [unsupported("spec.template.spec.restartPolicy", policy, ("Always",))]


def _strategy_problems(strategy: Mapping[str, Any], field: str) -> Problems:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "Recreate":
        if rolling is None:
            return []
        why = "may not be specified when strategy `type` is 'Recreate'"
        return [not_allowed(f"{field}.rollingUpdate", why)]
    if strategy["type"] != "RollingUpdate":
        shown = {"Type": strategy["type"], "RollingUpdate": rolling}
        return [unsupported(field, shown, ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    fewer, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    found = share_problems(fewer, f"{field}.rollingUpdate.maxUnavailable")
    found += share_problems(more, f"{field}.rollingUpdate.maxSurge")
    if fewer in (0, "0%") and more in (0, "0%"):
        why = "may not be 0 when `maxSurge` is 0"
        found.append(wrong(f"{field}.rollingUpdate.maxUnavailable", fewer, why))
    return found


def _tests(selector: Mapping[str, Any]) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _selects(selector: Mapping[str, Any] | None, template: Mapping[str, Any]) -> bool:
    """Whether a template's pods are found; a selector that tests nothing finds no fault."""
    if selector is not None and not _tests(selector):
        return True
    labels = template["metadata"].get("labels") or {}
    try:
        found = None if selector is None else convert(selector, LabelSelector)
        return Selector.from_label_selector(found).matches(labels)
    except SelectorError:  # what is wrong with it is said elsewhere
        return not label_problems(labels, "")


def _mismatch(template: Mapping[str, Any]) -> Any:
    labels = template["metadata"].get("labels") or None
    return wrong("spec.template.metadata.labels", labels, _MISMATCH)
