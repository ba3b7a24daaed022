"""Scripts about the other kinds: what is filled in, what is refused, what may not change."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import (
    Object,
    Step,
    delete,
    get,
    patch,
    post,
    put,
    thing,
    trying,
)

APPS = "/apis/apps/v1/namespaces/{ns}"
CORE = "/api/v1/namespaces/{ns}"
BATCH = "/apis/batch/v1/namespaces/{ns}"
STORAGE = "/apis/storage.k8s.io/v1"
SELECTOR = {"matchLabels": {"a": "b"}}


def template(**spec: Any) -> Object:
    containers = [{"name": "c", "image": "nginx:1.2"}]
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **spec}}


def maker(kind: str, **spec: Any) -> Object:
    """Something that makes pods."""
    whole = {"selector": SELECTOR, "template": template(), **spec}
    return thing("apps/v1", kind, spec=whole)


def job(**spec: Any) -> Object:
    return thing("batch/v1", "Job", spec={"template": template(restartPolicy="Never"), **spec})


def service(**spec: Any) -> Object:
    return thing("v1", "Service", spec={"ports": [{"port": 80}], **spec})


def tries_of(kind: str, plural: str) -> list[Step]:
    """What people get wrong with things that make pods."""
    return trying(
        f"{APPS}/{plural}",
        [
            maker(kind),
            thing("apps/v1", kind),
            maker(kind, selector={"matchLabels": {"a": "c"}}),
            maker(kind, selector={}),
            maker(kind, selector={"matchLabels": {"a b": "c"}}),
            maker(
                kind,
                replicas=-1,
                minReadySeconds=-1,
                revisionHistoryLimit=-1,
                template={
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"restartPolicy": "Never", "containers": []},
                },
            ),
            {**maker(kind), "metadata": {"name": "X.y"}},
            maker(kind, template=template(containers=[{"name": 3}])),
        ],
    )


def changes_of(kind: str, plural: str) -> list[Step]:
    path = f"{APPS}/{plural}"
    other = template()
    other["metadata"]["labels"] = {"a": "b", "c": "d"}
    return [
        post(path, maker(kind)),
        put(f"{path}/x", maker(kind, template=other)),
        patch(f"{path}/x", {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
        put(f"{path}/x", maker(kind, template=other)),
        patch(f"{path}/x", {"spec": {"minReadySeconds": 3}}),
        patch(f"{path}/x", {"metadata": {"annotations": {"x": "y"}}}),
        get(f"{path}/x"),
    ]


SCRIPTS: dict[str, list[Step]] = {
    "deployments": [
        *tries_of("Deployment", "deployments"),
        *trying(
            f"{APPS}/deployments",
            [
                maker("Deployment", strategy={"type": "Foo"}),
                maker("Deployment", strategy={"type": "Recreate"}),
                maker(
                    "Deployment", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
                ),
                maker(
                    "Deployment",
                    strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
                    progressDeadlineSeconds=0,
                ),
                maker(
                    "Deployment",
                    strategy={"rollingUpdate": {"maxSurge": "abc", "maxUnavailable": -1}},
                ),
            ],
        ),
        *changes_of("Deployment", "deployments"),
    ],
    "replica sets": [
        *tries_of("ReplicaSet", "replicasets"),
        *changes_of("ReplicaSet", "replicasets"),
    ],
    "daemon sets": [*tries_of("DaemonSet", "daemonsets"), *changes_of("DaemonSet", "daemonsets")],
    "stateful sets": [
        *tries_of("StatefulSet", "statefulsets"),
        *trying(
            f"{APPS}/statefulsets",
            [
                maker("StatefulSet", podManagementPolicy="Foo"),
                maker(
                    "StatefulSet",
                    serviceName="s",
                    volumeClaimTemplates=[
                        {
                            "metadata": {"name": "data"},
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1024Mi"}},
                            },
                        }
                    ],
                    template=template(
                        containers=[
                            {
                                "name": "c",
                                "image": "i",
                                "volumeMounts": [{"name": "data", "mountPath": "/d"}],
                            }
                        ]
                    ),
                ),
            ],
        ),
        *changes_of("StatefulSet", "statefulsets"),
        patch(f"{APPS}/statefulsets/x", {"spec": {"serviceName": "s"}}),
    ],
    "replication controllers": trying(
        f"{CORE}/replicationcontrollers",
        [
            thing("v1", "ReplicationController", spec={"template": template()}),
            thing("v1", "ReplicationController"),
            thing(
                "v1", "ReplicationController", spec={"selector": {"x": "y"}, "template": template()}
            ),
        ],
    ),
    "jobs": [
        *trying(
            f"{BATCH}/jobs",
            [
                job(),
                job(parallelism=2),
                job(completionMode="Indexed"),
                job(completions=-1, parallelism=-1, backoffLimit=-1, template=template()),
                job(selector={"matchLabels": {"a": "b"}}),
                thing("batch/v1", "Job"),
                job(manualSelector=True, selector=SELECTOR),
            ],
        ),
        post(f"{BATCH}/jobs", job()),
        patch(f"{BATCH}/jobs/x", {"spec": {"parallelism": 3}}),
        patch(f"{BATCH}/jobs/x", {"spec": {"completions": 3}}),
        patch(f"{BATCH}/jobs/x", {"spec": {"suspend": True}}),
        delete(f"{BATCH}/jobs/x"),
        delete(f"{BATCH}/jobs/x", {"propagationPolicy": "Background"}),
        *trying(
            f"{BATCH}/cronjobs",
            [
                thing(
                    "batch/v1",
                    "CronJob",
                    spec={"schedule": "* * * * *", "jobTemplate": {"spec": job()["spec"]}},
                ),
                thing("batch/v1", "CronJob"),
            ],
        ),
    ],
    "services": [
        *trying(
            f"{CORE}/services",
            [
                service(clusterIP="None", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack"),
                thing("v1", "Service"),
                service(
                    type="Foo", ports=[{"port": 0}, {"port": 80, "protocol": "X"}, {"port": 80}]
                ),
                thing("v1", "Service", spec={"type": "ExternalName", "externalName": "a.b"}),
            ],
        ),
    ],
    "storage": [
        *trying(
            f"{CORE}/persistentvolumeclaims",
            [
                thing(
                    "v1",
                    "PersistentVolumeClaim",
                    spec={
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1024Mi"}},
                    },
                ),
                thing("v1", "PersistentVolumeClaim"),
                thing(
                    "v1",
                    "PersistentVolumeClaim",
                    spec={"accessModes": ["Foo"], "resources": {"requests": {"storage": "-1"}}},
                ),
            ],
        ),
        *trying(
            "/api/v1/persistentvolumes",
            [
                thing(
                    "v1",
                    "PersistentVolume",
                    spec={
                        "accessModes": ["ReadWriteOnce"],
                        "capacity": {"storage": "1Gi"},
                        "hostPath": {"path": "/a"},
                    },
                ),
                thing("v1", "PersistentVolume"),
                thing(
                    "v1",
                    "PersistentVolume",
                    spec={
                        "accessModes": ["Foo"],
                        "capacity": {"storage": "0"},
                        "hostPath": {"path": "/a"},
                        "nodeAffinity": {},
                    },
                ),
            ],
        ),
        *trying(
            f"{STORAGE}/storageclasses",
            [
                thing("storage.k8s.io/v1", "StorageClass", provisioner="a.b/c"),
                thing("storage.k8s.io/v1", "StorageClass", volumeBindingMode="Foo"),
            ],
        ),
        post(
            f"{STORAGE}/storageclasses",
            thing("storage.k8s.io/v1", "StorageClass", "{ns}", provisioner="a.b/c"),
        ),
        patch(f"{STORAGE}/storageclasses/{{ns}}", {"provisioner": "d"}),
        patch(f"{STORAGE}/storageclasses/{{ns}}", {"volumeBindingMode": "WaitForFirstConsumer"}),
        patch(f"{STORAGE}/storageclasses/{{ns}}", {"parameters": {"a": "b"}}),
        patch(f"{STORAGE}/storageclasses/{{ns}}", {"reclaimPolicy": "Retain"}),
        patch(f"{STORAGE}/storageclasses/{{ns}}", {"allowVolumeExpansion": True}),
        delete(f"{STORAGE}/storageclasses/{{ns}}"),
        *trying(f"{STORAGE}/csidrivers", [thing("storage.k8s.io/v1", "CSIDriver", spec={})]),
        *trying(
            f"{STORAGE}/namespaces/{{ns}}/csistoragecapacities",
            [
                thing(
                    "storage.k8s.io/v1",
                    "CSIStorageCapacity",
                    storageClassName="a",
                    capacity="1024Mi",
                )
            ],
        ),
        *trying(
            f"{STORAGE}/volumeattachments",
            [
                thing(
                    "storage.k8s.io/v1",
                    "VolumeAttachment",
                    spec={
                        "attacher": "x",
                        "nodeName": "n",
                        "source": {"persistentVolumeName": "p"},
                    },
                )
            ],
        ),
    ],
    "claims": [
        post(
            f"{CORE}/persistentvolumeclaims",
            thing(
                "v1",
                "PersistentVolumeClaim",
                spec={
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "s",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            ),
        ),
        patch(f"{CORE}/persistentvolumeclaims/x", {"metadata": {"annotations": {"a": "b"}}}),
        patch(f"{CORE}/persistentvolumeclaims/x", {"spec": {"volumeName": "v"}}),
        patch(f"{CORE}/persistentvolumeclaims/x/status", {"status": {"phase": "Bound"}}),
        get(f"{CORE}/persistentvolumeclaims/x"),
    ],
    "nodes": [
        *trying(
            "/api/v1/nodes",
            [
                thing(
                    "v1",
                    "Node",
                    spec={
                        "taints": [
                            {"key": "a", "effect": "NoSchedule"},
                            {"key": "a", "effect": "NoSchedule"},
                            {"key": "a b", "effect": "X", "value": "c d"},
                        ]
                    },
                    status={"capacity": {"cpu": "-1"}},
                )
            ],
        ),
    ],
    "priority classes": [
        *trying(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            [
                thing("scheduling.k8s.io/v1", "PriorityClass", value=5),
                thing("scheduling.k8s.io/v1", "PriorityClass", value=2000000000),
                thing("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=2),
                thing("scheduling.k8s.io/v1", "PriorityClass", value=2, preemptionPolicy="Foo"),
            ],
        ),
        get("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"),
        patch("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", {"value": 5}),
        delete("/apis/scheduling.k8s.io/v1/priorityclasses/nope"),
    ],
    "budgets": trying(
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        [
            thing(
                "policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": SELECTOR}
            ),
            thing(
                "policy/v1",
                "PodDisruptionBudget",
                spec={"minAvailable": -1, "maxUnavailable": "x", "selector": SELECTOR},
            ),
        ],
    ),
    "small kinds": [
        *trying(
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            [
                thing(
                    "coordination.k8s.io/v1",
                    "Lease",
                    spec={"leaseDurationSeconds": 0, "leaseTransitions": -1},
                )
            ],
        ),
        *trying(f"{CORE}/secrets", [thing("v1", "Secret", stringData={"a": "b"})]),
        *trying(
            f"{CORE}/configmaps",
            [thing("v1", "ConfigMap", data={"a b": "c"}), thing("v1", "ConfigMap")],
        ),
        *trying(
            f"{CORE}/resourcequotas",
            [thing("v1", "ResourceQuota", spec={"hard": {"pods": "1", "cpu": "1000m"}})],
        ),
        *trying(f"{CORE}/serviceaccounts", [thing("v1", "ServiceAccount")]),
        *trying(f"{CORE}/endpoints", [thing("v1", "Endpoints")]),
        *trying(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            [
                thing(
                    "rbac.authorization.k8s.io/v1",
                    "ClusterRoleBinding",
                    "a:b",
                    roleRef={"kind": "ClusterRole", "name": "x"},
                    subjects=[{"kind": "User", "name": "b"}],
                )
            ],
        ),
        *trying(
            "/apis/node.k8s.io/v1/runtimeclasses",
            [thing("node.k8s.io/v1", "RuntimeClass", handler="x")],
        ),
        *trying(
            f"{APPS}/controllerrevisions",
            [thing("apps/v1", "ControllerRevision", revision=1, data={"a": "b"})],
        ),
        *trying(
            "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
            [
                thing(
                    "resource.k8s.io/v1",
                    "ResourceClaim",
                    spec={
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "x"}}]
                        }
                    },
                )
            ],
        ),
        *trying(
            "/apis/resource.k8s.io/v1/resourceslices",
            [
                thing(
                    "resource.k8s.io/v1",
                    "ResourceSlice",
                    spec={
                        "driver": "a.b",
                        "nodeName": "n",
                        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                        "devices": [{"name": "d"}],
                    },
                )
            ],
        ),
    ],
}
