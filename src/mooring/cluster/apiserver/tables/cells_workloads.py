"""The columns of workloads and disruption budgets."""

from __future__ import annotations

from typing import Final

from mooring.api.meta import parse_time
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    NONE,
    UNSET,
    Cells,
    age,
    containers_and_images,
    human_duration,
    is_true,
    labels_text,
    layout,
    name_of,
    part,
    selector_text,
    since,
)

# Which of a job's conditions is told, if several hold. Its deletion comes after the first two.
_JOB_ENDS: Final = {"Complete": "Complete", "Failed": "Failed"}
_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _deployment(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    return [
        name_of(value),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(value, now),
        *containers_and_images(part(spec, "template", "spec")),
        selector_text(spec.get("selector")),
    ]


def _replicas(value: Object, now: float) -> Cells:
    """A ReplicaSet or a ReplicationController."""
    spec, status = part(value, "spec"), part(value, "status")
    if value["kind"] == "ReplicationController":
        selector = labels_text(spec.get("selector"))
    else:
        selector = selector_text(spec.get("selector")) or NONE
    return [
        name_of(value),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(value, now),
        *containers_and_images(part(spec, "template", "spec")),
        selector,
    ]


def _statefulset(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    return [
        name_of(value),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        age(value, now),
        *containers_and_images(part(spec, "template", "spec")),
    ]


def _daemonset(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    template = part(spec, "template", "spec")
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(value),
        *(status.get(count, 0) for count in counts),
        labels_text(template.get("nodeSelector")),
        age(value, now),
        *containers_and_images(template),
        selector_text(spec.get("selector")) or NONE,
    ]


def _job(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    succeeded = status.get("succeeded", 0)
    if "completions" in spec:
        completions = f"{succeeded}/{spec['completions']}"
    elif spec.get("parallelism", 0) > 1:
        completions = f"{succeeded}/1 of {spec['parallelism']}"
    else:
        completions = f"{succeeded}/1"
    took = ""
    if started := status.get("startTime"):
        ended = status.get("completionTime")
        took = human_duration((parse_time(ended) if ended else now) - parse_time(started))
    return [
        name_of(value),
        _job_state(value, status),
        completions,
        took,
        age(value, now),
        *containers_and_images(part(spec, "template", "spec")),
        selector_text(spec.get("selector")) or NONE,
    ]


def _job_state(value: Object, status: Object) -> str:
    conditions = status.get("conditions")
    for kind in _JOB_ENDS:
        if is_true(conditions, kind):
            return kind
    if "deletionTimestamp" in value["metadata"]:
        return "Terminating"
    for kind in _JOB_STATES:
        if is_true(conditions, kind):
            return kind
    return "Running"


def _cronjob(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    last = status.get("lastScheduleTime")
    job = part(spec, "jobTemplate", "spec")
    return [
        name_of(value),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        {True: "True", False: "False"}.get(spec.get("suspend"), UNSET),
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(value, now),
        *containers_and_images(part(job, "template", "spec")),
        selector_text(job.get("selector")) or NONE,
    ]


def _revision(value: Object, now: float) -> Cells:
    owner = NONE
    for reference in value["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group, _, _ = reference["apiVersion"].rpartition("/")
            kind = f"{reference['kind']}.{group}" if group else reference["kind"]
            owner = f"{kind.lower()}/{reference['name']}"
    return [name_of(value), owner, value.get("revision", 0), age(value, now)]


def _budget(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    return [
        name_of(value),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        part(value, "status").get("disruptionsAllowed", 0),
        age(value, now),
    ]


REPLICA_SET: Final = layout(
    _replicas,
    "Name, Desired:integer, Current:integer, Ready:integer, Age, +Containers, +Images, +Selector",
)
DEPLOYMENT: Final = layout(
    _deployment,
    "Name, Ready, Up-to-date, Available, Age, +Containers, +Images, +Selector",
)
STATEFUL_SET: Final = layout(_statefulset, "Name, Ready, Age, +Containers, +Images")
DAEMON_SET: Final = layout(
    _daemonset,
    "Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, "
    "Available:integer, Node Selector, Age, +Containers, +Images, +Selector",
)
JOB: Final = layout(
    _job,
    "Name, Status, Completions, Duration, Age, +Containers, +Images, +Selector",
)
CRON_JOB: Final = layout(
    _cronjob,
    "Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, "
    "+Containers, +Images, +Selector",
)
CONTROLLER_REVISION: Final = layout(_revision, "Name, Controller, Revision, Age")
POD_DISRUPTION_BUDGET: Final = layout(
    _budget,
    "Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
)
