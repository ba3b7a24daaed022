"""Objects of every kind, in the states that people see in tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.controlplane.admin import AdminApi, Object

TIME = "2026-01-02T03:04:05Z"
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:2"}],
        "nodeSelector": {"disk": "fast"},
    },
}
JOB_TEMPLATE: Object = {
    "spec": {"containers": [{"name": "run", "image": "run:1"}], "restartPolicy": "Never"}
}
SELECTOR: Object = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "NotIn", "values": ["b", "a"]},
        {"key": "app", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
    ],
}


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
        {
            "phase": "Running",
            "containerStatuses": [ended("a", 0, "Completed"), running("b")],
        },
    ),
    pod(
        "failed-half",
        {"containerStatuses": [ended("a", 0, "Completed"), ended("b", 1, "Error")]},
    ),
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

_REPLICAS = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1}
_WORKLOAD = {"selector": SELECTOR, "template": TEMPLATE}

_NAMESPACED: list[Object] = [
    *PODS,
    an_object("ConfigMap", "settings", data={"a": "1", "b": "2"}, binaryData={"c": "AAA="}),
    an_object("Secret", "keys", type="Opaque", data={"a": "AAA="}),
    an_object("ServiceAccount", "robot"),
    an_object(
        "Service",
        "cluster-ip",
        spec={
            "selector": {"app": "web"},
            "ports": [{"port": 80, "name": "w"}, {"port": 53, "name": "d"}],
        },
    ),
    an_object("Service", "headless", spec={"clusterIP": "None", "externalIPs": ["1.2.3.4"]}),
    an_object("Service", "named", spec={"type": "ExternalName", "externalName": "example.com"}),
    an_object("Service", "node-port", spec={"type": "NodePort", "ports": [{"port": 80}]}),
    an_object(
        "Service",
        "balanced",
        spec={"type": "LoadBalancer", "ports": [{"port": 80}]},
        status={"loadBalancer": {"ingress": [{"ip": "5.6.7.8"}, {"hostname": "lb.example.com"}]}},
    ),
    an_object("Service", "unbalanced", spec={"type": "LoadBalancer", "ports": [{"port": 80}]}),
    an_object(
        "Endpoints",
        "many",
        subsets=[
            {
                "addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 4)],
                "ports": [{"port": 80, "name": "w"}, {"port": 81, "name": "x"}],
            }
        ],
    ),
    an_object("Endpoints", "nowhere"),
    an_object(
        "ReplicationController",
        "old",
        spec={"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE},
        status=_REPLICAS,
    ),
    an_object(
        "ResourceQuota",
        "quota",
        spec={"hard": {"limits.cpu": "4", "pods": "10", "requests.cpu": "2"}},
        status={
            "hard": {"limits.cpu": "4", "pods": "10", "requests.cpu": "2"},
            "used": {"pods": "3", "limits.cpu": "1500m"},
        },
    ),
    an_object("Deployment", "web", "apps/v1", spec={"replicas": 3, **_WORKLOAD}, status=_REPLICAS),
    an_object(
        "ReplicaSet", "web-1", "apps/v1", spec={"replicas": 3, **_WORKLOAD}, status=_REPLICAS
    ),
    an_object("StatefulSet", "db", "apps/v1", spec={"replicas": 3, **_WORKLOAD}, status=_REPLICAS),
    an_object(
        "DaemonSet",
        "agent",
        "apps/v1",
        spec=_WORKLOAD,
        status={
            "desiredNumberScheduled": 5,
            "currentNumberScheduled": 4,
            "numberMisscheduled": 0,
            "numberReady": 3,
            "updatedNumberScheduled": 2,
            "numberAvailable": 1,
        },
    ),
    an_object(
        "ControllerRevision",
        "db-1",
        "apps/v1",
        revision=7,
        data={"spec": {}},
        metadata={
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": "db",
                    "uid": "u-1",
                    "controller": True,
                }
            ]
        },
    ),
    an_object("Job", "fresh", "batch/v1", spec={"template": JOB_TEMPLATE}),
    an_object(
        "Job",
        "wide",
        "batch/v1",
        spec={"template": JOB_TEMPLATE, "parallelism": 3, "suspend": True},
        status={"conditions": _conditions(Suspended="True")},
    ),
    an_object(
        "Job",
        "done",
        "batch/v1",
        spec={"template": JOB_TEMPLATE, "completions": 2},
        status={
            "succeeded": 2,
            "startTime": TIME,
            "completionTime": "2026-01-02T03:09:09Z",
            "conditions": _conditions(SuccessCriteriaMet="True", Complete="True"),
        },
    ),
    an_object(
        "CronJob",
        "nightly",
        "batch/v1",
        spec={
            "schedule": "0 3 * * *",
            "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": JOB_TEMPLATE}},
        },
        status={"lastScheduleTime": TIME, "active": [{"kind": "Job", "name": "x"}]},
    ),
    an_object(
        "CronJob",
        "never",
        "batch/v1",
        spec={
            "schedule": "0 3 * * *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": JOB_TEMPLATE}},
        },
    ),
    an_object("Lease", "leader", "coordination.k8s.io/v1", spec={"holderIdentity": "me"}),
    an_object("Lease", "nobody", "coordination.k8s.io/v1"),
    an_object(
        "PodDisruptionBudget",
        "most",
        "policy/v1",
        spec={"minAvailable": "80%", "selector": SELECTOR},
        status={
            "disruptionsAllowed": 2,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        },
    ),
    an_object("PodDisruptionBudget", "one", "policy/v1", spec={"maxUnavailable": 1}),
    an_object("Role", "reader", "rbac.authorization.k8s.io/v1", rules=[]),
    an_object(
        "RoleBinding",
        "readers",
        "rbac.authorization.k8s.io/v1",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        subjects=[
            {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "Group", "name": "staff", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
        ],
    ),
    an_object(
        "PersistentVolumeClaim",
        "waiting",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
        },
    ),
    an_object(
        "PersistentVolumeClaim",
        "bound",
        spec={
            "accessModes": ["ReadWriteMany", "ReadOnlyMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "volume",
        },
        status={
            "phase": "Bound",
            "accessModes": ["ReadWriteMany", "ReadOnlyMany"],
            "capacity": {"storage": "2048Mi"},
        },
    ),
    an_object(
        "ResourceClaim",
        "gpu",
        "resource.k8s.io/v1",
        spec={
            "devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.example"}}]}
        },
    ),
    an_object(
        "ResourceClaimTemplate", "gpus", "resource.k8s.io/v1", spec={"spec": {"devices": {}}}
    ),
    an_object(
        "CSIStorageCapacity",
        "room",
        "storage.k8s.io/v1",
        storageClassName="fast",
        capacity="1Gi",
    ),
    an_object(
        "Event",
        "counted",
        involvedObject={
            "kind": "Pod",
            "name": "p",
            "fieldPath": "spec.containers{a}",
        },
        reason="Pulled",
        message=" pulled \n",
        type="Normal",
        source={"component": "kubelet", "host": "n1"},
        firstTimestamp=TIME,
        lastTimestamp="2026-01-02T04:04:05Z",
        count=4,
    ),
    an_object(
        "Event",
        "series",
        "events.k8s.io/v1",
        regarding={"kind": "Pod", "name": "p"},
        reason="FailedScheduling",
        note="0/1 nodes are available",
        type="Warning",
        action="Scheduling",
        eventTime="2026-01-02T03:04:05.000000Z",
        reportingController="default-scheduler",
        reportingInstance="default-scheduler-1",
        series={"count": 3, "lastObservedTime": "2026-01-02T05:04:05.000000Z"},
    ),
]

CLUSTER_WIDE: list[Object] = [
    an_object("Node", "bare"),
    an_object(
        "Node",
        "full",
        metadata={
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/control-plane": "",
                "kubernetes.io/role": "master",
            }
        },
        spec={"unschedulable": True},
        status={
            "conditions": _conditions(Ready="True"),
            "addresses": [
                {"type": "Hostname", "address": "full"},
                {"type": "InternalIP", "address": "10.1.0.1"},
                {"type": "ExternalIP", "address": "8.8.4.4"},
            ],
            "nodeInfo": {
                "architecture": "arm64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.0",
                "kernelVersion": "6.6",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Debian",
                "systemUUID": "",
            },
        },
    ),
    an_object("Node", "lost", status={"conditions": _conditions(Ready="Unknown")}),
    an_object(
        "PersistentVolume",
        "volume",
        spec={
            "accessModes": ["ReadWriteOncePod"],
            "capacity": {"storage": "5Gi"},
            "hostPath": {"path": "/x"},
            "claimRef": {"namespace": "default", "name": "bound"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "fast",
        },
        status={"phase": "Bound"},
    ),
    an_object(
        "StorageClass",
        "fast",
        "storage.k8s.io/v1",
        provisioner="csi.example",
        allowVolumeExpansion=True,
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    ),
    an_object(
        "StorageClass",
        "later",
        "storage.k8s.io/v1",
        provisioner="csi.example",
        reclaimPolicy="Retain",
        volumeBindingMode="WaitForFirstConsumer",
    ),
    an_object(
        "VolumeAttributesClass",
        "gold",
        "storage.k8s.io/v1",
        driverName="csi.example",
        parameters={"iops": "9"},
    ),
    an_object(
        "VolumeAttachment",
        "attached",
        "storage.k8s.io/v1",
        spec={
            "attacher": "csi.example",
            "nodeName": "n1",
            "source": {"persistentVolumeName": "volume"},
        },
        status={"attached": True},
    ),
    an_object(
        "CSINode",
        "bare",
        "storage.k8s.io/v1",
        spec={"drivers": [{"name": "csi.example", "nodeID": "n"}]},
    ),
    an_object(
        "CSIDriver",
        "csi.example",
        "storage.k8s.io/v1",
        spec={"tokenRequests": [{"audience": "x"}], "volumeLifecycleModes": ["Persistent"]},
    ),
    an_object("CSIDriver", "plain.example", "storage.k8s.io/v1", spec={"attachRequired": False}),
    an_object("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000),
    an_object("RuntimeClass", "kata", "node.k8s.io/v1", handler="kata"),
    an_object("DeviceClass", "gpu.example", "resource.k8s.io/v1", spec={}),
    an_object(
        "ResourceSlice",
        "slice",
        "resource.k8s.io/v1",
        spec={
            "driver": "gpu.example",
            "nodeName": "bare",
            "pool": {"name": "pool-1", "generation": 1, "resourceSliceCount": 1},
        },
    ),
    an_object("ClusterRole", "exhibit", "rbac.authorization.k8s.io/v1", rules=[]),
    an_object(
        "ClusterRoleBinding",
        "exhibit",
        "rbac.authorization.k8s.io/v1",
        roleRef={
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "exhibit",
        },
    ),
]


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
