"""Objects of every kind, in the states that tables show; most of them are in a YAML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.controlplane.admin import AdminApi, Object

TIME = "2026-01-02T03:04:05Z"
_FILE: Any = yaml.load(Path(__file__).with_suffix(".yaml").read_text(), yaml.CSafeLoader)
TEMPLATE: Object = _FILE["named"]["template"]
SELECTOR: Object = _FILE["named"]["selector"]


def an_object(kind: str, name: str, api_version: str = "v1", **parts: Any) -> Object:
    """An object; `status` is for another request."""
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def running(name: str, **parts: Any) -> Object:
    """The status of a container that runs."""
    state = {"running": {"startedAt": TIME}}
    return _container(name, state, ready=True, started=True, **parts)


def waiting(name: str, reason: str) -> Object:
    return _container(name, {"waiting": {"reason": reason}})


def ended(name: str, code: int, reason: str = "", signal: int = 0, **parts: Any) -> Object:
    state = {"exitCode": code, "finishedAt": TIME, "startedAt": TIME, "reason": reason}
    return _container(name, {"terminated": {**state, "signal": signal}}, **parts)


def _container(name: str, state: Object, **parts: Any) -> Object:
    known = {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return {**known, "state": state, **parts}


LAST_END: Object = {"terminated": {"exitCode": 1, "finishedAt": TIME, "startedAt": TIME}}


def pod(name: str, status: Object, *, finalizers: Sequence[str] = (), **spec: Any) -> Object:
    containers = [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]
    made = an_object("Pod", name, spec={"containers": containers, **spec}, status=status)
    if finalizers:
        made["metadata"]["finalizers"] = [*finalizers]
    return made


def _conditions(**states: str) -> list[Object]:
    return [{"type": kind, "status": status} for kind, status in states.items()]


INIT = [{"name": "i", "image": "i:1"}, {"name": "j", "image": "j:1"}]
SIDECAR = [{"name": "s", "image": "s:1", "restartPolicy": "Always"}]
READY = _conditions(Initialized="True", Ready="True")

PODS: list[Object] = [
    pod("pending", {}),
    pod("bound", {"phase": "Pending", "podIPs": [{"ip": "10.0.0.9"}]}, nodeName="n1"),
    pod("leaving", {"phase": "Running"}, nodeName="n1"),
    pod("left", {"phase": "Succeeded"}, nodeName="n1", finalizers=["example.com/keep"]),
    pod("nominated", {"nominatedNodeName": "n2"}),
    pod("gated", {}, schedulingGates=[{"name": "example.com/wait"}]),
    pod("creating", {"containerStatuses": [waiting(name, "ContainerCreating") for name in "ab"]}),
    pod("crashing", {"containerStatuses": [running("a"), waiting("b", "CrashLoopBackOff")]}),
    pod(
        "running",
        {
            "phase": "Running",
            "conditions": READY,
            "containerStatuses": [
                running("a", restartCount=3, lastState=LAST_END),
                running("b", restartCount=1),
            ],
        },
    ),
    pod(
        "half-done",
        {
            "phase": "Running",
            "conditions": READY,
            "containerStatuses": [ended("a", 0, "Completed"), running("b")],
        },
    ),
    pod(
        "not-ready",
        {"phase": "Running", "containerStatuses": [ended("a", 0, "Completed"), running("b")]},
    ),
    pod("failed-half", {"containerStatuses": [ended("a", 0, "Completed"), ended("b", 1, "Error")]}),
    pod("completed", {"phase": "Succeeded", "containerStatuses": [ended("a", 0, "Completed")]}),
    pod("signalled", {"phase": "Failed", "containerStatuses": [ended("a", 137, signal=9)]}),
    pod("exited", {"phase": "Failed", "containerStatuses": [ended("a", 3)]}),
    pod("rejected", {"phase": "Failed", "reason": "OutOfcpu", "message": "no"}),
    pod(
        "init-0", {"initContainerStatuses": [waiting("i", "PodInitializing")]}, initContainers=INIT
    ),
    pod(
        "init-1",
        {
            "initContainerStatuses": [
                ended("i", 0, "Completed", restartCount=2, lastState=LAST_END),
                running("j"),
            ]
        },
        initContainers=INIT,
    ),
    pod(
        "init-crash",
        {"initContainerStatuses": [waiting("i", "CrashLoopBackOff")]},
        initContainers=INIT,
    ),
    pod("init-error", {"initContainerStatuses": [ended("i", 2, "Error")]}, initContainers=INIT),
    pod("init-signal", {"initContainerStatuses": [ended("i", 2, signal=9)]}, initContainers=INIT),
    pod("init-code", {"initContainerStatuses": [ended("i", 2)]}, initContainers=INIT),
    pod(
        "sidecar",
        {
            "phase": "Running",
            "conditions": READY,
            "initContainerStatuses": [running("s", restartCount=4, lastState=LAST_END)],
            "containerStatuses": [running("a"), running("b")],
        },
        initContainers=SIDECAR,
    ),
    pod(
        "reached",
        {"conditions": _conditions(**{"example.com/up": "True", "example.com/on": "False"})},
        readinessGates=[{"conditionType": "example.com/up"}, {"conditionType": "example.com/on"}],
    ),
]


def _objects(part: str) -> list[Object]:
    """The objects of the file, each under its apiVersion, kind and name."""
    found = []
    for key, fields in _FILE[part].items():
        api_version, kind, name = key.split()
        found.append(an_object(kind, name, api_version, **fields))
    return found


_NAMESPACED = [*PODS, *_objects("namespaced")]
CLUSTER_WIDE = _objects("clusterWide")


def namespaced(namespace: str) -> list[Object]:
    """The namespaced objects; events are about an object in the same namespace."""
    copies: list[Object] = json.loads(json.dumps(_NAMESPACED))
    for value in copies:
        for field in ("involvedObject", "regarding"):
            if field in value:
                value[field]["namespace"] = namespace
    return copies


@contextmanager
def created(admin: AdminApi, namespace: str) -> Iterator[None]:
    """All objects on a server; cluster-scoped ones are deleted afterwards."""
    admin.create(an_object("Namespace", namespace))
    for value in namespaced(namespace):
        _create(admin, value, namespace)
    for value in CLUSTER_WIDE:
        _create(admin, json.loads(json.dumps(value)), "")
    for name in ("leaving", "left"):
        admin.delete("Pod", name, namespace, grace=3600)
    yield
    admin.patch("Pod", "left", {"metadata": {"finalizers": None}}, namespace)
    for value in CLUSTER_WIDE:
        admin.delete(f"{value['apiVersion']}/{value['kind']}", value["metadata"]["name"])


def _create(admin: AdminApi, value: Object, namespace: str) -> None:
    status = value.pop("status", None)
    admin.create(value, namespace)
    if status:
        kind, name = f"{value['apiVersion']}/{value['kind']}", value["metadata"]["name"]
        admin.patch(kind, name, {"status": status}, namespace, subresource="status")
