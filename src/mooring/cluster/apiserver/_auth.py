"""Authentication and authorisation.

    client certificate of our authority ─┐
    known bearer token ──────────────────┤
    token of a ServiceAccount ───────────┴─▶ Caller ─▶ in system:masters ─────────▶ allowed
    none: 401, except health and version               otherwise: the hook, if there is one

A caller that may impersonate (`kubectl --as`) acts with the permissions of the user it names.

There is no RBAC in the embedded server: all its users belong to one developer. Roles and bindings
can be created and read like any other object, and have no effect.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from mooring.client.errors import Forbidden, Unauthorized
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.paths import split_path
from mooring.cluster.apiserver.requests import ApiRequest, Caller

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
ANONYMOUS: Final = Caller(name="system:anonymous", groups=("system:unauthenticated",))

HEALTH: Final = ("/healthz", "/livez", "/readyz")

_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNTS: Final = "system:serviceaccounts"

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get"}
_COLLECTION_VERBS: Final = {"get": "list", "delete": "deletecollection"}


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """What a request does, in the terms of a SubjectAccessReview."""

    verb: str
    path: str
    group: str = ""
    resource: str = ""  # empty for paths that are not resources, such as /metrics
    subresource: str = ""
    namespace: str = ""
    name: str = ""


Authorize = Callable[[Caller, Attributes], str]
"""The reason why a caller may not do this; empty if it may."""


class Authenticator:
    """Knows tokens, and reads certificates that the TLS layer has verified."""

    def __init__(self, tokens: Mapping[str, Caller] | None = None) -> None:
        self.accounts: Callable[[str], Caller | None] | None = None  # tokens of ServiceAccounts
        self._salt = os.urandom(32)
        # By digest, so that the time of a lookup reveals nothing about the tokens.
        self._callers: dict[bytes, Caller] = {}
        for token, caller in (tokens or {}).items():
            self.add(token, caller)

    def add(self, token: str, caller: Caller) -> None:
        """Accept this token from now on, as this caller."""
        self._callers[self._digest(token)] = _authenticated(caller)

    def by_token(self, token: str) -> Caller | None:
        """The caller of a token that was added."""
        return self._callers.get(self._digest(token))

    def caller(self, authorization: str, certificate: Mapping[str, Any] | None) -> Caller | None:
        """By certificate, as `SSLObject.getpeercert` gives it, or else by Authorization header."""
        if certificate:
            return by_certificate(certificate)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token.strip()
        return self.by_token(token) or (self.accounts(token) if self.accounts is not None else None)

    def _digest(self, token: str) -> bytes:
        encoded = token.encode(errors="surrogateescape")
        return hashlib.blake2b(encoded, key=self._salt, digest_size=16).digest()


def by_certificate(certificate: Mapping[str, Any]) -> Caller | None:
    """The common name is the user, organizations are the groups."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return _authenticated(Caller(name=name, groups=groups)) if name else None


def _authenticated(caller: Caller) -> Caller:
    if AUTHENTICATED in caller.groups:
        return caller
    return msgspec.structs.replace(caller, groups=(*caller.groups, AUTHENTICATED))


def is_health(path: str) -> bool:
    """Whether a path is a health check, or the `ping` below it."""
    return path.removesuffix("/ping") in HEALTH


def admit(caller: Caller | None, path: str) -> Caller:
    """The caller; ANONYMOUS for public paths; otherwise raises Unauthorized."""
    if caller is not None:
        return caller
    if path == "/version" or is_health(path):
        return ANONYMOUS
    raise Unauthorized("Unauthorized", code=401, reason="Unauthorized")


def check(authorize: Authorize, request: ApiRequest) -> None:
    """Ask the hook; raises Forbidden."""
    if request.caller is not ANONYMOUS:
        _check(authorize, request.caller, attributes(request))


def _check(authorize: Authorize | None, caller: Caller, asked: Attributes) -> None:
    if authorize is not None and MASTERS not in caller.groups:
        _refuse(caller, asked, authorize(caller, asked))


def _refuse(caller: Caller, asked: Attributes, why: str) -> None:
    if why:
        message = f"{_forbidden_message(caller, asked)}: {why}"
        raise Forbidden(message, code=403, reason="Forbidden")


# --- impersonation -------------------------------------------------------------------------------


def impersonated(
    caller: Caller, user: str, groups: Sequence[str], uid: str, authorize: Authorize | None
) -> Caller:
    """The user that the caller impersonates, or the caller; Forbidden if that is not allowed."""
    if not (user or groups or uid):
        return caller
    if not user:
        wanted = ", ".join(groups) or uid
        raise bad_request(f"requested {wanted} without impersonating a user name")
    account = user.removeprefix(_ACCOUNT).split(":") if user.startswith(_ACCOUNT) else []
    is_account = len(account) == 2
    if is_account:
        resource, namespace, name = "serviceaccounts", account[0], account[1]
    else:
        resource, namespace, name = "users", "", user
    _check_impersonation(authorize, caller, resource, namespace, name)
    for group in groups:
        _check_impersonation(authorize, caller, "groups", "", group)
    if is_account and not groups:
        groups = (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}")
    found = Caller(name=user, groups=tuple(groups), uid=uid)
    return found if user == ANONYMOUS.name else _authenticated(found)


def _check_impersonation(
    authorize: Authorize | None, caller: Caller, resource: str, namespace: str, name: str
) -> None:
    asked = Attributes(
        verb="impersonate", path="", resource=resource, namespace=namespace, name=name
    )
    if caller is ANONYMOUS:
        _refuse(caller, asked, "the caller is not authenticated")
    _check(authorize, caller, asked)


# --- attributes ------------------------------------------------------------------------------


def _forbidden_message(caller: Caller, asked: Attributes) -> str:
    who = f'User "{caller.name}" cannot {asked.verb}'
    if not asked.resource:
        return f'forbidden: {who} path "{asked.path}"'
    qualified = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    one = f'{qualified} "{asked.name}"' if asked.name else qualified
    sub = f"/{asked.subresource}" if asked.subresource else ""
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    resource = f'resource "{asked.resource}{sub}" in API group "{asked.group}"'
    return f"{one} is forbidden: {who} {resource} {where}"


def attributes(request: ApiRequest) -> Attributes:
    """The attributes of a request, from its method and path."""
    verb = _VERBS.get(request.method, request.method.lower())
    place = split_path(request.path)
    if place is None:
        return Attributes(verb=verb, path=request.path)
    group, _, namespace, rest = place
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]  # as the real server has it: a namespace is in itself
    resource, name, subresource = (*rest, "", "")[:3]
    if not name:
        verb = _COLLECTION_VERBS.get(verb, verb)
    if verb in ("get", "list") and request.query.get("watch") in ("true", "1"):
        verb = "watch"
    return Attributes(
        verb=verb,
        path=request.path,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )
