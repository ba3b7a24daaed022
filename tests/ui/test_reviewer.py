"""The questions as they go over the wire, and what is read from the answers."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.garbage import NO_JSON

from mooring.api.auth import Extra, UserInfo
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden
from mooring.client.transport import Fence, Request, Response, Stream
from mooring.errors import ApiError
from mooring.ui.reviewer import ApiReviewer


class OneAnswer:
    """A transport that answers everything alike."""

    def __init__(self, status: int, body: Any) -> None:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.answer = Response(status, {}, raw)
        self.requests: list[Request] = []

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        self.requests.append(request)
        return self.answer

    def stream(self, request: Request) -> Any:
        raise NotImplementedError(Stream)

    async def close(self) -> None:
        """Nothing to let go of."""

    @property
    def asked(self) -> tuple[str, str, Any]:
        (request,) = self.requests
        return request.method, request.path, msgspec.json.decode(request.body)


def review(transport: OneAnswer, token: str = "t") -> UserInfo | None:
    return asyncio.run(ApiReviewer(ApiClient(transport)).review_token(token))


def allowed(transport: OneAnswer, user: UserInfo) -> bool:
    return asyncio.run(ApiReviewer(ApiClient(transport)).allowed(user, "get", "/metrics"))


def test_asks_whose_token_it_is() -> None:
    user = {"username": "jane", "uid": "7", "groups": ["a", "b"], "extra": {"k": ["v"]}}
    transport = OneAnswer(201, {"status": {"authenticated": True, "user": user}})
    assert review(transport, "secret") == UserInfo(
        username="jane", uid="7", groups=("a", "b"), extra=Extra({"k": ("v",)})
    )
    assert transport.asked == (
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
    assert review(OneAnswer(201, {"status": status})) is None


def test_asks_whether_a_user_may() -> None:
    transport = OneAnswer(201, {"status": {"allowed": True}})
    assert allowed(
        transport, UserInfo(username="jane", uid="7", groups=("a",), extra=Extra({"k": ("v",)}))
    )
    assert transport.asked == (
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
    assert not allowed(OneAnswer(201, {"status": status}), UserInfo(username="jane"))


def test_raises_what_the_server_refuses() -> None:
    with pytest.raises(Forbidden, match="tokenreviews is forbidden"):
        review(OneAnswer(403, {"kind": "Status", "message": "tokenreviews is forbidden"}))


@pytest.mark.parametrize("body", [[], "yes", {"status": {"allowed": "true"}}, *NO_JSON])
def test_does_not_guess_at_an_answer_it_cannot_read(body: Any) -> None:
    with pytest.raises(ApiError, match="can't be read"):
        allowed(OneAnswer(200, body), UserInfo(username="jane"))
    if isinstance(body, bytes):
        with pytest.raises(ApiError, match="can't be read"):
            review(OneAnswer(200, body))
