"""The questions as they go over the wire, and what is read from the answers."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.faulty_transport import FaultyServer, Garbage
from tests.garbage import NO_JSON

from mooring.api.auth import Extra, UserInfo
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden
from mooring.errors import ApiError
from mooring.ui.reviewer import ApiReviewer


def answering(status: int, body: Any) -> FaultyServer:
    """A server that answers everything alike."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    server = FaultyServer()
    server.fault = lambda asked: Garbage(raw, status)
    return server


def sent(server: FaultyServer) -> tuple[str, str, Any]:
    (asked,) = server.asked
    return asked.request.method, asked.path, asked.body


def review(server: FaultyServer, token: str = "t") -> UserInfo | None:
    return asyncio.run(ApiReviewer(ApiClient(server)).review_token(token))


def allowed(server: FaultyServer, user: UserInfo) -> bool:
    return asyncio.run(ApiReviewer(ApiClient(server)).allowed(user, "get", "/metrics"))


def test_asks_whose_token_it_is() -> None:
    user = {"username": "jane", "uid": "7", "groups": ["a", "b"], "extra": {"k": ["v"]}}
    server = answering(201, {"status": {"authenticated": True, "user": user}})
    assert review(server, "secret") == UserInfo(
        username="jane", uid="7", groups=("a", "b"), extra=Extra({"k": ("v",)})
    )
    assert sent(server) == (
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": "secret"},
        },
    )


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": False, "error": "token expired"},
        {"user": {"username": "jane"}},
        {"authenticated": True, "user": {}},
        {"authenticated": True},
    ],
)
def test_knows_nobody_without_a_clear_yes(status: Any) -> None:
    assert review(answering(201, {"status": status})) is None


def test_asks_whether_a_user_may() -> None:
    server = answering(201, {"status": {"allowed": True}})
    assert allowed(
        server, UserInfo(username="jane", uid="7", groups=("a",), extra=Extra({"k": ("v",)}))
    )
    assert sent(server) == (
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                "user": "jane",
                "uid": "7",
                "groups": ["a"],
                "extra": {"k": ["v"]},
            },
        },
    )


@pytest.mark.parametrize("status", [{}, {"allowed": False}, {"denied": True}])
def test_allows_nothing_without_a_clear_yes(status: Any) -> None:
    assert not allowed(answering(201, {"status": status}), UserInfo(username="jane"))


def test_raises_what_the_server_refuses() -> None:
    with pytest.raises(Forbidden, match="tokenreviews is forbidden"):
        review(answering(403, {"kind": "Status", "message": "tokenreviews is forbidden"}))


@pytest.mark.parametrize("body", [[], "yes", {"status": {"allowed": "true"}}, *NO_JSON])
def test_does_not_guess_at_an_answer_it_cannot_read(body: Any) -> None:
    with pytest.raises(ApiError, match="can't be read"):
        allowed(answering(200, body), UserInfo(username="jane"))
    if isinstance(body, bytes):
        with pytest.raises(ApiError, match="can't be read"):
            review(answering(200, body))
