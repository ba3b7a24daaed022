"""Validation of workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mooring.api.codec import convert
from mooring.api.meta import LabelSelector
from mooring.api.selectors import Selector, SelectorError
from mooring.cluster.apiserver.errors import (
    ErrorList,
    forbidden_field,
    invalid_value,
    one_of,
    required,
    unsupported,
)
from mooring.cluster.apiserver.metadata import validate_labels
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.containers import NEGATIVE
from mooring.cluster.apiserver.validation.pods import validate_template_spec
from mooring.cluster.apiserver.validation.selectors import validate_label_selector

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


def validate_deployment(value: Object) -> ErrorList:
    spec = value["spec"]
    found = validate_non_negative(spec, "spec", "replicas")
    found += _validate_selected_template(spec, "deployment")
    found += _validate_strategy(spec["strategy"], "spec.strategy")
    found += validate_non_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    deadline = spec["progressDeadlineSeconds"]
    found += validate_non_negative(spec, "spec", "progressDeadlineSeconds")
    if deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        found.append(invalid_value("spec.progressDeadlineSeconds", deadline, why))
    return found


def validate_replica_set(value: Object) -> ErrorList:
    spec = value["spec"]
    found = validate_non_negative(spec, "spec", "replicas", "minReadySeconds")
    return found + _validate_selected_template(spec, "deployment")


def validate_stateful_set(value: Object) -> ErrorList:
    spec = value["spec"]
    found: ErrorList = []
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        found.append(invalid_value("spec.podManagementPolicy", policy, why))
    if spec["updateStrategy"]["type"] not in ("RollingUpdate", "OnDelete"):
        why = "must be 'RollingUpdate' or 'OnDelete'"
        shown = _shown_strategy(spec["updateStrategy"])
        found.append(invalid_value("spec.updateStrategy", shown, why))
    found += validate_non_negative(spec, "spec", "replicas", "minReadySeconds")
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
    return found + _validate_selected_template(spec, "statefulset")


def validate_daemon_set(value: Object) -> ErrorList:
    spec = value["spec"]
    selector, template = spec.get("selector"), spec["template"]
    found = validate_label_selector(selector, "spec.selector")
    if not _selects(selector, template):
        found.append(_mismatch(template))
    if selector is not None and not _tests(selector):
        why = "empty selector is invalid for daemonset"
        found.append(invalid_value("spec.selector", selector, why))
    found += validate_template_spec(template, "spec.template")
    found += _validate_restart(template)
    found += validate_non_negative(spec, "spec", "minReadySeconds")
    strategy = spec["updateStrategy"]
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        shown = _shown_strategy(strategy)
        found.append(unsupported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete")))
    return found + validate_non_negative(spec, "spec", "revisionHistoryLimit")


def _shown_strategy(strategy: Mapping[str, Any]) -> Object:
    """With the names of the Go fields, as messages quote it."""
    return {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}


def validate_replication_controller(value: Object) -> ErrorList:
    spec = value["spec"]
    found = validate_non_negative(spec, "spec", "minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        found.append(required("spec.selector"))
    found += validate_non_negative(spec, "spec", "replicas")
    if template is None:
        return [*found, required("spec.template")]
    labels = template["metadata"].get("labels") or {}
    if any(labels.get(key) != wanted for key, wanted in selector.items()):
        found.append(_mismatch(template))
    found += validate_template_spec(template, "spec.template")
    return found + _validate_restart(template)


def validate_pod_template(value: Object) -> ErrorList:
    return validate_template_spec(value["template"], "template")


def validate_job(value: Object) -> ErrorList:
    spec, meta = value["spec"], value["metadata"]
    found: ErrorList = []
    if not spec.get("manualSelector"):
        exact = (spec.get("selector") or {}).get("matchLabels") or {}
        own = {"batch.kubernetes.io/controller-uid": meta.get("uid", "")}
        legacy = {"controller-uid": meta.get("uid", "")}
        if exact not in (own, legacy):
            why = "`selector` not auto-generated"
            found.append(invalid_value("spec.selector", spec.get("selector"), why))
    found += _validate_job_spec(spec, "spec")
    if not _selects(spec.get("selector"), spec["template"]):
        found.append(_mismatch(spec["template"]))
    return found


def validate_cron_job(value: Object) -> ErrorList:
    spec = value["spec"]
    found: ErrorList = []
    if not spec.get("schedule"):
        found.append(required("spec.schedule"))
    found += one_of(
        "spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace")
    )
    found += _validate_job_spec(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return found + validate_non_negative(spec, "spec", *limits)


def _validate_job_spec(spec: Mapping[str, Any], field: str) -> ErrorList:
    counts = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    found = validate_non_negative(spec, field, *counts, "ttlSecondsAfterFinished")
    mode = spec.get("completionMode", "NonIndexed")
    found += one_of(f"{field}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and "completions" not in spec:
        why = "when completion mode is Indexed"
        found.append(required(f"{field}.completions", why))
    template = spec["template"]
    found += validate_template_spec(template, f"{field}.template")
    policy = template["spec"].get("restartPolicy", "")
    place = f"{field}.template.spec.restartPolicy"
    if policy == "Always":
        found.append(required(place, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        found.append(unsupported(place, policy, ("OnFailure", "Never")))
    return found


# --- changes -----------------------------------------------------------------------------------


def validate_selector_update(new: Object, old: Object) -> ErrorList:
    """Of Deployments, ReplicaSets and DaemonSets."""
    selector = new["spec"].get("selector")
    if selector == old["spec"].get("selector"):
        return []
    return [invalid_value("spec.selector", selector, IMMUTABLE)]


def validate_stateful_set_update(new: Object, old: Object) -> ErrorList:
    before = {key: part for key, part in old["spec"].items() if key not in _STATEFUL_SET_MAY_CHANGE}
    after = {key: part for key, part in new["spec"].items() if key not in _STATEFUL_SET_MAY_CHANGE}
    if before == after:
        return []
    why = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [forbidden_field("spec", why)]


def validate_job_update(new: Object, old: Object) -> ErrorList:
    spec, before = new["spec"], old["spec"]
    found: ErrorList = []
    fields = ["completions", "selector", "completionMode", "podFailurePolicy"]
    if spec.get("completionMode") == "Indexed":
        fields.remove("completions")  # an indexed job may grow, together with its parallelism
    for field in fields:
        if spec.get(field) != before.get(field):
            found.append(invalid_value(f"spec.{field}", spec.get(field), IMMUTABLE))
    template, known = spec["template"], before["template"]
    if template != known and not _is_suspended(old):
        found.append(invalid_value("spec.template", template, IMMUTABLE))
    elif _fixed_while_suspended(template["spec"]) != _fixed_while_suspended(known["spec"]):
        found.append(invalid_value("spec.template.spec", template["spec"], IMMUTABLE))
    return found


def _is_suspended(job: Object) -> bool:
    """Whether the job controller has noticed that the job is suspended, and no pod is left."""
    status = job.get("status") or {}
    is_noticed = any(
        one.get("type") == "Suspended" and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )
    return bool(job["spec"].get("suspend")) and is_noticed and not status.get("active")


def _fixed_while_suspended(spec: Mapping[str, Any]) -> Object:
    """A pod spec without where the pods may run and how much they request."""
    loose = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
    found = {key: part for key, part in spec.items() if key not in loose}
    for part in ("containers", "initContainers"):
        found[part] = [{**one, "resources": {}} for one in spec.get(part) or ()]
    return found


# --- parts -------------------------------------------------------------------------------------


def validate_non_negative(holder: Mapping[str, Any], field: str, *names: str) -> ErrorList:
    return [
        invalid_value(f"{field}.{name}", holder[name], NEGATIVE)
        for name in names
        if holder.get(name, 0) < 0
    ]


def validate_int_or_percent(share: Any, field: str) -> ErrorList:
    if isinstance(share, str):
        return [] if _PERCENT.fullmatch(share) else [invalid_value(field, share, _NO_PERCENT)]
    return [] if share >= 0 else [invalid_value(field, share, NEGATIVE)]


def _validate_selected_template(spec: Mapping[str, Any], kind: str) -> ErrorList:
    selector, template = spec.get("selector"), spec["template"]
    found: ErrorList = []
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += validate_label_selector(selector, "spec.selector")
        if not _tests(selector):
            why = f"empty selector is invalid for {kind}"
            found.append(invalid_value("spec.selector", selector, why))
    if not found or selector is None or not _tests(selector):
        if not _selects(selector, template):
            found.append(_mismatch(template))
        found += validate_template_spec(template, "spec.template")
    else:
        why = "" if kind == "statefulset" else "invalid label selector"
        found.append(invalid_value("spec.selector", selector, why))
    return found + _validate_restart(template)


def _validate_restart(template: Mapping[str, Any]) -> ErrorList:
    policy = template["spec"].get("restartPolicy")
    if policy == "Always":
        return []
    return [unsupported("spec.template.spec.restartPolicy", policy, ("Always",))]


def _validate_strategy(strategy: Mapping[str, Any], field: str) -> ErrorList:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "Recreate":
        if rolling is None:
            return []
        why = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden_field(f"{field}.rollingUpdate", why)]
    if strategy["type"] != "RollingUpdate":
        shown = {"Type": strategy["type"], "RollingUpdate": rolling}
        return [unsupported(field, shown, ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    fewer, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    found = validate_int_or_percent(fewer, f"{field}.rollingUpdate.maxUnavailable")
    found += validate_int_or_percent(more, f"{field}.rollingUpdate.maxSurge")
    if fewer in (0, "0%") and more in (0, "0%"):
        why = "may not be 0 when `maxSurge` is 0"
        found.append(invalid_value(f"{field}.rollingUpdate.maxUnavailable", fewer, why))
    return found


def _tests(selector: Mapping[str, Any]) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _selects(selector: Mapping[str, Any] | None, template: Mapping[str, Any]) -> bool:
    """Whether the selector matches the template; an empty selector does."""
    if selector is not None and not _tests(selector):
        return True
    labels = template["metadata"].get("labels") or {}
    try:
        found = None if selector is None else convert(selector, LabelSelector)
        return Selector.from_label_selector(found).matches(labels)
    except SelectorError:  # reported elsewhere
        return not validate_labels(labels, "")


def _mismatch(template: Mapping[str, Any]) -> Any:
    labels = template["metadata"].get("labels") or None
    return invalid_value("spec.template.metadata.labels", labels, _MISMATCH)
