"""`kubectl --as`: who may, is taken for whom he names."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cluster.apiserver.http_fixtures import Recorder, serving

from mooring.cluster.apiserver._auth import Attributes, impersonated
from mooring.cluster.apiserver.requests import ADMIN, Caller
from mooring.cluster.apiserver.server import ApiServer

TOKENS = {"t-admin": ADMIN, "t-jane": Caller(name="jane", groups=("dev",))}


def asked_as(headers: Any, token: str = "t-admin", **options: Any) -> tuple[Any, list[Caller]]:
    """The status, or what was said instead, and for whom the server took the caller."""
    recorder = Recorder()

    async def story() -> Any:
        async with serving(recorder, tokens=TOKENS, **options) as (_, client):
            status, _, body = await client.ask("/api/v1/pods", token=token, headers=headers)
            return status if status == 200 else (status, json.loads(body)["message"])

    return asyncio.run(story()), [request.caller for request in recorder.calls]


def may_not(caller: Caller, asked: Attributes) -> str:
    return "no rule allows it" if asked.verb == "impersonate" else ""


def test_takes_the_caller_for_whom_he_names() -> None:
    bob = Caller("bob", ("system:authenticated",))
    assert asked_as({"Impersonate-User": "bob"}) == (200, [bob])


def test_takes_over_groups_and_uid() -> None:
    wanted = impersonated(ADMIN, "bob", ["ops", "dev"], "7", None)
    assert wanted == Caller("bob", ("ops", "dev", "system:authenticated"), "7")


def test_reads_every_group_that_is_named() -> None:
    async def story() -> list[str]:
        async with serving(ApiServer(), tls=False) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.url).port)
            review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
            lines = [
                "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1",
                "Host: x",
                f"Authorization: Bearer {server.token}",
                "Impersonate-User: bob",
                "Impersonate-Group: ops",
                "Impersonate-Group: dev",
                "Content-Type: application/json",
                f"Content-Length: {len(review)}",
                "Connection: close",
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode() + review)
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            found: list[str] = json.loads(answer.partition(b"\r\n\r\n")[2])["status"]["userInfo"][
                "groups"
            ]
            return found

    assert asyncio.run(story()) == ["ops", "dev", "system:authenticated"]


def test_puts_service_accounts_into_their_groups() -> None:
    name = "system:serviceaccount:web:robot"
    groups = ("system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated")
    assert asked_as({"Impersonate-User": name}) == (200, [Caller(name, groups)])


def test_refuses_who_may_not() -> None:
    said, callers = asked_as({"Impersonate-User": "bob"}, "t-jane", authorize=may_not)
    assert said == (
        403,
        'users "bob" is forbidden: User "jane" cannot impersonate resource "users" in API group '
        '"" at the cluster scope: no rule allows it',
    )
    assert callers == []


def test_refuses_groups_without_a_user() -> None:
    said, callers = asked_as({"Impersonate-Group": "ops"})
    assert said == (400, "requested ops without impersonating a user name")
    assert callers == []


@pytest.mark.parametrize("token", ["", "unknown"])
def test_lets_nobody_in_who_is_not_known_himself(token: str) -> None:
    assert asked_as({"Impersonate-User": "bob"}, token) == ((401, "Unauthorized"), [])


def test_leaves_others_to_what_the_named_one_may() -> None:
    def only_admins(caller: Caller, asked: Attributes) -> str:
        return f"{caller.name} is no admin"

    said, callers = asked_as({"Impersonate-User": "bob"}, authorize=only_admins)
    assert said[0] == 403
    assert 'User "bob" cannot list resource "pods"' in said[1]
    assert callers == []
