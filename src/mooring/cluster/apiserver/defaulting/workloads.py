"""Defaults of workloads: Deployments, Jobs and the like."""

from __future__ import annotations

from typing import Any, Final

from mooring.cluster.apiserver.defaulting.pods import fill, fill_empty, set_defaults_template
from mooring.cluster.apiserver.quantities import spell_resources
from mooring.cluster.apiserver.store import Object

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def set_defaults_deployment(value: Object) -> None:
    spec = _spec_with_template(value)
    fill(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _set_defaults_rolling(spec["strategy"], maxUnavailable="25%", maxSurge="25%")


def _set_defaults_rolling(strategy: Object, **usual: Any) -> None:
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), **usual)


def set_defaults_replica_set(value: Object) -> None:
    _spec_with_template(value).setdefault("replicas", 1)


def set_defaults_replication_controller(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if "template" in spec:
        set_defaults_template(spec)
        if labels := spec["template"]["metadata"].get("labels"):
            spec["selector"] = spec.get("selector") or dict(labels)
            if not value["metadata"].get("labels"):
                value["metadata"]["labels"] = dict(labels)


def set_defaults_stateful_set(value: Object) -> None:
    spec = _spec_with_template(value)
    fill(spec, replicas=1, serviceName="", revisionHistoryLimit=10)
    fill_empty(spec, podManagementPolicy="OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    fill_empty(policy, whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim", metadata={})
        set_defaults_persistent_volume_claim(claim)
        claim["status"] = {"phase": "Pending"}


def set_defaults_daemon_set(value: Object) -> None:
    spec = _spec_with_template(value)
    fill(spec, updateStrategy={}, revisionHistoryLimit=10)
    _set_defaults_rolling(spec["updateStrategy"], maxUnavailable=1, maxSurge=0)
    value["metadata"].setdefault("annotations", {}).setdefault(TEMPLATE_GENERATION, "1")


def set_defaults_job(value: Object) -> None:
    spec = value.setdefault("spec", {})
    _set_defaults_job_spec(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    fill(
        spec,
        parallelism=1,
        backoffLimit=6 if "backoffLimitPerIndex" not in spec else 2**31 - 1,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
    )
    if not spec.setdefault("manualSelector", False) and "uid" in value["metadata"]:
        _select_own_pods(value["metadata"], spec)
    labels = spec["template"]["metadata"].get("labels")
    if labels and not value["metadata"].get("labels"):
        value["metadata"]["labels"] = dict(labels)


def _select_own_pods(meta: Object, spec: Object) -> None:
    """A job selects its pods by its uid."""
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in ("batch.kubernetes.io/job-name", "job-name"):
        labels.setdefault(key, meta.get("name", ""))
    for key in ("batch.kubernetes.io/controller-uid", "controller-uid"):
        labels.setdefault(key, meta["uid"])
    exact = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    exact.setdefault("batch.kubernetes.io/controller-uid", meta["uid"])


def _set_defaults_job_spec(spec: Object) -> None:
    set_defaults_template(spec)
    for rule in spec.get("podFailurePolicy", {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            fill_empty(pattern, status="True")


def set_defaults_cron_job(value: Object) -> None:
    spec = value.setdefault("spec", {})
    fill_empty(spec, concurrencyPolicy="Allow")
    fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _set_defaults_job_spec(job.setdefault("spec", {}))


def _spec_with_template(value: Object) -> Object:
    spec: Object = value.setdefault("spec", {})
    set_defaults_template(spec)
    return spec


def set_defaults_persistent_volume_claim(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spell_resources(spec.setdefault("resources", {}), "requests", "limits")
    for field, other in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        if field in spec:
            spec.setdefault(other, dict(spec[field]))
