"""What is not simulated says so, and the page about it lists every sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cluster.apiserver.compared_requests import TABLE, ask_ours, get, pod, post, thing

from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse
from mooring.cluster.apiserver.resources import NODES, PODS, RESOURCES, SERVICES
from mooring.cluster.apiserver.server import ApiServer

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cluster-limits.md"
HERE = "/api/v1/namespaces/default"


@pytest.fixture(scope="module")
def server() -> ApiServer:
    made = ApiServer()
    made.verbs.create(PODS, pod("p"), namespace="default")
    made.verbs.create(NODES, {"metadata": {"name": "n"}})
    return made


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{HERE}/pods/p/log", "runs no containers: there are no logs"),
        (f"{HERE}/pods/p/exec", "runs no containers: no command can be executed"),
        (f"{HERE}/pods/p/attach", "runs no containers: there is nothing to attach to"),
        (f"{HERE}/pods/p/portforward", "runs no containers: no port can be forwarded"),
        (f"{HERE}/pods/p/proxy/metrics", "requests can't be passed on to a pod"),
        (f"{HERE}/services/https:kubernetes:443/proxy", "simulates no network"),
        ("/api/v1/nodes/n/proxy/logs", "its kubelets have no API"),
    ],
)
def test_refuses_what_needs_containers(server: ApiServer, path: str, words: str) -> None:
    answer = ask_ours(server, get(path), "default")
    assert answer.status == 501
    assert words in answer.value["message"]


def test_misses_a_pod_first(server: ApiServer) -> None:
    answer = ask_ours(server, get(f"{HERE}/pods/nope/log"), "default")
    assert (answer.status, answer.value["message"]) == (404, 'pods "nope" not found')


def test_warns_about_what_is_only_stored(server: ApiServer) -> None:
    path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
    body = thing("networking.k8s.io/v1", "Ingress", spec={})
    step = post(path, body)
    request = ApiRequest(
        method="POST",
        path=path,
        query={},
        headers={"content-type": "application/json"},
        body=json.dumps(step.body).encode(),
    )
    answer = server.answer(request)
    assert isinstance(answer, ApiResponse)
    assert answer.status == 201
    assert "mooring simulates no network" in answer.headers["Warning"]


def test_lists_every_sentence_on_the_page() -> None:
    page = PAGE.read_text()
    warnings = {kind_of(one).warning for one in RESOURCES} - {""}
    assert len(warnings) == 5
    assert all(warning in page for warning in warnings)
    for kind in [one.kind for one in RESOURCES if kind_of(one).warning]:
        assert kind in page
    assert SERVICES.kind in page


def test_has_no_table_of_a_review(server: ApiServer) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = {"resourceAttributes": {"verb": "get"}}
    body = thing("authorization.k8s.io/v1", "SelfSubjectAccessReview", spec=asked)
    assert ask_ours(server, post(path, body, accept=TABLE), "default").status == 406
    assert ask_ours(server, post(path, body), "default").status == 201


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/apis/example.com/v1/namespaces/default/things", 404),
        ("/api/v1/namespaces/default/things", 404),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 400),
    ],
)
def test_misses_a_kind_that_is_not_served_in_protobuf_too(
    server: ApiServer, path: str, status: int
) -> None:
    unknown = b"k8s\0\n\x0b\n\x02v1\x12\x05Thing"
    headers = {"content-type": "application/vnd.kubernetes.protobuf"}
    answer = server.answer(
        ApiRequest(method="POST", path=path, query={}, headers=headers, body=unknown)
    )
    assert isinstance(answer, ApiResponse)
    assert answer.status == status
