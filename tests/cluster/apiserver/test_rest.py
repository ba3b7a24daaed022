"""Requests and answers: forms, warnings, health, and what is no object."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from tests.cluster.apiserver.compared_requests import MERGE, TABLE, Object, pod
from tests.cluster.apiserver.in_process_server import MAPS, PODS, InProcessServer

from mooring.cluster.apiserver._auth import is_health
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse, Caller
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.tokens import ISSUER

ROOT = "/api/v1/namespaces/default/pods"


@pytest.fixture
def server() -> InProcessServer:
    return InProcessServer()


def send(
    server: InProcessServer, method: str, path: str, body: Any = b"", **options: Any
) -> ApiResponse:
    headers = {"content-type": "application/json", **options.pop("headers", {})}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = ApiRequest(method=method, path=path, body=data, headers=headers, **options)
    reply = server.server.answer(request)
    assert isinstance(reply, ApiResponse), reply
    return reply


def value_of(reply: ApiResponse) -> Any:
    return json.loads(reply.body)


def test_an_apply_owns_its_fields_once(server: InProcessServer) -> None:
    headers, query = {"content-type": "application/apply-patch+yaml"}, {"fieldManager": "me"}
    made = send(server, "PATCH", f"{ROOT}/p", pod("p"), headers=headers, query=query)
    owners = value_of(made)["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in owners] == [("me", "Apply")]


def test_an_empty_text_gets_the_default(server: InProcessServer) -> None:
    made = value_of(send(server, "POST", ROOT, pod("p", {"restartPolicy": "", "dnsPolicy": ""})))
    assert (made["spec"]["restartPolicy"], made["spec"]["dnsPolicy"]) == ("Always", "ClusterFirst")


def test_answers_a_write_with_what_is_stored(server: InProcessServer) -> None:
    made = send(server, "POST", ROOT, pod("p"))
    item = server.store.get(PODS, "default", "p")
    assert item is not None
    assert (made.status, made.body) == (201, item.raw)
    assert send(server, "GET", f"{ROOT}/p").body == item.raw


def test_warns_of_fields_that_do_not_exist(server: InProcessServer) -> None:
    made = send(
        server, "POST", ROOT, pod("p", {"foo": 1, "containers": [{"name": "c", "image": "i"}]})
    )
    assert made.headers == {"Warning": '299 - "unknown field \\"spec.foo\\""'}
    assert "foo" not in value_of(made)["spec"]
    query = {"fieldValidation": "Ignore"}
    assert send(server, "POST", ROOT, pod("q", {"foo": 1}), query=query).headers == {}
    query = {"fieldValidation": "Strict"}
    refused = send(server, "POST", ROOT, pod("r", {"foo": 1}), query=query)
    assert refused.status == 400
    assert 'strict decoding error: unknown field "spec.foo"' in value_of(refused)["message"]


@pytest.mark.parametrize("media", ["application/yaml", "application/apply-patch+yaml"])
def test_warns_of_keys_that_yaml_has_twice(server: InProcessServer, media: str) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: x\n  a: y\n"
    path = "/api/v1/namespaces/default/configmaps"
    method, path = ("POST", path) if media.endswith("/yaml") else ("PATCH", f"{path}/c")
    query, headers = {"fieldManager": "me"}, {"content-type": media}
    made = send(server, method, path, text.encode(), headers=headers, query=query)
    assert made.headers == {"Warning": '299 - "line 6: key \\"a\\" already set in map"'}


def test_a_patch_warns_as_well(server: InProcessServer) -> None:
    server.create(PODS, "p")
    headers = {"content-type": MERGE}
    patched = send(server, "PATCH", f"{ROOT}/p", {"spec": {"foo": 1}}, headers=headers)
    assert (patched.status, "spec.foo" in patched.headers["Warning"]) == (200, True)
    query = {"fieldValidation": "Strict"}
    strict = send(server, "PATCH", f"{ROOT}/p", {"spec": {"foo": 1}}, headers=headers, query=query)
    assert strict.status == 422
    wrong = send(server, "PATCH", f"{ROOT}/p", {"metadata": {"labels": {"a": 5}}}, headers=headers)
    assert "cannot unmarshal number into Go struct field" in value_of(wrong)["message"]


def test_reads_yaml(server: InProcessServer) -> None:
    text = b"kind: ConfigMap\nmetadata: {name: m, annotations: {at: 2020-01-01}}\ndata: {a: b}\n"
    headers = {"content-type": "application/yaml"}
    made = send(server, "POST", "/api/v1/namespaces/default/configmaps", text, headers=headers)
    assert made.status == 201
    assert value_of(made)["metadata"]["annotations"] == {"at": "2020-01-01"}


@pytest.mark.parametrize("media", ["text/plain", "application/cbor"])
def test_refuses_bodies_it_can_not_read(server: InProcessServer, media: str) -> None:
    refused = send(server, "POST", ROOT, b"x", headers={"content-type": media})
    assert (refused.status, value_of(refused)["reason"]) == (415, "UnsupportedMediaType")


def test_shows_tables_of_one_and_of_many(server: InProcessServer) -> None:
    for name in "ab":
        server.create(PODS, name)
    headers = {"accept": TABLE}
    one = value_of(send(server, "GET", f"{ROOT}/a", headers=headers))
    many = value_of(send(server, "GET", ROOT, headers=headers, query={"limit": "1"}))
    assert [len(table["rows"]) for table in (one, many)] == [1, 1]
    assert many["metadata"]["remainingItemCount"] == 1
    gone = value_of(send(server, "DELETE", f"{ROOT}/a", headers=headers))
    assert gone["kind"] == "Table"


def test_tells_a_deletion_by_a_status_or_by_the_object(server: InProcessServer) -> None:
    server.create(MAPS, "m")
    server.create(PODS, "p")
    status = value_of(send(server, "DELETE", "/api/v1/namespaces/default/configmaps/m"))
    assert (status["kind"], status["status"], status["details"]["kind"]) == (
        "Status",
        "Success",
        "configmaps",
    )
    assert value_of(send(server, "DELETE", f"{ROOT}/p"))["kind"] == "Pod"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_is_healthy(server: InProcessServer, path: str) -> None:
    assert send(server, "GET", path).body == b"ok"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE"])
def test_health_is_only_read(server: InProcessServer, method: str) -> None:
    assert send(server, method, "/healthz").status == 405


@pytest.mark.parametrize("path", ["/healthz/../api/v1/pods", "/healthz/x", "/ping", "/livez/"])
def test_health_has_no_other_paths(server: InProcessServer, path: str) -> None:
    assert send(server, "GET", path).status == 404
    assert not is_health(path)


def test_writes_are_refused_while_they_can_not_be_saved(server: InProcessServer) -> None:
    server.store.unsaved = "disk is full"
    for method, path in (("POST", ROOT), ("DELETE", ROOT), ("PUT", f"{ROOT}/p")):
        assert send(server, method, path, pod("p")).status == 507
    binding = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert send(server, "POST", ROOT.replace("pods", "bindings"), binding).status == 507
    assert send(server, "GET", ROOT).status == 200
    assert send(server, "GET", "/livez").body == b"ok"
    ready = send(server, "GET", "/readyz")
    assert (ready.status, ready.body.splitlines()[0]) == (500, b"[-]data failed: disk is full")


def test_says_what_there_is(server: InProcessServer) -> None:
    assert value_of(send(server, "GET", "/version"))["major"] == "1"
    assert value_of(send(server, "GET", "/api"))["kind"] == "APIVersions"
    assert send(server, "GET", "/nowhere").content_type.startswith("text/plain")


def test_an_accident_is_told_and_logged(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*_: Any, **__: Any) -> Object:
        raise RuntimeError("out of coffee")

    monkeypatch.setattr(server.verbs, "create", break_down)
    with caplog.at_level(logging.ERROR):
        reply = send(server, "POST", ROOT, pod("p"))
    assert (reply.status, value_of(reply)["reason"]) == (500, "InternalError")
    assert [record.message for record in caplog.records] == ["a request handler failed"]


# --- reviews -----------------------------------------------------------------------------------


def review(
    server: InProcessServer, group: str, kind: str, spec: Object, caller: Caller | None = None
) -> Any:
    path = f"/apis/{group}.k8s.io/v1/{kind.lower()}s"
    body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
    options = {} if caller is None else {"caller": caller}
    reply = send(server, "POST", path, body, **options)
    assert reply.status == 201, reply
    return value_of(reply)["status"]


WANTED = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}


def test_everybody_may_everything_unless_a_policy_says_no(server: InProcessServer) -> None:
    guest = Caller(name="guest", groups=())
    assert review(server, "authorization", "SelfSubjectAccessReview", WANTED, guest) == {
        "allowed": True
    }
    server.server.reviews.authorize = lambda caller, asked: (
        f"{caller.name} may not {asked.verb} {asked.resource}"
    )
    denied = review(server, "authorization", "SelfSubjectAccessReview", WANTED, guest)
    assert denied == {"allowed": False, "reason": "guest may not delete pods"}
    assert review(server, "authorization", "SelfSubjectAccessReview", WANTED)["allowed"]
    other = review(server, "authorization", "SubjectAccessReview", {"user": "x", **WANTED})
    assert other["reason"] == "x may not delete pods"


def test_knows_tokens_by_the_hook() -> None:
    server = InProcessServer()
    server.server = ApiServer(
        authenticate={"secret": Caller(name="me", groups=("us",), uid="7")}.get
    )
    known = review(server, "authentication", "TokenReview", {"token": "secret"})
    assert known == {
        "authenticated": True,
        "user": {"username": "me", "groups": ["us"], "uid": "7"},
        "audiences": [ISSUER],
    }
    asked = {"token": "secret", "audiences": ["x"]}
    assert review(server, "authentication", "TokenReview", asked) == {
        "user": {},
        "error": "invalid bearer token",
    }
    assert "authenticated" not in review(server, "authentication", "TokenReview", {"token": "x"})


def test_says_who_is_asking(server: InProcessServer) -> None:
    seen = review(server, "authentication", "SelfSubjectReview", {}, Caller(name="me", groups=()))
    assert seen["userInfo"]["username"] == "me"
    rules = review(server, "authorization", "SelfSubjectRulesReview", {"namespace": "default"})
    assert rules["resourceRules"][0]["verbs"] == ["*"]


def test_lists_no_rules_where_a_hook_decides(server: InProcessServer) -> None:
    server.server.reviews.authorize = lambda caller, about: "no"
    asked = "authorization", "SelfSubjectRulesReview", {"namespace": "default"}
    assert review(server, *asked, Caller(name="me", groups=())) == {
        "resourceRules": [],
        "nonResourceRules": [],
        "incomplete": True,
        "evaluationError": "webhook authorizer does not support user rule resolution",
    }
    assert not review(server, *asked)["incomplete"]  # administrators may do everything
