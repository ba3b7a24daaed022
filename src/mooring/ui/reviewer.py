"""Authentication and authorisation by an API server: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from msgspec import structs

from mooring.api.auth import (
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    TokenReview,
    TokenReviewSpec,
    UserInfo,
)
from mooring.client import paths
from mooring.client.client import ApiClient


class ApiReviewer:
    """Uses one API server, or one for tokens and another for permissions.

    It needs the rights of the ClusterRole system:auth-delegator.
    """

    def __init__(self, tokens: ApiClient, permissions: ApiClient | None = None) -> None:
        self._tokens = tokens
        self._permissions = permissions or tokens

    async def review_token(self, token: str) -> UserInfo | None:
        review = TokenReview(spec=TokenReviewSpec(token=token))
        answer = await self._tokens.ask(paths.collection(TokenReview), review, TokenReview)
        user = answer.status.user
        return user if answer.status.authenticated and user.username else None

    async def allowed(self, user: UserInfo, verb: str, path: str) -> bool:
        asked = NonResourceAttributes(path=path, verb=verb)
        return await self._review(user, SubjectAccessReviewSpec(non_resource_attributes=asked))

    async def may_access(self, user: UserInfo, resource: ResourceAttributes) -> bool:
        return await self._review(user, SubjectAccessReviewSpec(resource_attributes=resource))

    async def _review(self, user: UserInfo, asked: SubjectAccessReviewSpec) -> bool:
        spec = structs.replace(
            asked, user=user.username, uid=user.uid, groups=user.groups, extra=user.extra
        )
        review, kind = SubjectAccessReview(spec=spec), SubjectAccessReview
        answer = await self._permissions.ask(paths.collection(kind), review, kind)
        return answer.status.allowed
