"""Scripts about pods: their defaults, bindings, evictions, grace, and what may change of them."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import (
    STRATEGIC,
    Object,
    Step,
    container,
    delete,
    get,
    patch,
    pod,
    post,
    put,
    thing,
    trying,
)

PODS = "/api/v1/namespaces/{ns}/pods"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"


def binding(name: str, node: str = "n1", **meta: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **meta},
        "target": {"kind": "Node", "name": node},
    }


def eviction(name: str, **fields: Any) -> Object:
    return thing("policy/v1", "Eviction", name, **fields)


def term(**fields: Any) -> Object:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, **fields}


RUNNING = {
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "podIP": "10.0.0.1",
    }
}

SCRIPTS: dict[str, list[Step]] = {
    "defaults": trying(
        PODS,
        [
            pod("x"),
            pod("x", {"restartPolicy": "Never", "schedulerName": "mine", "hostNetwork": True}),
            pod("x", {"terminationGracePeriodSeconds": -1}),
            pod("x", {"terminationGracePeriodSeconds": 0}),
            pod("x", {"serviceAccountName": "s"}),
            pod("x", {"tolerations": [{"operator": "Exists"}]}),
            pod(
                "x",
                {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]},
            ),
            pod("x", {"priorityClassName": "system-node-critical"}),
            pod("x", {"priorityClassName": "system-cluster-critical"}),
            pod("x", {"schedulingGates": [{"name": "a.b/c"}]}),
            container(image="a/b:latest"),
            container(image="a.b:5000/c"),
            container(image="a.b:5000/c:1"),
            container(image="a@sha256:" + "0" * 64),
            container(imagePullPolicy="Never", ports=[{"containerPort": 80}]),
            container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
            container(resources={"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}),
            container(
                resources={
                    "requests": {"cpu": "1.5", "memory": "1024Mi", "ephemeral-storage": 1000},
                    "limits": {"cpu": 2, "memory": "2048Mi"},
                }
            ),
            container(resources={"requests": {"cpu": "1n", "memory": "100000000000000000000"}}),
            container(resources={"requests": {"cpu": "0.5", "memory": "1e3"}}),
            container(resources={"limits": {"nvidia.com/gpu": 2}}),
            container(
                livenessProbe={"httpGet": {"port": 80}},
                readinessProbe={"tcpSocket": {"port": "http"}, "periodSeconds": 3},
                startupProbe={"grpc": {"port": 5}},
                env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ),
            pod(
                "x",
                {
                    "volumes": [
                        {"name": "a"},
                        {"name": "b", "secret": {"secretName": "s"}},
                        {"name": "c", "configMap": {"name": "s"}},
                        {"name": "d", "hostPath": {"path": "/"}},
                        {"name": "e", "emptyDir": {"sizeLimit": "1024Mi"}},
                        {"name": "f", "persistentVolumeClaim": {"claimName": "x"}},
                    ]
                },
            ),
            pod("x", {"initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}]}),
            pod(
                "x",
                {
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "zone",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": {"a": "b"}},
                            "matchLabelKeys": ["app", "none"],
                        }
                    ],
                    "affinity": {
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                term(matchLabelKeys=["app"], mismatchLabelKeys=["tier"])
                            ]
                        }
                    },
                },
                labels={"app": "web", "tier": "front"},
            ),
        ],
    ),
    # Classes that are made here would be known to the real server's admission only a moment later.
    "priorities": trying(
        PODS,
        [
            pod("x", {"priorityClassName": "nope"}),
            pod("x", {"priority": 5}),
            pod("x", {"preemptionPolicy": "Never"}),
            pod("x", {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}),
            pod("x", {"priorityClassName": "system-node-critical", "priority": 5}),
            pod("x", {"overhead": {"cpu": "1"}}),
            pod("x", {"runtimeClassName": "nope"}),
        ],
    ),
    "binding": [
        post(PODS, pod("b", annotations={"o": "p"}, labels={"l": "k", "o": "p"})),
        post(f"{PODS}/b/binding", binding("c")),
        post(f"{PODS}/zz/binding", binding("zz")),
        post(f"{PODS}/b/binding", binding("b", "")),
        post(f"{PODS}/b/binding", {**binding("b"), "target": {"kind": "Foo", "name": "n"}}),
        post(f"{PODS}/b/binding", binding("b", uid="x")),
        post(f"{PODS}/b/binding", binding("b", resourceVersion="1")),
        post(f"{PODS}/b/binding?dryRun=All", binding("b")),
        patch(
            f"{PODS}/b/status",
            {
                "status": {
                    "nominatedNodeName": "n2",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "x"}],
                }
            },
            STRATEGIC,
        ),
        post(f"{PODS}/b/binding", binding("b", annotations={"x": "y"}, labels={"l": "m"})),
        get(f"{PODS}/b"),
        post(f"{PODS}/b/binding", binding("b", "n2")),
        post("/api/v1/namespaces/{ns}/bindings", binding("b", "n2")),
        delete(f"{PODS}/b"),
        post(f"{PODS}/b/binding", binding("b", "n2")),
        post(PODS, pod("g", {"schedulingGates": [{"name": "a.b/c"}]})),
        post(f"{PODS}/g/binding", binding("g")),
    ],
    "grace": [
        post(PODS, pod("u")),
        delete(f"{PODS}/u"),
        delete(f"{PODS}/u"),
        post(PODS, pod("n", {"nodeName": "n1"})),
        delete(f"{PODS}/n?dryRun=All&gracePeriodSeconds=7"),
        delete(f"{PODS}/n"),
        delete(f"{PODS}/n"),
        delete(f"{PODS}/n?gracePeriodSeconds=60"),
        delete(f"{PODS}/n?gracePeriodSeconds=5"),
        delete(f"{PODS}/n?gracePeriodSeconds=0"),
        get(f"{PODS}/n"),
        post(PODS, pod("m", {"nodeName": "n1", "terminationGracePeriodSeconds": 7})),
        delete(f"{PODS}/m", {"gracePeriodSeconds": -3}),
        delete(f"{PODS}/m?gracePeriodSeconds=0"),
        post(PODS, pod("d", {"nodeName": "n1"})),
        patch(f"{PODS}/d/status", {"status": {"phase": "Succeeded"}}),
        delete(f"{PODS}/d"),
        get(f"{PODS}/d"),
        post(PODS, pod("f", {"nodeName": "n1"}, finalizers=["a.b/c"])),
        delete(f"{PODS}/f"),
        delete(f"{PODS}/f?gracePeriodSeconds=0"),
        delete(f"{PODS}/f?gracePeriodSeconds=0"),
        patch(f"{PODS}/f", {"metadata": {"finalizers": []}}),
        get(f"{PODS}/f"),
    ],
    "eviction": [
        post(PODS, pod("a", {"nodeName": "n1"}, labels={"app": "x"})),
        post(f"{PODS}/zz/eviction", eviction("zz")),
        post(f"{PODS}/a/eviction", eviction("x")),
        post(f"{PODS}/a/eviction", eviction("a", deleteOptions={"preconditions": {"uid": "x"}})),
        patch(f"{PODS}/a/status", RUNNING),
        post(
            BUDGETS,
            thing(
                "policy/v1",
                "PodDisruptionBudget",
                spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
            ),
        ),
        post(f"{PODS}/a/eviction", eviction("a")),
        patch(
            f"{BUDGETS}/x/status",
            {
                "status": {
                    "observedGeneration": 1,
                    "disruptionsAllowed": 0,
                    "currentHealthy": 1,
                    "desiredHealthy": 1,
                    "expectedPods": 1,
                }
            },
        ),
        post(f"{PODS}/a/eviction", eviction("a")),
        patch(f"{BUDGETS}/x/status", {"status": {"disruptionsAllowed": 1, "currentHealthy": 2}}),
        post(f"{PODS}/a/eviction?dryRun=All", eviction("a")),
        post(f"{PODS}/a/eviction", eviction("a", deleteOptions={"gracePeriodSeconds": 9})),
        get(f"{PODS}/a"),
        post(PODS, pod("p", labels={"app": "x"})),
        post(f"{PODS}/p/eviction", eviction("p")),
        get(f"{PODS}/p"),
    ],
    "eviction of unhealthy pods": [
        post(PODS, pod("a", {"nodeName": "n1"}, labels={"app": "x"})),
        patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}),
        post(
            BUDGETS,
            thing(
                "policy/v1",
                "PodDisruptionBudget",
                spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
            ),
        ),
        patch(f"{BUDGETS}/x/status", {"status": {"observedGeneration": 1, "desiredHealthy": 1}}),
        post(f"{PODS}/a/eviction", eviction("a")),
        patch(f"{BUDGETS}/x", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
        post(f"{PODS}/a/eviction", eviction("a")),
    ],
    "changes": [
        post(PODS, pod("u", {"nodeSelector": {"a": "b"}}, labels={"a": "b"})),
        put(f"{PODS}/u", pod("u", {"nodeSelector": {"a": "b"}}, labels={"a": "c"})),
        put(f"{PODS}/u", pod("u", labels={"a": "c"})),
        patch(f"{PODS}/u", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, STRATEGIC),
        patch(f"{PODS}/u", {"spec": {"tolerations": []}}),
        patch(f"{PODS}/u", {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}),
        patch(f"{PODS}/u", {"spec": {"terminationGracePeriodSeconds": 3}}),
        patch(f"{PODS}/u", {"spec": {"activeDeadlineSeconds": 3}}),
        patch(f"{PODS}/u", {"spec": {"activeDeadlineSeconds": 5}}),
        patch(f"{PODS}/u", {"spec": {"activeDeadlineSeconds": None}}),
        patch(f"{PODS}/u", {"spec": {"schedulingGates": [{"name": "x"}]}}),
        patch(f"{PODS}/u", {"spec": {"nodeName": "x"}}),
        patch(f"{PODS}/u", {"spec": {"priority": 4}}),
        patch(f"{PODS}/u", {"spec": {"containers": []}}),
        patch(f"{PODS}/u", {"spec": {"containers": [{"name": "d", "image": "i"}]}}, STRATEGIC),
        patch(f"{PODS}/u", {"status": {"phase": "Running"}}),
        get(f"{PODS}/u"),
    ],
    "status of pods": [
        post(PODS, {**pod("u"), "status": {"phase": "Running", "podIP": "1.2.3.4"}}),
        patch(
            f"{PODS}/u/status",
            {
                "metadata": {"labels": {"z": "z"}, "ownerReferences": [{"uid": "x"}]},
                "spec": {"nodeName": "x"},
                "status": {
                    "phase": "Running",
                    "nominatedNodeName": "n",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "x"}],
                },
            },
            STRATEGIC,
        ),
        patch(f"{PODS}/u/status", {"status": {"nominatedNodeName": "N N"}}),
        patch(f"{PODS}/u/status", {"status": {"qosClass": "Guaranteed"}}),
        patch(f"{PODS}/u/status", {"status": {"qosClass": None}}),
        patch(f"{PODS}/u/status", {"status": {"nominatedNodeName": None}}),
        post(f"{PODS}/u/binding", binding("u")),
        patch(f"{PODS}/u/status", {"status": {"nominatedNodeName": "n"}}),
    ],
    "gates": [
        post(
            PODS,
            pod(
                "g",
                {
                    "schedulingGates": [{"name": "a.b/c"}, {"name": "a.b/d"}],
                    "nodeSelector": {"a": "b"},
                },
            ),
        ),
        patch(f"{PODS}/g", {"spec": {"nodeSelector": {"c": "d"}}}),
        patch(f"{PODS}/g", {"spec": {"nodeSelector": {"a": "d"}}}),
        patch(f"{PODS}/g", {"spec": {"schedulingGates": [{"name": "a.b/c"}]}}),
        patch(f"{PODS}/g", {"spec": {"schedulingGates": [{"name": "a.b/e"}]}}),
        patch(f"{PODS}/g", {"spec": {"schedulingGates": []}}),
        patch(f"{PODS}/g", {"spec": {"nodeSelector": {"e": "f"}}}),
    ],
}
