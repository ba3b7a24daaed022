"""The pod status that a kubelet writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mooring.api import core
from mooring.cluster.apiserver.store import Object

_OURS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_SCHEDULED: Final = "PodScheduled"

State = dict[str, Any]


class ContainerInfo(msgspec.Struct, frozen=True, gc=False):
    """The fields of a container that its status repeats."""

    name: str
    image: str


class PodContainers(msgspec.Struct, frozen=True, gc=False):
    """The containers of a pod; `init` without the restartable ones, which are `sidecars`."""

    main: tuple[ContainerInfo, ...]
    init: tuple[ContainerInfo, ...] = ()
    sidecars: tuple[ContainerInfo, ...] = ()

    @classmethod
    def of(cls, pod: core.Pod) -> PodContainers:
        before = pod.spec.init_containers
        return cls(
            tuple(ContainerInfo(one.name, one.image) for one in pod.spec.containers),
            tuple(ContainerInfo(one.name, one.image) for one in before if not one.is_restartable),
            tuple(ContainerInfo(one.name, one.image) for one in before if one.is_restartable),
        )


class ObservedPod(msgspec.Struct):
    """The data from which a pod's status is made."""

    containers: PodContainers
    phase: str
    state: State  # of the containers
    last_state: State = msgspec.field(default_factory=dict)
    restarts: int = 0
    started: str = ""  # when the kubelet saw the pod
    host_address: str = ""
    address: str = ""


def waiting(reason: str, message: str = "") -> State:
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}


def running(since: str) -> State:
    return {"running": {"startedAt": since}}


def terminated(code: int, since: str, until: str, container_id: str) -> State:
    return {
        "terminated": {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": since,
            "finishedAt": until,
            "containerID": container_id,
        }
    }


def container_id(uid: str, restarts: int) -> str:
    return f"mooring://{uid}-{restarts}"


def write(pod: Object, seen: ObservedPod, now: str) -> None:
    """Update the status of a stored pod to the observed state."""
    status: dict[str, Any] = pod.setdefault("status", {})
    generation = pod["metadata"].get("generation")
    status["phase"] = seen.phase
    if generation is not None:
        status["observedGeneration"] = generation
    status["startTime"] = seen.started
    if seen.host_address:
        status["hostIP"] = seen.host_address
        status["hostIPs"] = [{"ip": seen.host_address}]
    if seen.address:
        status["podIP"] = seen.address
        status["podIPs"] = [{"ip": seen.address}]
    uid = pod["metadata"]["uid"]
    resources = {one["name"]: one["resources"] for one in _with_resources(pod["spec"])}
    status["containerStatuses"] = [
        _container(container, seen, uid, resources.get(container.name))
        for container in seen.containers.main
    ]
    if seen.containers.init or seen.containers.sidecars:
        has_begun = "waiting" not in seen.state or seen.restarts > 0
        status["initContainerStatuses"] = [
            *(
                _init_container(container, seen, uid, has_begun)
                for container in seen.containers.init
            ),
            *(
                _container(container, seen, uid, resources.get(container.name))
                for container in seen.containers.sidecars
            ),
        ]
    if pod["spec"].get("ephemeralContainers"):
        _write_ephemeral(status, pod["spec"]["ephemeralContainers"], seen, uid, now)
    status["conditions"] = _conditions(status.get("conditions") or [], seen, generation, now)


def write_rejection(pod: Object, reason: str, message: str, now: str) -> None:
    """The pod is not admitted; it has never run."""
    status: dict[str, Any] = pod.setdefault("status", {})
    dropped = (*_OURS, _SCHEDULED)
    kept = [one for one in status.get("conditions") or [] if one["type"] not in dropped]
    status.pop("conditions", None)
    if kept:
        status["conditions"] = kept
    status |= {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": now,
    }


