"""Authentication and authorisation, delegated to the cluster.

    path on the list of open ones ------------------------------------------> yes
    client certificate, or bearer token that TokenReview knows, or else 401
        in the group system:masters ----------------------------------------> yes
        SubjectAccessReview on path and verb, or on resources: 403 or ------> yes

If the API server does not answer, the request is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from mooring.api.auth import ResourceAttributes, UserInfo
from mooring.errors import ApiError

log = logging.getLogger(__name__)
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

OPEN_PATHS: Final = ("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*")
MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"

_MOST_KEPT: Final = 1_000  # answers of each kind
_PATIENCE: Final = 10.0  # seconds for the API server to answer


class Reviewer(Protocol):
    """Authenticates tokens and authorises requests; both raise ApiError without an answer."""

    async def review_token(self, token: str) -> UserInfo | None:
        """The user of a token; None if it is not valid."""
        ...

    async def allowed(self, user: UserInfo, verb: str, path: str) -> bool:
        """Whether this user may do this."""
        ...


class ResourceReviewer(Protocol):
    """Authorises requests for resources; raises ApiError without an answer."""

    async def may_access(self, user: UserInfo, resource: ResourceAttributes) -> bool:
        """Whether this user may do this."""
        ...


class Denial(msgspec.Struct, frozen=True):
    """A refusal, as the code, reason and message of a Status."""

    code: int
    reason: str
    message: str


class Permitted(msgspec.Struct, frozen=True):
    """What an authenticated user may do of what was asked."""

    username: str
    answers: tuple[bool, ...]

    def denial(self, one: ResourceAttributes) -> Denial:
        """If it may not do enough: what it needs."""
        text = f'forbidden: User "{self.username}" cannot {_described(one)}, which this path needs'
        return Denial(403, "Forbidden", text)


ANONYMOUS: Final = UserInfo()
UNAUTHORIZED: Final = Denial(401, "Unauthorized", "Unauthorized")


class _NoAnswer(Exception):
    """The API server did not answer."""


class _TtlCache(Generic[K, V]):
    """Keeps at most `most` values, each for its own number of seconds."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most = most
        self._now = now
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()  # -> value, expiry

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is None:
            return None
        value, end = found
        if self._now() >= end:
            del self._kept[key]
            return None
        return value

    def put(self, key: K, value: V, seconds: float) -> None:
        self._kept[key] = (value, self._now() + seconds)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class Access:
    """Calls a reviewer, and caches its answers for some seconds.

    `open_paths` need no credentials; a `*` at their end stands for anything.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        *,
        resources: ResourceReviewer | None = None,
        open_paths: Iterable[str] = OPEN_PATHS,
        token_ttl: float = 10.0,
        allowed_ttl: float = 10.0,
        denied_ttl: float = 10.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reviewer = reviewer
        self._resources = resources
        paths = tuple(open_paths)
        self._open = frozenset(path for path in paths if not path.endswith("*"))
        self._open_below = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._token_ttl = token_ttl
        self._allowed_ttl = allowed_ttl
        self._denied_ttl = denied_ttl
        self._users: _TtlCache[bytes, UserInfo] = _TtlCache(_MOST_KEPT, now)
        self._answers: _TtlCache[Hashable, bool] = _TtlCache(_MOST_KEPT, now)
        self._salt = os.urandom(32)  # the cache holds no tokens, only keyed hashes of them
        self._complaint = ""  # the last one that was logged

    async def check(
        self, verb: str, path: str, *, token: str = "", certified: UserInfo | None = None
    ) -> Denial | None:
        """None if the request is allowed; `certified` is the user of a client certificate."""
        if self.is_open(path):
            return None

        async def review(user: UserInfo) -> str:
            allowed = self._reviewer.allowed
            if await self._is_allowed((user, verb, path), lambda: allowed(user, verb, path)):
                return ""
            return f'cannot {verb} path "{path}"'

        return await self._authorize(token, certified, review)

    async def permitted(
        self,
        wanted: Sequence[ResourceAttributes],
        *,
        token: str = "",
        certified: UserInfo | None = None,
    ) -> Permitted | Denial:
        """Which of these a user may do, on whatever path; open paths make no difference."""
        answers: list[bool] = []

        async def review(user: UserInfo) -> str:
            for one in wanted:
                ask = partial(self._may_access, user, one)
                answers.append(await self._is_allowed((user, one), ask))
            return ""

        user: list[UserInfo] = []
        denial = await self._authorize(token, certified, review, user.append)
        if denial is not None:
            return denial
        # Without a review, the user may do anything.
        return Permitted(user[0].username, tuple(answers) or (True,) * len(wanted))

    async def _authorize(
        self,
        token: str,
        certified: UserInfo | None,
        review: Callable[[UserInfo], Awaitable[str]],
        known: Callable[[UserInfo], None] = lambda user: None,
    ) -> Denial | None:
        """`review` says what an authenticated user may not do; "" if nothing is missing."""
        try:
            user = certified or await self._user_of(token)
            if user == ANONYMOUS:
                return UNAUTHORIZED
            known(user)
            missing = "" if MASTERS in user.groups else await review(user)
        except _NoAnswer as error:
            return _internal(error)
        if not missing:
            return None
        return Denial(403, "Forbidden", f'forbidden: User "{user.username}" {missing}')

    async def _may_access(self, user: UserInfo, resource: ResourceAttributes) -> bool:
        return self._resources is not None and await self._resources.may_access(user, resource)

    def is_open(self, path: str) -> bool:
        """Whether a path needs no credentials."""
        return path in self._open or path.startswith(self._open_below)

    async def _user_of(self, token: str) -> UserInfo:
        if not token:
            return ANONYMOUS
        key = hashlib.blake2b(token.encode(errors="surrogateescape"), key=self._salt).digest()
        user = self._users.get(key)
        if user is None:
            user = await self._ask(self._reviewer.review_token(token)) or ANONYMOUS
            self._users.put(key, user, self._token_ttl)
        return user

    async def _is_allowed(self, key: Hashable, ask: Callable[[], Awaitable[bool]]) -> bool:
        answer = self._answers.get(key)
        if answer is None:
            answer = await self._ask(ask())
            self._answers.put(key, answer, self._allowed_ttl if answer else self._denied_ttl)
        return answer

    async def _ask(self, question: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(_PATIENCE):
                answer = await question
        except (ApiError, TimeoutError) as error:
            what = type(error).__name__
            if self._complaint != (complaint := f"{what}: {error}"):
                self._complaint = complaint
                extra = {"error": complaint}
                log.warning("the API server could not review a request", extra=extra)
            # The client has not been authenticated, so it gets no details.
            text = f"the API server could not review this request ({what})"
            raise _NoAnswer(text) from error
        self._complaint = ""
        return answer


def _described(one: ResourceAttributes) -> str:
    where = f'in the namespace "{one.namespace}"' if one.namespace else "in all namespaces"
    return f"{one.verb} {one.resource} {where}"


def _internal(error: _NoAnswer) -> Denial:
    return Denial(500, "InternalError", f"Internal error occurred: {error}")


def bearer_token(header: str) -> str:
    """The token of an Authorization header; "" if it holds none."""
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def certified_user(certificate: Mapping[str, Any] | None) -> UserInfo | None:
    """The user of a verified certificate, in the form of `SSLObject.getpeercert`."""
    subject = [pair for names in (certificate or {}).get("subject", ()) for pair in names]
    common = [value for key, value in subject if key == "commonName"]
    if not (common and common[-1]):
        return None
    groups = (value for key, value in subject if key == "organizationName")
    return UserInfo(username=common[-1], groups=(*groups, AUTHENTICATED))
