"""The permissions a process needs: RBAC rules that grant them, and a check that they are granted.

A scheduler that may not list nodes looks healthy and places nothing. So what it needs is asked for
at the start, every minute, and soon after any 403; what is missing is logged once, and is part of
`problem` until it is granted. The rules of a ClusterRole are made of the same list.

One review tells the rules that hold in the whole cluster, where all authorizers can list theirs, as
RBAC's can. What they do not grant is asked for one by one; and so is everything after a 403, and
what was missing before: rules never speak against an answer to the question itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mooring.api import auth, core
from mooring.api.coordination import Lease
from mooring.api.events import Event
from mooring.api.meta import Object
from mooring.client import paths
from mooring.client.client import ApiClient
from mooring.client.errors import OUTCOME_UNKNOWN
from mooring.errors import ApiError

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8  # reviews
# No namespace can have this name, so no RoleBinding is in it: what is allowed there is allowed by a
# ClusterRoleBinding, in all namespaces and on what is in none.
_EVERYWHERE: Final = "every.namespace"
_AFTER_START: Final = 0.5  # seconds; the first pods are bound meanwhile
_DEBOUNCE: Final = 1.0  # seconds; many 403s come together


class Permission(msgspec.Struct, frozen=True):
    """A verb on a resource; without namespace or name, on all of them."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        subresource = f"/{self.subresource}" if self.subresource else ""
        name = f' "{self.name}"' if self.name else ""
        namespace = f' in namespace "{self.namespace}"' if self.namespace else ""
        return f"{self.verb} {self.resource}{group}{subresource}{name}{namespace}"


