"""Scripts about what all objects have in common: creating, changing, deleting, names, versions."""

from __future__ import annotations

from tests.cluster.apiserver.compared_requests import (
    STRATEGIC,
    Object,
    Step,
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
MAPS = "/api/v1/namespaces/{ns}/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"


def config(name: str, **meta: object) -> Object:
    value = thing("v1", "ConfigMap", name, data={"a": "b"})
    return {**value, "metadata": {"name": name, **meta}}


def lease(holder: str, **meta: object) -> Object:
    spec = {"holderIdentity": holder}
    value = thing("coordination.k8s.io/v1", "Lease", "l", spec=spec)
    return {**value, "metadata": {"name": "l", **meta}}


def template(**labels: str) -> Object:
    containers = [{"name": "c", "image": "nginx:1.2"}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers}}


def deployment(name: str = "d", **spec: object) -> Object:
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}],
    }
    whole = {"selector": selector, "template": template(a="b"), **spec}
    return thing("apps/v1", "Deployment", name, spec=whole)


def without_finalizers(path: str) -> Step:
    return patch(path, {"metadata": {"finalizers": None}})


SCRIPTS: dict[str, list[Step]] = {
    "create": [
        post(PODS, pod("a")),
        post(PODS, pod("a")),
        get(f"{PODS}/a"),
        get(f"{PODS}/zz"),
        post(PODS, pod("b", resourceVersion="5")),
        post("/api/v1/namespaces/{ns}-nope/pods", pod("b")),
        post(PODS, pod("b", namespace="kube-system")),
        post(MAPS, config("x", uid="mine", generation=7, creationTimestamp="2020-01-01T00:00:00Z")),
        post(f"{MAPS}?dryRun=All", config("dry")),
        get(f"{MAPS}/dry"),
        post(f"{MAPS}?dryRun=Foo", config("dry")),
        post("/api/v1/pods", pod("x")),
    ],
    "bodies": [
        post(PODS, {"kind": "Pod"}),
        post(PODS, {"apiVersion": "v1", "metadata": {"name": "x"}}),
        post(PODS, "{"),
        post(PODS, ""),
        post(PODS, "[]"),
        post(PODS, '"x"'),
        post(PODS, {"apiVersion": "v1", "kind": 5}),
        post(PODS, {"apiVersion": "v1", "kind": "Foo"}),
        post(PODS, {"apiVersion": "apps/v1", "kind": "Pod"}),
        post(PODS, {"apiVersion": "v2", "kind": "Pod"}),
        post(PODS, config("x")),
        post(PODS, deployment()),
        post(DEPLOYMENTS, pod("x")),
        post(DEPLOYMENTS, {**deployment(), "apiVersion": "apps/v1beta1"}),
        post(PODS, pod("x", labels=5)),
        post(PODS, pod("x", labels={"a": 5})),
        post(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": []}),
        post(PODS, {"apiVersion": "v1", "kind": "Pod", "spec": "x"}),
        post(DEPLOYMENTS, deployment(replicas="3")),
        post(DEPLOYMENTS, deployment(selector="x")),
        post(f"{PODS}?dryRun=All&fieldValidation=Strict", {**pod("x", {"foo": 1}), "zork": 1}),
        post(f"{PODS}?dryRun=All&fieldValidation=Ignore", {**pod("x", {"foo": 1}), "zork": 1}),
        post(f"{PODS}?dryRun=All&fieldValidation=Foo", pod("x")),
        post(PODS, "kind: Pod\nmetadata: {name: yaml}\n", content_type="application/yaml"),
    ],
    "paths": [
        get("/api/v1/foos"),
        get("/apis/nope/v1/foos"),
        get("/apis/apps/v1/foos/x/y"),
        get("/zork"),
        get("/apis/apps/v2/deployments"),
        put(PODS, pod("a")),
        patch(PODS, {}),
        post(f"{PODS}/a", pod("a")),
        get(f"{PODS}/a/foo"),
        get(f"{PODS}/a/binding"),
        delete("/api/v1/pods"),
        get("/api/v1/namespaces/{ns}-nope/pods"),
    ],
    "update": [
        post(MAPS, config("a", labels={"x": "y"}, annotations={"x": "y"})),
        put(f"{MAPS}/a", config("a", labels={"x": "z"})),
        put(f"{MAPS}/a", config("a", labels={"x": "z"})),
        put(f"{MAPS}/a", config("b")),
        put(f"{MAPS}/a", config("")),
        put(f"{MAPS}/a", config("a", resourceVersion="1")),
        put(f"{MAPS}/a", config("a", resourceVersion="abc")),
        put(f"{MAPS}/a", config("a", uid="foo")),
        put(f"{MAPS}/a", config("a", creationTimestamp="2020-01-01T00:00:00Z", generation=9)),
        put(f"{MAPS}/a", config("a", deletionTimestamp="2020-01-01T00:00:00Z")),
        put(f"{MAPS}/a", config("a", namespace="kube-system")),
        put(f"{MAPS}/zz", config("zz")),
        put(f"{MAPS}/zz", config("zz", uid="x")),
        put(f"{MAPS}/a?dryRun=All", config("a", labels={"dry": "yes"})),
        get(f"{MAPS}/a"),
        put(f"{LEASES}/l", lease("a")),
        put(f"{LEASES}/l", lease("b")),
        put(f"{LEASES}/l", lease("b", resourceVersion="1")),
    ],
    "patch": [
        post(PODS, pod("a", labels={"app": "a"})),
        patch(f"{PODS}/a", {"metadata": {"labels": {"app": None, "b": "c"}}}),
        patch(f"{PODS}/a", {"metadata": {"name": "b"}}),
        patch(f"{PODS}/a", {"metadata": {"namespace": "b"}}),
        patch(f"{PODS}/a", {"metadata": {"resourceVersion": "1"}}),
        patch(f"{PODS}/a", {"metadata": {"uid": "1"}}),
        patch(f"{PODS}/zz", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{PODS}/a", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, STRATEGIC),
        patch(f"{PODS}/a", {"metadata": {"labels": {"b": None}}}),
        Step("PATCH", f"{PODS}/a", {}, "application/json"),
    ],
    "status": [
        post(DEPLOYMENTS, deployment()),
        put(
            f"{DEPLOYMENTS}/d/status",
            {
                **deployment(replicas=7),
                "metadata": {"name": "d", "labels": {"q": "r"}, "annotations": {"x": "y"}},
                "status": {"replicas": 3, "readyReplicas": 2},
            },
        ),
        put(f"{DEPLOYMENTS}/d", {**deployment(replicas=2), "status": {"replicas": 9}}),
        patch(f"{DEPLOYMENTS}/d", {"metadata": {"annotations": {"x": "z"}}}),
        patch(f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"x": "z"}}}),
        get(f"{DEPLOYMENTS}/d/status"),
        put(f"{DEPLOYMENTS}/zz/status", {**deployment("zz"), "status": {}}),
    ],
    "scale": [
        post(DEPLOYMENTS, deployment()),
        get(f"{DEPLOYMENTS}/d/scale"),
        put(f"{DEPLOYMENTS}/d/scale", thing("autoscaling/v1", "Scale", "d", spec={"replicas": 3})),
        patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}}),
        put(f"{DEPLOYMENTS}/d/scale", thing("autoscaling/v1", "Scale", "d", spec={"replicas": -3})),
        put(
            f"{DEPLOYMENTS}/d/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "d", "resourceVersion": "1"},
                "spec": {"replicas": 3},
            },
        ),
        patch(f"{DEPLOYMENTS}/zz/scale", {"spec": {"replicas": 0}}),
        get(f"{DEPLOYMENTS}/d"),
    ],
    "delete": [
        post(MAPS, config("a")),
        delete(f"{MAPS}/a", {"preconditions": {"uid": "x"}}),
        delete(f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}}),
        delete(f"{MAPS}/a", {"propagationPolicy": "X"}),
        delete(f"{MAPS}/a?dryRun=Foo"),
        delete(f"{MAPS}/a?dryRun=All"),
        delete(f"{MAPS}/a", {"apiVersion": "v1", "kind": "Foo"}),
        delete(f"{MAPS}/a"),
        delete(f"{MAPS}/a"),
        post(MAPS, config("f", finalizers=["a.b/c"])),
        delete(f"{MAPS}/f"),
        delete(f"{MAPS}/f"),
        put(f"{MAPS}/f", config("f", finalizers=["a.b/c", "d.e/f"])),
        patch(f"{MAPS}/f", {"data": {"x": "y"}}),
        without_finalizers(f"{MAPS}/f"),
        get(f"{MAPS}/f"),
        post(MAPS, config("g")),
        delete(f"{MAPS}/g", {"propagationPolicy": "Foreground"}),
        without_finalizers(f"{MAPS}/g"),
        post(MAPS, config("g")),
        delete(f"{MAPS}/g", {"orphanDependents": True}),
        without_finalizers(f"{MAPS}/g"),
        post(MAPS, config("g")),
        delete(f"{MAPS}/g", {"propagationPolicy": "Background"}),
        post(DEPLOYMENTS, deployment()),
        delete(f"{DEPLOYMENTS}/d"),
    ],
    "delete all": [
        *(post(PODS, pod(name, labels={"app": name})) for name in "abc"),
        delete(f"{PODS}?labelSelector=app%3Da"),
        delete(f"{PODS}?labelSelector=app%3Dzz"),
        delete(f"{PODS}?fieldSelector=metadata.name%3Db", {"gracePeriodSeconds": 0}),
        get(PODS),
    ],
    "names": trying(
        PODS,
        [
            pod("A_b"),
            pod("a" * 254),
            pod("x", labels={"a b": "c d"}),
            pod("x", labels={"a" * 64: "b" * 64}),
            # The real server goes through maps in any order: one bad key each.
            *(pod("x", labels={key: "b"}) for key in ("/a", "a/", "a/b/c", "A.b/c")),
            pod("x", annotations={"a b": "c"}),
            pod("x", annotations={"a": "b" * 256 * 1024}),
            pod("x", ownerReferences=[{"apiVersion": "", "kind": "", "name": "", "uid": ""}]),
            pod(
                "x",
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "1", "controller": True},
                    {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "2", "controller": True},
                ],
            ),
            pod("x", finalizers=["x", "a b/c"]),
            {**pod("x", {"containers": []}, labels={"a b": ""}), "status": {"phase": "Running"}},
        ],
    )
    + trying("/api/v1/namespaces", [thing("v1", "Namespace", "A.b")])
    + trying("/api/v1/namespaces/{ns}/services", [thing("v1", "Service", "1.b")]),
    "fields that are there twice": [
        post(f"{MAPS}?fieldValidation={mode}&dryRun=All", body)
        for mode in ("Strict", "Warn", "Ignore")
        for body in (
            '{"metadata":{"name":"x"},"data":{"a":"1","a":"2"},"nope":1}',
            '{"nope":1,"metadata":{"name":"x","labels":{"a":"1"},"labels":{"a":"\\":"}}}',
            '{"metadata":{"name":"x","name":"y","name":"x"}}',
        )
    ],
    "strategic patches": [
        post(
            BUDGETS,
            thing(
                "policy/v1",
                "PodDisruptionBudget",
                spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
            ),
        ),
        patch(f"{BUDGETS}/x", {"spec": {"selector": {"matchLabels": {"c": "d"}}}}, STRATEGIC),
        post(DEPLOYMENTS, deployment()),
        *(
            patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": spec}}}, STRATEGIC)
            for spec in (
                {"containers": [{"name": "c", "args": ["a", "b"]}]},
                {
                    "containers": [
                        {"name": "c", "args": ["c", "b"], "$setElementOrder/args": ["c", "b"]}
                    ]
                },
                {"$setElementOrder/containers": [{"name": "c"}], "containers": "x"},
            )
        ),
        patch(
            f"{DEPLOYMENTS}/d",
            {
                "spec": {
                    "strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}
                }
            },
            STRATEGIC,
        ),
    ],
    "namespaces": [
        post("/api/v1/namespaces", thing("v1", "Namespace", "{ns}-2")),
        patch("/api/v1/namespaces/{ns}-2", {"metadata": {"labels": {"a": "b"}}}),
        patch("/api/v1/namespaces/{ns}-2", {"spec": {"finalizers": ["x.y/z"]}}),
        put("/api/v1/namespaces/{ns}-2/status", thing("v1", "Namespace", "{ns}-2", spec={})),
        delete("/api/v1/namespaces/{ns}-2/pods"),
        delete("/api/v1/namespaces/default"),
        delete("/api/v1/namespaces/{ns}-nope"),
    ],
}
