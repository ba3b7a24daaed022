"""Who is let in: over real connections for credentials, by value for the rest."""

from __future__ import annotations

import json
import ssl
from typing import Any

import aiohttp
import pytest
from tests.cluster.apiserver.http_fixtures import Recorder, in_loop, serving

from mooring.client.certificates import Authority
from mooring.cluster.apiserver._auth import Attributes, Authenticator, attributes, by_certificate
from mooring.cluster.apiserver.requests import ADMIN, ApiRequest, Caller
from mooring.cluster.apiserver.server import ApiServer

JANE = Caller(name="jane", groups=("dev",))


def callers(recorder: Recorder) -> list[Caller]:
    return [request.caller for request in recorder.calls]


# --- who it is -----------------------------------------------------------------------------------


@in_loop
async def test_knows_callers_by_their_tokens() -> None:
    recorder = Recorder()
    async with serving(recorder, tokens={"t-admin": ADMIN, "t-jane": JANE}) as (_, client):
        await client.ask("/api/v1/pods")
        await client.ask("/api/v1/pods", token="t-jane")
        await client.ask("/api/v1/pods", headers={"Authorization": "bearer  t-jane"})
    jane = Caller(name="jane", groups=("dev", "system:authenticated"))
    assert callers(recorder) == [ADMIN, jane, jane]


@in_loop
async def test_makes_up_a_token_for_the_administrator() -> None:
    recorder = Recorder()
    async with serving(recorder) as (server, client), serving(recorder) as (other, _):
        assert len(server.token) > 40
        assert server.token != other.token
        await client.ask("/api")
    assert callers(recorder) == [ADMIN]


@in_loop
async def test_learns_tokens_while_it_runs() -> None:
    recorder = Recorder()
    async with serving(recorder) as (server, client):
        assert (await client.ask("/api", token="new"))[0] == 401
        server.authenticator.add("new", JANE)
        assert (await client.ask("/api", token="new"))[0] == 200
    assert [caller.name for caller in callers(recorder)] == ["jane"]


@in_loop
async def test_knows_callers_by_certificates_of_its_authority() -> None:
    recorder = Recorder()
    async with serving(
        recorder, identity=lambda server: server.client_certificate("jane", "dev", "ops")
    ) as (_, client):
        await client.ask("/api/v1/pods", token="")
        await client.ask("/api/v1/pods", token="nonsense")  # the certificate is enough
    jane = Caller(name="jane", groups=("dev", "ops", "system:authenticated"))
    assert callers(recorder) == [jane, jane]


@in_loop
async def test_does_not_accept_certificates_of_others() -> None:
    recorder = Recorder()
    stranger = Authority("another authority").client("system:admin", ["system:masters"])
    async with serving(recorder, identity=lambda server: stranger) as (_, client):
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await client.ask("/api/v1/pods", token="")
    assert recorder.calls == []


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer nonsense", "Basic YWRtaW46YWRtaW4=", "nonsense"]
)
@in_loop
async def test_refuses_strangers(header: str) -> None:
    recorder = Recorder()
    async with serving(recorder) as (_, client):
        headers = {"Authorization": header} if header else {}
        for path in ("/api/v1/pods", "/", "/versions", "/healthzz", "/version%2Fx"):
            status, answer, body = await client.ask(path, token="", headers=headers)
            assert status == 401
            assert answer.headers["Content-Type"] == "application/json"
            assert json.loads(body) == {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "Unauthorized",
                "reason": "Unauthorized",
                "code": 401,
            }
    assert recorder.calls == []


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping", "/version"])
@in_loop
async def test_shows_health_and_version_to_everybody(path: str) -> None:
    recorder = Recorder()
    async with serving(recorder, authorize=lambda caller, asked: "no") as (_, client):
        assert (await client.ask(path, token=""))[0] == 200
    assert [caller.name for caller in callers(recorder)] == ["system:anonymous"]


def test_reads_nobody_from_a_certificate_without_a_name() -> None:
    assert by_certificate({"subject": ((("organizationName", "system:masters"),),)}) is None
    assert Authenticator().caller("", {"subject": ()}) is None


# --- what he may do ------------------------------------------------------------------------------


