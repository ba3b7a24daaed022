"""The questions of `access` as API objects: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from typing import Final

import msgspec

from mooring.client.client import ApiClient
from mooring.ui.access import User

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


class ApiReviewer:
    """Asks an API server, or one about tokens and another about rights.

    It needs the rights of the ClusterRole system:auth-delegator.
    """

    def __init__(self, tokens: ApiClient, rights: ApiClient | None = None) -> None:
        self._tokens = tokens
        self._rights = rights or tokens

    async def review_token(self, token: str) -> User | None:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        answer = await self._tokens.ask(_TOKEN_REVIEWS, review, _TokenReview)
        user = answer.status.user
        if not (answer.status.authenticated and user.username):
            return None
        extra = tuple(sorted((user.extra or {}).items()))
        return User(user.username, user.uid, user.groups or (), extra)

    async def allowed(self, user: User, verb: str, path: str) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "nonResourceAttributes": {"path": path, "verb": verb},
                "user": user.name,
                "uid": user.uid,
                "groups": user.groups,
                "extra": dict(user.extra),
            },
        }
        answer = await self._rights.ask(_ACCESS_REVIEWS, review, _AccessReview)
        return answer.status.allowed
