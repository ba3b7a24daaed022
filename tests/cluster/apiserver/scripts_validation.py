"""Scripts about pods that no server should take, and why not."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import Object, Step, container, pod, trying

PODS = "/api/v1/namespaces/{ns}/pods"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(kind: str, **terms: Any) -> Object:
    return pod("x", {"affinity": {kind: terms}})


def spread(**fields: Any) -> Object:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {**usual, **fields}


SCRIPTS: dict[str, list[Step]] = {
    "resources": trying(
        PODS,
        [
            container(resources={"requests": {"cpu": "abc"}}),
            container(resources={"requests": {"cpu": ""}}),
            container(resources={"requests": {"cpu": True}}),
            container(resources={"requests": {"cpu": "-1"}}),
            container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            container(resources={"requests": {"nvidia.com/gpu": "2"}}),
            container(resources={"requests": {"x.y/gpu": "2"}, "limits": {"x.y/gpu": "3"}}),
            container(resources={"limits": {"nvidia.com/gpu": "1.5"}}),
            container(resources={"limits": {"foo": "1"}}),
            container(resources={"limits": {"fo o/x": "1"}}),
            container(resources={"limits": {"foo_": "1"}}),
            container(resources={"limits": []}),
        ],
    ),
    "containers": trying(
        PODS,
        [
            pod("x", {"containers": []}),
            pod("x", {"containers": [{"name": "c"}]}),
            pod("x", {"containers": [{"image": "c"}]}),
            pod("x", {"containers": [{"name": "A", "image": "c"}]}),
            pod("x", {"containers": [{"name": "c", "image": "c"}, {"name": "c", "image": "c"}]}),
            pod("x", {"initContainers": [{"name": "c", "image": "c"}]}),
            pod(
                "x",
                {
                    "initContainers": [
                        {"name": "i", "image": "c", "readinessProbe": {"httpGet": {"port": 80}}}
                    ]
                },
            ),
            container(imagePullPolicy="Foo"),
            container(
                ports=[
                    {"containerPort": 0},
                    {"containerPort": 70000},
                    {"containerPort": 80, "hostPort": -1},
                    {"containerPort": 80, "protocol": "X"},
                    {"containerPort": 81, "hostPort": 81, "name": "A"},
                    {"containerPort": 82, "hostPort": 81},
                ]
            ),
            container(ports=[{"containerPort": "80"}]),
            container(ports=[{"containerPort": 1.5}]),
            container(ports=[{"containerPort": 99999999999}]),
            container(ports={"a": 1}),
            container(env=[{"name": "", "value": "a"}, {"name": "a=b", "value": "a"}]),
            container(env=[{"name": "a", "value": 5}]),
            container(command="x"),
            container(stdin="x"),
        ],
    ),
    "specs": trying(
        PODS,
        [
            pod("x", {"restartPolicy": "Foo"}),
            pod("x", {"dnsPolicy": "Foo"}),
            pod("x", {"activeDeadlineSeconds": 0}),
            pod("x", {"nodeSelector": {"a b": "c d"}}),
            pod("x", {"nodeName": "A B"}),
            pod("x", {"hostname": "A.b", "subdomain": "C.d"}),
            pod(
                "x",
                {
                    "schedulingGates": [{"name": "A B"}, {"name": "a"}, {"name": "a"}],
                    "nodeName": "n",
                },
            ),
            pod(
                "x",
                {
                    "volumes": [
                        {"name": "A", "emptyDir": {}},
                        {"name": "b", "persistentVolumeClaim": {}},
                        {"name": "c", "emptyDir": {}, "hostPath": {"path": "/"}},
                        {"name": "d"},
                        {"name": "d"},
                        {"emptyDir": {}},
                    ],
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "volumeMounts": [
                                {"name": "zz", "mountPath": "/a"},
                                {"name": "d", "mountPath": ""},
                                {"name": "d", "mountPath": "/x"},
                                {"name": "d", "mountPath": "/x"},
                            ],
                        }
                    ],
                },
            ),
        ],
    ),
    "tolerations": trying(
        PODS,
        [
            pod(
                "x",
                {
                    "tolerations": [
                        {"key": "a b", "operator": "Foo", "effect": "X", "tolerationSeconds": 3}
                    ]
                },
            ),
            pod(
                "x",
                {
                    "tolerations": [
                        {"operator": "Equal"},
                        {"key": "a", "operator": "Exists", "value": "x"},
                        {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3},
                        {"key": "a", "operator": "Gt", "value": "x"},
                        {"key": "a", "value": "x y"},
                    ]
                },
            ),
        ],
    ),
    "affinities": trying(
        PODS,
        [
            affinity("nodeAffinity", **{REQUIRED: {"nodeSelectorTerms": []}}),
            affinity(
                "nodeAffinity",
                **{
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a b", "operator": "In", "values": []},
                                    {"key": "a", "operator": "Foo"},
                                    {"key": "a", "operator": "Exists", "values": ["a"]},
                                    {"key": "a", "operator": "Gt", "values": ["a", "b"]},
                                    {"key": "a", "operator": "In", "values": ["a b"]},
                                ],
                                "matchFields": [
                                    {"key": "foo", "operator": "In", "values": ["a"]},
                                    {
                                        "key": "metadata.name",
                                        "operator": "In",
                                        "values": ["a", "b"],
                                    },
                                    {"key": "metadata.name", "operator": "Exists"},
                                ],
                            }
                        ]
                    },
                    PREFERRED: [
                        {
                            "weight": 0,
                            "preference": {
                                "matchExpressions": [
                                    {"key": "a", "operator": "In", "values": ["a b"]}
                                ]
                            },
                        }
                    ],
                },
            ),
            affinity(
                "podAffinity",
                **{
                    REQUIRED: [
                        {
                            "labelSelector": {
                                "matchLabels": {"a b": "c"},
                                "matchExpressions": [
                                    {"key": "a", "operator": "In"},
                                    {"key": "a", "operator": "X"},
                                    {"key": "a", "operator": "Exists", "values": ["b"]},
                                ],
                            },
                            "namespaces": ["A"],
                        }
                    ],
                    PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}],
                },
            ),
            affinity(
                "podAntiAffinity",
                **{
                    REQUIRED: [
                        {"topologyKey": "a b", "matchLabelKeys": ["x"]},
                        {
                            "topologyKey": "a",
                            "labelSelector": {"matchLabels": {"x": "y"}},
                            "matchLabelKeys": ["x", "q"],
                            "mismatchLabelKeys": ["q"],
                        },
                    ]
                },
            ),
        ],
    ),
    "spreads": trying(
        PODS,
        [
            pod(
                "x",
                {
                    "topologySpreadConstraints": [
                        spread(maxSkew=0, topologyKey="", whenUnsatisfiable="Foo"),
                        spread(minDomains=0),
                        spread(nodeAffinityPolicy="x"),
                        spread(
                            topologyKey="b",
                            whenUnsatisfiable="ScheduleAnyway",
                            minDomains=2,
                            matchLabelKeys=["a"],
                        ),
                        spread(topologyKey="c", labelSelector={"matchLabels": {"a b": "c"}}),
                    ]
                },
            ),
        ],
    ),
}