@in_loop
async def test_lets_a_hook_refuse_all_but_administrators() -> None:
    recorder, asked_for = Recorder(), []

    def authorize(caller: Caller, asked: Attributes) -> str:
        asked_for.append((caller.name, asked.verb, asked.resource))
        return "" if asked.verb == "get" else "only looking is allowed"

    tokens = {"t-admin": ADMIN, "t-jane": JANE}
    async with serving(recorder, tokens=tokens, authorize=authorize) as (_, client):
        path = "/api/v1/namespaces/default/pods/web"
        assert (await client.ask(path, "DELETE"))[0] == 200
        assert (await client.ask(path, token="t-jane"))[0] == 200
        status, _, body = await client.ask(path, "DELETE", token="t-jane")
        assert (status, json.loads(body)["reason"]) == (403, "Forbidden")
        assert json.loads(body)["message"] == (
            'pods "web" is forbidden: User "jane" cannot delete resource "pods" in API group ""'
            ' in the namespace "default": only looking is allowed'
        )
    assert asked_for == [("jane", "get", "pods"), ("jane", "delete", "pods")]
    assert [request.method for request in recorder.calls] == ["DELETE", "GET"]


@in_loop
async def test_tells_the_same_to_those_who_ask_as_it_does_itself() -> None:
    tokens = {"t-admin": ADMIN, "t-jane": JANE}
    server = ApiServer()
    async with serving(
        server,
        tokens=tokens,
        authorize=lambda caller, asked: "no nodes" if asked.resource == "nodes" else "",
    ) as (_, client):
        reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
        for token, name in (("t-jane", "jane"), ("t-admin", "system:admin"), ("unknown", None)):
            asked = {"spec": {"token": token}}
            _, _, body = await client.ask(reviews, "POST", json=asked)
            assert json.loads(body)["status"]["user"].get("username") == name
        reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        for resource, allowed in (("nodes", False), ("pods", True)):
            wanted = {"verb": "list", "version": "v1", "resource": resource}
            review = {"spec": {"resourceAttributes": wanted}}
            _, _, body = await client.ask(reviews, "POST", token="t-jane", json=review)
            assert json.loads(body)["status"]["allowed"] is allowed
            status, _, _ = await client.ask(f"/api/v1/{resource}", token="t-jane")
            assert status == (200 if allowed else 403)


@in_loop
async def test_allows_everything_without_a_hook() -> None:
    async with serving(Recorder(), tokens={"t-jane": JANE}) as (_, client):
        assert (await client.ask("/api/v1/nodes/n", "DELETE"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/api/v1/pods", {}, {"verb": "list", "resource": "pods"}),
        ("GET", "/api/v1/pods", {"watch": "true"}, {"verb": "watch", "resource": "pods"}),
        ("GET", "/api/v1/nodes/n", {}, {"verb": "get", "resource": "nodes", "name": "n"}),
        ("DELETE", "/api/v1/nodes", {}, {"verb": "deletecollection", "resource": "nodes"}),
        (
            "POST",
            "/api/v1/namespaces/a/pods/p/binding",
            {},
            {
                "verb": "create",
                "resource": "pods",
                "subresource": "binding",
                "namespace": "a",
                "name": "p",
            },
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/d",
            {},
            {
                "verb": "patch",
                "group": "apps",
                "resource": "deployments",
                "namespace": "a",
                "name": "d",
            },
        ),
        (
            "PUT",
            "/api/v1/namespaces/a/status",
            {},
            {
                "verb": "update",
                "resource": "namespaces",
                "subresource": "status",
                "namespace": "a",
                "name": "a",
            },
        ),
        ("GET", "/api/v1/namespaces", {}, {"verb": "list", "resource": "namespaces"}),
        ("GET", "/apis/apps/v1", {}, {"verb": "get"}),
        ("GET", "/metrics", {}, {"verb": "get"}),
    ],
)
def test_reads_what_is_wanted_from_method_and_path(
    method: str, path: str, query: dict[str, str], expected: dict[str, Any]
) -> None:
    request = ApiRequest(method=method, path=path, query=query)
    assert attributes(request) == Attributes(path=path, **expected)