def _with_resources(spec: Object) -> Iterator[Object]:
    """The containers that have requests or limits; others run without any."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field, ()):
            if container.get("resources"):
                yield container


def _write_ephemeral(
    status: Object, containers: list[Object], seen: ObservedPod, uid: str, now: str
) -> None:
    """Ephemeral containers run from when they were added to the end of the pod."""
    known = {one["name"]: one for one in status.get("ephemeralContainerStatuses") or ()}
    found = []
    for container in containers:
        name, image = container["name"], container.get("image", "")
        before = known.get(name, {})
        state = before.get("state") or running(now)
        if seen.phase in ("Succeeded", "Failed") and "running" in state:
            since = state["running"]["startedAt"]
            state = terminated(0, since, now, container_id(uid, 0))
        found.append(
            {
                "name": name,
                "image": image,
                "imageID": f"mooring://{image}",
                "containerID": f"mooring://{uid}-{name}",
                "ready": False,
                "restartCount": 0,
                "state": state,
                "lastState": {},
            }
        )
    status["ephemeralContainerStatuses"] = found


def write_deadline(pod: Object) -> None:
    """The pod has been active for longer than it may."""
    pod["status"] |= {
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
    }


def _container(
    container: ContainerInfo, seen: ObservedPod, uid: str, resources: Object | None
) -> dict[str, Any]:
    is_running = "running" in seen.state
    found: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": is_running,
        "started": is_running,
        "restartCount": seen.restarts,
        "state": seen.state,
        "lastState": seen.last_state,
    }
    if "waiting" not in seen.state:
        found["imageID"] = f"mooring://{container.image}"
        found["containerID"] = container_id(uid, seen.restarts)
    if resources is not None:
        found["resources"] = resources
        if "requests" in resources:
            found["allocatedResources"] = resources["requests"]
    return found


def _init_container(
    container: ContainerInfo, seen: ObservedPod, uid: str, is_done: bool
) -> dict[str, Any]:
    state = waiting("PodInitializing")
    if is_done:
        state = terminated(0, seen.started, seen.started, container_id(uid, 0))
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"mooring://{container.image}" if is_done else "",
        "ready": is_done,
        "started": False,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _conditions(
    known: list[dict[str, Any]], seen: ObservedPod, generation: int | None, now: str
) -> list[dict[str, Any]]:
    """The kubelet's conditions as they are now, then all others unchanged."""
    before = {one["type"]: one for one in known}
    found = []
    for kind, status, reason, message in _kubelet_conditions(seen):
        old = before.pop(kind, None)
        changed = now
        if old is not None and old.get("status") == status:
            changed = old.get("lastTransitionTime") or now
        condition: dict[str, Any] = {
            "type": kind,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": changed,
        }
        if generation is not None:
            condition["observedGeneration"] = generation
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        found.append(condition)
    return found + list(before.values())


def _kubelet_conditions(seen: ObservedPod) -> list[tuple[str, str, str, str]]:
    """Type, status, reason and message of the conditions a kubelet keeps."""
    containers = seen.containers
    is_over = seen.phase in ("Succeeded", "Failed")
    has_sandbox = not is_over and bool(seen.address)
    is_initialized = seen.phase != "Pending" or not (containers.init or containers.sidecars)
    initialized = ("Initialized", "True", "PodCompleted" if seen.phase == "Succeeded" else "", "")
    if not is_initialized:
        names = " ".join(container.name for container in (*containers.init, *containers.sidecars))
        message = f"containers with incomplete status: [{names}]"
        initialized = ("Initialized", "False", "ContainersNotInitialized", message)
    if is_over:
        ready = ("False", "PodCompleted" if seen.phase == "Succeeded" else "PodFailed", "")
    elif "running" in seen.state:
        ready = ("True", "", "")
    else:
        names = " ".join(container.name for container in (*containers.sidecars, *containers.main))
        ready = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    return [
        ("PodReadyToStartContainers", "True" if has_sandbox else "False", "", ""),
        initialized,
        ("Ready", *ready),
        ("ContainersReady", *ready),
        (_SCHEDULED, "True", "", ""),
    ]
