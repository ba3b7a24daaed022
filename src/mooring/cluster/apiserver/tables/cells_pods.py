"""The columns of pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import NONE, Cells, is_true, layout, part, since

_OVER: Final = ("Succeeded", "Failed")
_ROW_CONDITIONS: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Summary(NamedTuple):
    status: str
    ready: int
    restarts: int
    last_restart: str  # a time; empty if none is known


def pod_row_conditions(pod: Object) -> list[Object]:
    """The conditions of a row: whether the pod has finished."""
    phase = part(pod, "status").get("phase", "")
    if phase not in _ROW_CONDITIONS:
        return []
    message = _ROW_CONDITIONS[phase]
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _pod(pod: Object, now: float) -> Cells:
    spec, status = part(pod, "spec"), part(pod, "status")
    summary = _summary(pod)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{summary.restarts} ({since(summary.last_restart, now)} ago)"
    sidecars = sum(map(_restarts_always, spec.get("initContainers") or ()))
    total = len(spec.get("containers") or ()) + sidecars
    addresses = status.get("podIPs") or [{}]
    return {
        "Ready": f"{summary.ready}/{total}",
        "Status": summary.status,
        "Restarts": restarts,
        "IP": addresses[0].get("ip") or NONE,
        "Node": spec.get("nodeName") or NONE,
        "Nominated Node": status.get("nominatedNodeName") or NONE,
        "Readiness Gates": _readiness_gates(spec, status),
    }


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    conditions = status.get("conditions")
    passed = sum(is_true(conditions, gate["conditionType"]) for gate in gates)
    return f"{passed}/{len(gates)}"


# --- the status -----------------------------------------------------------------------------------


def _summary(pod: Object) -> _Summary:
    status = part(pod, "status")
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    beginning, summary = _initialisation(pod, reason)
    if not beginning or is_true(status.get("conditions"), "Initialized"):
        summary = _running(pod, reason, summary.ready)
    text = summary.status
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            text = "Unknown"
        elif phase not in _OVER:
            text = "Terminating"
    return summary._replace(status=text)


def _initialisation(pod: Object, reason: str) -> tuple[bool, _Summary]:
    """Whether init containers are still running, and the reason to print."""
    spec, status = part(pod, "spec"), part(pod, "status")
    declared = {one["name"]: one for one in spec.get("initContainers") or ()}
    ready = restarts = 0
    last = ""
    for place, container in enumerate(status.get("initContainerStatuses") or ()):
        restarts += container.get("restartCount", 0)
        last = max(last, _last_end(container))
        ended = part(container, "state").get("terminated")
        waiting = part(container, "state", "waiting").get("reason", "")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if _restarts_always(declared.get(container["name"], {})) and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if ended is not None:
            said = f"Init:{_end_reason(ended)}"
        elif waiting and waiting != "PodInitializing":
            said = f"Init:{waiting}"
        else:
            said = f"Init:{place}/{len(declared)}"
        return True, _Summary(said, ready, restarts, last)
    return False, _Summary(reason, ready, restarts, last)


def _running(pod: Object, reason: str, ready: int) -> _Summary:
    """The reason of the containers; of earlier restarts only those of sidecars count."""
    spec, status = part(pod, "spec"), part(pod, "status")
    sidecars = {one["name"] for one in spec.get("initContainers") or () if _restarts_always(one)}
    beginning = status.get("initContainerStatuses") or ()
    counted = [container for container in beginning if container["name"] in sidecars]
    containers = status.get("containerStatuses") or []
    runs, failure = False, ""
    for container in reversed(containers):
        state = part(container, "state")
        ended = state.get("terminated")
        if waiting := part(state, "waiting").get("reason"):
            reason = waiting
        elif ended is not None:
            reason = _end_reason(ended)
            if ended.get("exitCode", 0) != 0:
                failure = reason
        elif container.get("ready") and "running" in state:
            runs = True
            ready += 1
    if reason == "Completed":
        if runs and is_true(status.get("conditions"), "Ready"):
            reason = "Running"
        elif failure:
            reason = failure
        elif runs:
            reason = "NotReady"
    counted += containers
    restarts = sum(container.get("restartCount", 0) for container in counted)
    return _Summary(reason, ready, restarts, max(map(_last_end, counted), default=""))


def _end_reason(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _last_end(container: Object) -> str:
    return str(part(container, "lastState", "terminated").get("finishedAt") or "")


def _restarts_always(container: Object) -> bool:
    return container.get("restartPolicy") == "Always"


COLUMNS: Final = {
    "pods": layout(
        "Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates", _pod
    )
}
"""The columns of these kinds, by the key of their resource."""
