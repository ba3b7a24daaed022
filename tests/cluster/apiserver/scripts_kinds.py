"""Scripts about the other kinds: what is filled in, what is refused, what may not change."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import (
    STRATEGIC,
    Object,
    Step,
    delete,
    get,
    patch,
    post,
    put,
    read_scripts,
    thing,
    trying,
)

APPS = "/apis/apps/v1/namespaces/{ns}"
CORE = "/api/v1/namespaces/{ns}"
BATCH = "/apis/batch/v1/namespaces/{ns}"
SELECTOR = {"matchLabels": {"a": "b"}}
SUSPENDED = {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}}
ENLARGED = {"name": "c", "resources": {"requests": {"cpu": "1"}}}


def template(**spec: Any) -> Object:
    containers = [{"name": "c", "image": "nginx:1.2"}]
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **spec}}


def maker(kind: str, **spec: Any) -> Object:
    """Something that makes pods."""
    whole = {"selector": SELECTOR, "template": template(), **spec}
    return thing("apps/v1", kind, spec=whole)


def job(**spec: Any) -> Object:
    return thing("batch/v1", "Job", spec={"template": template(restartPolicy="Never"), **spec})


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
    "daemon sets": [
        *tries_of("DaemonSet", "daemonsets"),
        *trying(
            f"{APPS}/daemonsets",
            [
                maker("DaemonSet", updateStrategy={"type": "Foo"}),
                maker("DaemonSet", updateStrategy={"type": "OnDelete"}),
            ],
        ),
        *changes_of("DaemonSet", "daemonsets"),
    ],
    "stateful sets": [
        *tries_of("StatefulSet", "statefulsets"),
        *trying(
            f"{APPS}/statefulsets",
            [
                maker("StatefulSet", podManagementPolicy="Foo"),
                maker("StatefulSet", updateStrategy={"type": "Foo"}),
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
    "replication controllers": [
        *trying(
            f"{CORE}/replicationcontrollers",
            [
                thing("v1", "ReplicationController", spec={"template": template()}),
                thing("v1", "ReplicationController"),
                thing(
                    "v1",
                    "ReplicationController",
                    spec={"selector": {"x": "y"}, "template": template()},
                ),
            ],
        ),
        post(
            f"{CORE}/replicationcontrollers",
            thing("v1", "ReplicationController", spec={"template": template()}),
        ),
        patch(f"{CORE}/replicationcontrollers/x/scale", {"spec": {"replicas": 3}}),
        get(f"{CORE}/replicationcontrollers/x/scale"),
    ],
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
                job(completionMode="Indexed", parallelism=2),
                job(template=template(restartPolicy="Foo")),
                job(
                    podFailurePolicy={
                        "rules": [
                            {
                                "action": "Ignore",
                                "onPodConditions": [
                                    {"type": "DisruptionTarget"},
                                    {"type": "ConfigIssue", "status": "False"},
                                ],
                            }
                        ]
                    }
                ),
            ],
        ),
        post(f"{BATCH}/jobs", job()),
        patch(f"{BATCH}/jobs/x", {"spec": {"parallelism": 3}}),
        patch(f"{BATCH}/jobs/x", {"spec": {"completions": 3}}),
        patch(f"{BATCH}/jobs/x", {"spec": {"suspend": True}}),
        delete(f"{BATCH}/jobs/x"),
        delete(f"{BATCH}/jobs/x", {"propagationPolicy": "Background"}),
        post(f"{BATCH}/jobs", job(suspend=True)),
        patch(f"{BATCH}/jobs/x/status", SUSPENDED),
        patch(f"{BATCH}/jobs/x", {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}),
        patch(
            f"{BATCH}/jobs/x",
            {"spec": {"template": {"spec": {"containers": [ENLARGED]}}}},
            STRATEGIC,
        ),
        patch(f"{BATCH}/jobs/x", {"spec": {"suspend": False}}),
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
    **read_scripts("scripts_kinds.yaml"),
}
