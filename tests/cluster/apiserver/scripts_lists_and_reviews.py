"""Scripts about lists, selectors, events in both forms, and reviews."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.cluster.apiserver.compared_requests import Object, Step, get, pod, post, put, thing

PODS = "/api/v1/namespaces/{ns}/pods"
OLD = "/api/v1/namespaces/{ns}/events"
NEW = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

LABELS = (
    "app=a", "app in (a,b)", "app!=a", "!app", "app", "app notin (a),app", "app==b", "app>1",
    "app<1,app>0", "app in ()", "app=", "x notin (a)", "app in (a", "a b", "=", "app=a b", "app>x",
    "app=a,,", "a/b/c=d", "app=@", "!", "app=a=b", "(x)", "app in a", "app notin", "x,", ",",
)  # fmt: skip
FIELDS = (
    "metadata.name=a", "metadata.name!=a", "spec.nodeName=", "metadata.name==a", "=", "",
    "status.phase=Pending,metadata.name=b", "status.phase!=Running", "spec.hostNetwork=false",
    "spec.host=", "spec.schedulerName=default-scheduler", "metadata.name=a\\,b", "spec.foo=1", "a",
    "metadata.labels=x",
)  # fmt: skip
OTHER_FIELDS = (
    "/api/v1/nodes?fieldSelector=spec.foo%3Dfalse",
    "/api/v1/nodes?fieldSelector=metadata.namespace%3D",
    "/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3D{ns}",
    "/apis/apps/v1/namespaces/{ns}/deployments?fieldSelector=spec.foo%3Dfalse",
    "/apis/apps/v1/namespaces/{ns}/replicasets?fieldSelector=status.replicas%3D1",
    "/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=involvedObject.name%3Dx",
    "/api/v1/namespaces/{ns}/events?fieldSelector=regarding.name%3Dx",
    "/apis/batch/v1/namespaces/{ns}/jobs?fieldSelector=status.successful%3D1",
    "/api/v1/namespaces/{ns}/configmaps?fieldSelector=type%3D1",
)


def about(namespace: str = "{ns}") -> Object:
    return {"kind": "Pod", "namespace": namespace, "name": "p", "uid": "u"}


def new_event(name: str, **fields: Any) -> Object:
    usual = {
        "regarding": about(),
        "reason": "Scheduled",
        "note": "Successfully assigned",
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "action": "Binding",
        "type": "Normal",
        "reportingController": "default-scheduler",
        "reportingInstance": "i",
    }
    return thing("events.k8s.io/v1", "Event", name, **{**usual, **fields})


def old_event(name: str, **fields: Any) -> Object:
    usual = {
        "involvedObject": about(),
        "reason": "Pulled",
        "message": "done",
        "type": "Normal",
        "count": 2,
        "firstTimestamp": "2020-01-01T00:00:00Z",
        "lastTimestamp": "2020-01-01T00:00:05Z",
        "source": {"component": "kubelet", "host": "n"},
    }
    return thing("v1", "Event", name, **{**usual, **fields})


def review(group: str, kind: str, spec: Object | None, path: str = "") -> Step:
    value: Object = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind}
    if spec is not None:
        value["spec"] = spec
    return post(f"/apis/{group}.k8s.io/v1/{path or kind.lower() + 's'}", value)


ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"


def token_request(name: str = "a", meta: Object | None = None, **spec: Any) -> Step:
    value: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    value |= {"metadata": meta} if meta is not None else {}
    return post(f"{ACCOUNTS}/{name}/token", {**value, "spec": spec})


def bound(kind: str, name: str, **fields: Any) -> Object:
    return {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, **fields}}


WANTED = {"resourceAttributes": {"verb": "get", "resource": "pods"}}

SCRIPTS: dict[str, list[Step]] = {
    "selectors": [
        *(post(PODS, pod(name, labels={"app": name})) for name in "abc"),
        *(get(f"{PODS}?labelSelector={quote(text)}") for text in LABELS),
        *(get(f"{PODS}?fieldSelector={quote(text)}") for text in FIELDS),
        *(get(path) for path in OTHER_FIELDS),
    ],
    "options of lists": [
        post(PODS, pod("a")),
        get(f"{PODS}?limit=-1"),
        get(f"{PODS}?limit=x"),
        get(f"{PODS}?resourceVersion=0"),
        get(f"{PODS}?resourceVersion=0&limit=1"),
        get(f"{PODS}?resourceVersion=abc"),
        get(f"{PODS}?resourceVersionMatch=Exact"),
        get(f"{PODS}?resourceVersion=1&resourceVersionMatch=Foo"),
        get(f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact"),
        get(f"{PODS}?resourceVersion=99999999&timeoutSeconds=1"),
        get(f"{PODS}?sendInitialEvents=true"),
        get(f"{PODS}?watch=1&sendInitialEvents=true"),
        get(f"{PODS}?watch=1&resourceVersionMatch=NotOlderThan"),
        get(f"{PODS}?watch=1&continue=abc"),
        get(f"{PODS}?watch=1&resourceVersion=abc"),
        get(f"{PODS}?watch=true&timeoutSeconds=x"),
        get(f"{PODS}?watch=false"),
        get(f"{PODS}/a?resourceVersion=0"),
        get(f"{PODS}/a?resourceVersion=99999999"),
    ],
    "forms": [
        post(PODS, pod("a", labels={"app": "a"})),
        get(f"{PODS}/a", PARTIAL),
        get(PODS, PARTIAL.replace("Metadata;", "MetadataList;")),
        get(PODS, PARTIAL),
        get(f"{PODS}/a", PARTIAL.replace("Metadata;", "MetadataList;")),
        get(f"{PODS}/a", "*/*"),
        get(f"{PODS}/a", "application/cbor, application/json;q=0.1"),
    ],
    "events": [
        post(NEW, new_event("new")),
        post(OLD, old_event("old")),
        get(f"{OLD}/new"),
        get(f"{NEW}/old"),
        get(f"{NEW}/new"),
        get(OLD),
        get(NEW),
        get(f"{OLD}?fieldSelector=involvedObject.name%3Dp,reason=Pulled"),
        get(f"{NEW}?fieldSelector=regarding.name%3Dp,reportingController=default-scheduler"),
        get(f"{OLD}?fieldSelector=source%3Dkubelet"),
        post(OLD, old_event("bad", involvedObject=about("other"))),
        post(NEW, thing("events.k8s.io/v1", "Event", "bad", regarding=about(), note="m")),
        put(f"{OLD}/put", old_event("put")),
        post(
            NEW,
            new_event(
                "again", series={"count": 3, "lastObservedTime": "2020-01-01T00:00:09.000000Z"}
            ),
        ),
        get(f"{OLD}/again"),
    ],
    "reviews": [
        review("authorization", "SelfSubjectAccessReview", WANTED),
        review("authorization", "SelfSubjectAccessReview", {}),
        review("authorization", "SubjectAccessReview", WANTED),
        review("authorization", "SelfSubjectRulesReview", {}),
        review("authentication", "TokenReview", {"token": "x"}),
        review("authentication", "TokenReview", {}),
        get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        get("/apis/authorization.k8s.io/v1/nope"),
    ],
    "tokens": [
        post(ACCOUNTS, thing("v1", "ServiceAccount", "a")),
        token_request(),
        token_request(expirationSeconds=7200, audiences=["x", "y"]),
        token_request(meta={"name": "a", "namespace": "{ns}", "labels": {"app": "x"}}),
        token_request(meta={"name": "b"}),
        token_request(meta={"namespace": "other"}),
        token_request("nope"),
        token_request("nope", meta={"name": "b"}),
        token_request(expirationSeconds=599),
        token_request(expirationSeconds=0),
        token_request(expirationSeconds=-1),
        token_request(expirationSeconds=(1 << 32) + 1),
        token_request(expirationSeconds="x"),
        token_request("nope", expirationSeconds=1),
        post(f"{ACCOUNTS}/a/token", {}),
        post(f"{ACCOUNTS}/a/token", {"kind": "Pod", "apiVersion": "v1"}),
        post(f"{ACCOUNTS}/a/token?dryRun=All", {"spec": {}}),
        post(f"{ACCOUNTS}/a/token?dryRun=x", {"spec": {}}),
        get(f"{ACCOUNTS}/a/token"),
        put(f"{ACCOUNTS}/a/token", {}),
        post(PODS, pod("p", {"serviceAccountName": "a"})),
        post(PODS, pod("q", {"serviceAccountName": "a", "nodeName": "nowhere"})),
        post(PODS, pod("other", {"serviceAccountName": "b"})),
        post("/api/v1/namespaces/{ns}/secrets", thing("v1", "Secret", "s")),
        token_request(**bound("Pod", "p")),
        token_request(**bound("Pod", "q")),
        token_request(**bound("Pod", "p", uid="wrong")),
        token_request(**bound("Pod", "other")),
        token_request(**bound("Pod", "nope")),
        token_request(**bound("Secret", "s")),
        token_request(**bound("Secret", "s", uid="wrong")),
        token_request(**bound("Node", "nope")),
        token_request(**bound("ConfigMap", "x")),
        token_request(boundObjectRef={}),
        token_request(**bound("Pod", "p", apiVersion="apps/v1")),
        token_request(expirationSeconds=1, **bound("Pod", "nope")),
    ],
}
