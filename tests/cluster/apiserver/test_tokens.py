"""Tokens of ServiceAccounts: what they open, what a review says of them, and when they end.

The answers to TokenRequests are among the recorded ones.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.cluster.apiserver.compared_requests import (
    Answer,
    Object,
    RealServer,
    Step,
    ask_ours,
    comparable,
    delete,
    pod,
    post,
    thing,
)
from tests.cluster.apiserver.http_fixtures import in_loop, serving
from tests.controlplane.cluster import ControlPlane

from mooring.cluster.apiserver.server import ApiServer

ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
PODS = "/api/v1/namespaces/{ns}/pods"
Ask = Callable[[Step], Answer]


def create_account(name: str = "a") -> Step:
    return post(ACCOUNTS, thing("v1", "ServiceAccount", name))


def create_token(ask: Ask, name: str = "a", **spec: Any) -> str:
    answer = ask(post(f"{ACCOUNTS}/{name}/token", {"spec": spec}))
    assert answer.status == 201, answer
    return str(answer.value["status"]["token"])


def review(ask: Ask, token: str, *audiences: str, until: str = "") -> Answer:
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    answer = ask(post(path, {**kind, "spec": spec}, until=until))
    return Answer(answer.status, answer.value["status"])


def bound(kind: str, name: str) -> Object:
    return {"apiVersion": "v1", "kind": kind, "name": name}


def story(ask: Ask) -> Iterator[Answer]:
    """Reviews of tokens for other audiences, bound to objects, and of what is deleted later."""
    for step in (
        create_account(),
        create_account("b"),
        post(PODS, pod("p", {"serviceAccountName": "a", "nodeName": "nowhere"})),
        post("/api/v1/namespaces/{ns}/secrets", thing("v1", "Secret", "s")),
    ):
        assert ask(step).status == 201, str(step)
    plain = create_token(ask)
    other = create_token(ask, audiences=["x", "y"])
    to_pod = create_token(ask, boundObjectRef=bound("Pod", "p"))
    to_secret = create_token(ask, boundObjectRef=bound("Secret", "s"))
    of_b = create_token(ask, "b")
    for token, audiences in (
        (plain, ()),
        (plain, ("x",)),
        (other, ()),
        (other, ("x",)),
        (other, ("y", "z", "x")),
        (to_pod, ()),
        (to_secret, ()),
        (of_b, ()),
        ("a.b.c", ()),
        ("x", ("y",)),
    ):
        yield review(ask, token, *audiences)
    for path in (f"{PODS}/p?gracePeriodSeconds=0", "/api/v1/namespaces/{ns}/secrets/s"):
        assert ask(delete(path)).status == 200
    assert ask(delete(f"{ACCOUNTS}/b")).status == 200
    # Others of the same names; the Secret stays away.
    assert ask(create_account("b")).status == 201
    assert ask(post(PODS, pod("p", {"serviceAccountName": "a"}))).status == 201
    for token in (to_pod, to_secret, of_b):  # the real server remembers answers for some seconds
        yield review(ask, token, until="invalid bearer token")


def test_reviews_as_the_real_server_does(real_server: ControlPlane) -> None:
    real = RealServer(real_server.server, real_server.token, real_server.trusted)
    ours = ApiServer()
    namespace = f"like-{secrets.token_hex(4)}"
    begin = post("/api/v1/namespaces", thing("v1", "Namespace", namespace))
    try:
        assert real.ask(begin, namespace).status == 201
        assert ask_ours(ours, begin, namespace).status == 201
        theirs = [
            comparable(answer, namespace) for answer in story(lambda s: real.ask(s, namespace))
        ]
        own = [
            comparable(answer, namespace)
            for answer in story(lambda s: ask_ours(ours, s, namespace))
        ]
        assert own == theirs
    finally:
        real.close()


def test_says_whose_token_it_is_while_it_is_valid() -> None:
    now = 1_000_000.0
    server = ApiServer(clock=lambda: now)

    def ask(step: Step) -> Answer:
        return ask_ours(server, step, "default")

    assert ask(create_account()).status == 201
    token = create_token(ask, expirationSeconds=600)
    found = review(ask, token).value
    assert found["authenticated"] is True
    assert found["user"]["username"] == "system:serviceaccount:default:a"
    assert "system:serviceaccounts:default" in found["user"]["groups"]
    now += 599
    assert review(ask, token).value["authenticated"] is True
    now += 1
    assert "authenticated" not in review(ask, token).value
    assert server.tokens.caller(token) is None


def test_another_server_does_not_know_it() -> None:
    servers = [ApiServer(), ApiServer()]
    for server in servers:
        assert ask_ours(server, create_account(), "default").status == 201
    token = create_token(lambda step: ask_ours(servers[0], step, "default"))
    assert servers[0].tokens.caller(token) is not None
    assert servers[1].tokens.caller(token) is None


def test_a_pod_that_is_being_deleted_keeps_its_token_for_a_minute() -> None:
    now = 1_000_000.0
    server = ApiServer(clock=lambda: now)

    def ask(step: Step) -> Answer:
        return ask_ours(server, step, "default")

    ask(create_account())
    spec = {"serviceAccountName": "a", "nodeName": "n", "terminationGracePeriodSeconds": 30}
    ask(post(PODS, pod("p", spec)))
    token = create_token(ask, boundObjectRef=bound("Pod", "p"))
    ask(delete(f"{PODS}/p"))
    now += 89
    assert server.tokens.caller(token) is not None
    now += 2
    assert server.tokens.caller(token) is None


@in_loop
async def test_opens_the_server_for_its_account() -> None:
    server = ApiServer()
    ask_ours(server, create_account(), "default")
    token = create_token(lambda step: ask_ours(server, step, "default"))
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with serving(server) as (_, client):
        status, _, body = await client.ask(path, "POST", token=token, json=kind)
        assert status == 201
        user = json.loads(body)["status"]["userInfo"]
        assert user["username"] == "system:serviceaccount:default:a"
        assert [*user["extra"]] == ["authentication.kubernetes.io/credential-id"]
        elsewhere = create_token(lambda step: ask_ours(server, step, "default"), audiences=["x"])
        for wrong in (elsewhere, f"{token[:-8]}AAAAAAAA"):
            assert (await client.ask("/api/v1/pods", token=wrong))[0] == 401
        ask_ours(server, delete(f"{ACCOUNTS}/a"), "default")
        assert (await client.ask("/api/v1/pods", token=token))[0] == 401


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "é.é.é", "a." + "A" * 86, "A" * 5000])
def test_takes_any_text(text: str) -> None:
    assert ApiServer().tokens.caller(text) is None