class PermissionCheck:
    """Which of the `needed` permissions this process does not have, as the server says."""

    def __init__(
        self,
        client: ApiClient,
        needed: Sequence[Permission],
        *,
        every: float = 60.0,
        when_missing: float = 5.0,
    ) -> None:
        self.missing: tuple[Permission, ...] = ()
        self._client = client
        self.needed: tuple[Permission, ...] = tuple(dict.fromkeys(needed))
        self._every = every
        self._when_missing = min(when_missing, every)
        self._poked = asyncio.Event()
        self._is_down = False  # the server gives no answers now, but may soon
        self.unanswered: str = ""  # why the server could not be asked; logged once

    @property
    def problem(self) -> str:
        """What is missing, in a sentence; empty if nothing is."""
        if not self.missing:
            return ""
        return "missing permissions: " + "; ".join(map(str, self.missing))

    def poke(self) -> None:
        """Check again soon, because a request was forbidden."""
        self._poked.set()

    async def run(self, prepared: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Check again and again; at first soon after the process is `prepared`.

        Some fifty reviews would delay its start. A request that is forbidden has them made at once,
        and they are not put off for long: a process that stands by may not be prepared for hours.
        """
        was_forbidden = prepared is not None and await self._put_off(prepared)
        while True:
            await self.ask_all(one_by_one=was_forbidden)
            was_forbidden = await self._wait()

    async def _put_off(self, prepared: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Wait until the first check is due; whether a request was forbidden."""

        async def begin() -> None:
            await prepared()
            await asyncio.sleep(_AFTER_START)

        reasons: list[asyncio.Task[Any]] = [
            asyncio.create_task(begin()),
            asyncio.create_task(self._poked.wait()),
        ]
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait(reasons, timeout=self._when_missing, return_when=first)
        finally:
            for reason in reasons:
                reason.cancel()
            await asyncio.wait(reasons)
        return self._was_poked()

    async def _wait(self) -> bool:
        """Until the next check; many 403s do not make it more frequent. Whether there was one."""
        if self.missing or self._is_down:
            await asyncio.sleep(self._when_missing)
        else:
            loop = asyncio.get_running_loop()
            earliest = loop.time() + self._when_missing
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._poked.wait()
            if self._poked.is_set():
                await asyncio.sleep(max(_DEBOUNCE, earliest - loop.time()))
        return self._was_poked()

    def _was_poked(self) -> bool:
        was_poked = self._poked.is_set()
        self._poked.clear()
        return was_poked

    async def ask_all(self, *, one_by_one: bool = False) -> None:
        """Ask once; `missing` and `unanswered` say the outcome."""
        self._is_down = False
        if not self.needed:
            return  # a process that writes nothing sends no review
        granted = () if one_by_one else await self._granted_everywhere()
        turn = asyncio.Semaphore(_AT_ONCE)
        answers = await asyncio.gather(*(self._ask(need, granted, turn) for need in self.needed))
        if None in answers:
            # A review that is itself refused pokes us, and would do so for ever.
            self._poked.clear()
        else:
            self.unanswered = ""
        before = set(self.missing)
        self.missing = tuple(
            need
            for need, allowed in zip(self.needed, answers, strict=True)
            if allowed is False or (allowed is None and need in before)
        )
        for need in self.missing:
            if need not in before:
                log.warning("permission missing", extra=_named(need))
        for need in self.needed:
            if need in before and need not in self.missing:
                log.info("permission restored", extra={"v": 0, **_named(need)})

    async def _granted_everywhere(self) -> tuple[auth.ResourceRule, ...]:
        """The rules of the whole cluster; none if not all authorizers list theirs."""
        spec = auth.SelfSubjectRulesReviewSpec(namespace=_EVERYWHERE)
        review = auth.SelfSubjectRulesReview(spec=spec)
        path = paths.collection(auth.SelfSubjectRulesReview)
        try:
            answer = await self._client.ask(path, review, auth.SelfSubjectRulesReview)
        except ApiError:
            self._poked.clear()  # it may have been this review that was refused
            return ()
        return () if answer.status.incomplete else answer.status.resource_rules

    async def _ask(
        self, need: Permission, granted: Sequence[auth.ResourceRule], turn: asyncio.Semaphore
    ) -> bool | None:
        """Whether it is allowed; None if there was no answer, which says nothing."""
        if need not in self.missing and any(_allows(rule, need) for rule in granted):
            return True
        wanted = auth.ResourceAttributes(**msgspec.structs.asdict(need))
        spec = auth.SelfSubjectAccessReviewSpec(resource_attributes=wanted)
        review = auth.SelfSubjectAccessReview(spec=spec)
        path = paths.collection(auth.SelfSubjectAccessReview)
        async with turn:
            try:
                answer = await self._client.ask(path, review, auth.SelfSubjectAccessReview)
                return answer.status.allowed
            except ApiError as error:
                self._is_down |= isinstance(error, OUTCOME_UNKNOWN)
                if self.unanswered != (kind := type(error).__name__):
                    self.unanswered = kind
                    level = logging.DEBUG if getattr(error, "is_logged", False) else logging.WARNING
                    extra = {"error": str(error)}
                    log.log(level, "could not ask which permissions there are", extra=extra)
                return None


def _allows(rule: auth.ResourceRule, need: Permission) -> bool:
    """As rbac.RuleAllows."""
    path = f"{need.resource}/{need.subresource}" if need.subresource else need.resource
    resources = {"*", path, f"*/{need.subresource}"} if need.subresource else {"*", path}
    return (
        not {"*", need.verb}.isdisjoint(rule.verbs)
        and not {"*", need.group}.isdisjoint(rule.api_groups)
        and not resources.isdisjoint(rule.resources)
        and (not rule.resource_names or need.name in rule.resource_names)
    )


def _named(need: Permission) -> dict[str, str]:
    names = {"verb": need.verb, "resource": need.resource, "permission": str(need)}
    names |= {"group": need.group, "subresource": need.subresource, "namespace": need.namespace}
    return {key: value for key, value in names.items() if value}


def permissions_on(kind: type[Object], *verbs: str, subresource: str = "") -> list[Permission]:
    """Verbs on all objects of a kind."""
    resource, group = paths.resource_of(kind), paths.group_of(kind)
    return [Permission(verb, resource, group, subresource) for verb in verbs]


def binding_permissions(
    watched: Iterable[type[Object]] = (), more: Iterable[Permission] = (), *, reviews: bool
) -> list[Permission]:
    """In the whole cluster, for a process that binds pods to nodes and writes Events about it.

    `watched` are kinds besides pods and nodes; `reviews` is for endpoints that authenticate
    callers.
    """
    found = permissions_on(core.Pod, "get", "list", "watch")  # get: to look up a lost answer
    found += permissions_on(core.Node, "list", "watch")
    for kind in watched:
        found += permissions_on(kind, "list", "watch")
    found += permissions_on(core.Pod, "create", subresource="binding")
    found += more
    found += permissions_on(Event, "create", "patch")
    if reviews:
        found += review_permissions()
    return found


def lease_permissions(namespace: str, name: str) -> list[Permission]:
    """What leader election needs in the namespace of its lease."""
    [create] = permissions_on(Lease, "create")
    create = replace(create, namespace=namespace)  # without a name
    return [create, *(replace(create, verb=verb, name=name) for verb in ("get", "update"))]


def review_permissions() -> list[Permission]:
    """For endpoints that authenticate and authorise callers by reviews."""
    return [
        Permission("create", "tokenreviews", "authentication.k8s.io"),
        Permission("create", "subjectaccessreviews", "authorization.k8s.io"),
    ]


def rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """RBAC rules that grant exactly these; verbs on one resource share a rule."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for wanted in permissions:
        tail = f"/{wanted.subresource}" if wanted.subresource else ""
        key = wanted.group, wanted.resource + tail, wanted.name
        verbs.setdefault(key, set()).add(wanted.verb)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": [name]} if name else {}),
            "verbs": sorted(allowed),
        }
        for (group, resource, name), allowed in verbs.items()
    ]
