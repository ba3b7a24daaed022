"""The columns of workloads and disruption budgets."""

from __future__ import annotations

from typing import Final

from mooring.api.meta import parse_time
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    NONE,
    UNSET,
    Cells,
    containers_and_images,
    human_duration,
    is_true,
    labels_text,
    layout,
    part,
    selector_text,
    since,
)

# The first of these conditions that holds is a job's status; deletion comes between the two lines.
_JOB_ENDS: Final = ("Complete", "Failed")
_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _workload(value: Object, now: float) -> Cells:
    """Cells that Deployments, StatefulSets and the like have in common."""
    spec, status = part(value, "spec"), part(value, "status")
    return {
        "Ready": f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        "Selector": selector_text(spec.get("selector")),
        **containers_and_images(part(spec, "template")),
    }


def _replicas(value: Object, now: float) -> Cells:
    """A ReplicaSet or a ReplicationController."""
    spec = part(value, "spec")
    if value["kind"] == "ReplicationController":
        selector = labels_text(spec.get("selector"))
    else:
        selector = selector_text(spec.get("selector")) or NONE
    return {"Selector": selector, **containers_and_images(part(spec, "template"))}


def _daemonset(value: Object, now: float) -> Cells:
    template = part(value, "spec", "template")
    return {
        "Node Selector": labels_text(part(template, "spec").get("nodeSelector")),
        "Selector": selector_text(part(value, "spec").get("selector")) or NONE,
        **containers_and_images(template),
    }


def _job(value: Object, now: float) -> Cells:
    spec, status = part(value, "spec"), part(value, "status")
    completions = f"{status.get('succeeded', 0)}/{spec.get('completions', 1)}"
    if "completions" not in spec and spec.get("parallelism", 0) > 1:
        completions += f" of {spec['parallelism']}"
    took = ""
    if started := status.get("startTime"):
        ended = status.get("completionTime")
        took = human_duration((parse_time(ended) if ended else now) - parse_time(started))
    return {
        "Status": _job_state(value, status),
        "Completions": completions,
        "Duration": took,
        "Selector": selector_text(spec.get("selector")) or NONE,
        **containers_and_images(part(spec, "template")),
    }


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
    return {
        "Suspend": {True: "True", False: "False"}.get(spec.get("suspend"), UNSET),
        "Active": len(status.get("active") or ()),
        "Last Schedule": since(last, now) if last else NONE,
        "Selector": selector_text(job.get("selector")) or NONE,
        **containers_and_images(part(job, "template")),
    }


def _template(value: Object, now: float) -> Cells:
    template = part(value, "template")
    labels = labels_text(part(template, "metadata").get("labels"))
    return {**containers_and_images(template), "Pod Labels": labels}


def _revision(value: Object, now: float) -> Cells:
    owner = NONE
    for reference in value["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group, _, _ = reference["apiVersion"].rpartition("/")
            kind = f"{reference['kind']}.{group}" if group else reference["kind"]
            owner = f"{kind.lower()}/{reference['name']}"
    return {"Controller": owner}


def _budget(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    return {
        "Min Available": str(spec.get("minAvailable", "N/A")),
        "Max Unavailable": str(spec.get("maxUnavailable", "N/A")),
    }


_REPLICA_SET: Final = layout(
    "Name, Desired:integer=spec.replicas, Current:integer=status.replicas, "
    "Ready:integer=status.readyReplicas, Age, +Containers, +Images, +Selector",
    _replicas,
)
COLUMNS: Final = {
    "podtemplates": layout("Name, Containers, Images, Pod Labels", _template),
    "replicationcontrollers": _REPLICA_SET,
    "controllerrevisions.apps": layout("Name, Controller, Revision=revision|0, Age", _revision),
    "daemonsets.apps": layout(
        "Name, Desired:integer=status.desiredNumberScheduled, "
        "Current:integer=status.currentNumberScheduled, Ready:integer=status.numberReady, "
        "Up-to-date:integer=status.updatedNumberScheduled, "
        "Available:integer=status.numberAvailable, Node Selector, Age, +Containers, +Images, "
        "+Selector",
        _daemonset,
    ),
    "deployments.apps": layout(
        "Name, Ready, Up-to-date=status.updatedReplicas|0, Available=status.availableReplicas|0, "
        "Age, +Containers, +Images, +Selector",
        _workload,
    ),
    "replicasets.apps": _REPLICA_SET,
    "statefulsets.apps": layout("Name, Ready, Age, +Containers, +Images", _workload),
    "jobs.batch": layout(
        "Name, Status, Completions, Duration, Age, +Containers, +Images, +Selector", _job
    ),
    "cronjobs.batch": layout(
        "Name, Schedule=spec.schedule, Timezone=spec.timeZone|<none>, Suspend:boolean, "
        "Active:integer, Last Schedule, Age, +Containers, +Images, +Selector",
        _cronjob,
    ),
    "poddisruptionbudgets.policy": layout(
        "Name, Min Available, Max Unavailable, "
        "Allowed Disruptions:integer=status.disruptionsAllowed, Age",
        _budget,
    ),
}
"""The columns of these kinds, by the key of their resource."""
