"""Tokens of ServiceAccounts: issued to a TokenRequest, and checked when a client shows one.

    POST …/serviceaccounts/NAME/token ─▶ `create` ─▶ signed claims (JWT, ES256)
    Authorization: Bearer …           ─▶ `caller` ─▶ system:serviceaccount:NAMESPACE:NAME

The key is generated with the first token and never leaves the process: tokens end with it. A token
is also over when it expires, and when its ServiceAccount or the object that it is bound to is gone.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from mooring.api.meta import format_time, parse_time
from mooring.client.errors import ConflictError
from mooring.cluster.apiserver.decoding import decode_unstored
from mooring.cluster.apiserver.errors import (
    bad_request,
    invalid_kind,
    invalid_value,
    not_found,
    other_namespace,
)
from mooring.cluster.apiserver.requests import Caller
from mooring.cluster.apiserver.resources import NODES, PODS, Resource, known
from mooring.cluster.apiserver.store import Item, Object

if TYPE_CHECKING:
    from mooring.cluster.apiserver.verbs import Verbs

SERVICE_ACCOUNTS: Final = known("serviceaccounts")
SECRETS: Final = known("secrets")
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""Who issues the tokens, and whom they are for unless a TokenRequest says otherwise."""

_GROUP: Final = "authentication.k8s.io"
_BINDABLE: Final = {"Pod": PODS, "Node": NODES, "Secret": SECRETS}
_HOUR: Final = 3600  # seconds; as the default of kube-apiserver
_SHORTEST: Final = 600  # seconds
_LONGEST: Final = 1 << 32  # seconds
_LEEWAY: Final = 60.0  # seconds for which a token outlives an object that is being deleted
_COORDINATE: Final = 32  # bytes of each half of a signature
_EXTRA: Final = "authentication.kubernetes.io"

_encode: Final = msgspec.json.Encoder().encode


class InvalidToken(Exception):  # a refusal with a reason, no accident
    """A token of this server that is not valid any more, or not for this audience."""


class AccountTokens:
    """Issues tokens of ServiceAccounts and knows them again."""

    def __init__(self, verbs: Verbs, clock: Callable[[], float]) -> None:
        self._verbs = verbs
        self._clock = clock

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    # --- issuing -------------------------------------------------------------------------------

    def create(self, namespace: str, name: str, body: bytes) -> Object:
        """Answer a TokenRequest, as TokenREST.Create of kube-apiserver."""
        request = decode_unstored(f"{_GROUP}/v1", "TokenRequest", body)
        meta: Object = request.get("metadata") or {}
        if meta.get("namespace", namespace) != namespace:
            raise other_namespace()
        if (given := meta.get("name")) and given != name:
            why = "must match the service account name if specified"
            problem = invalid_value("metadata.name", given, why)
            raise invalid_kind("TokenRequest", _GROUP, name, [problem])
        account = self._verbs.store.get(SERVICE_ACCOUNTS, namespace, name)
        if account is None:
            raise not_found(SERVICE_ACCOUNTS, name)
        spec: Object = request.get("spec") or {}
        seconds = spec.get("expirationSeconds", _HOUR)
        _check_duration(seconds)
        audiences = spec.get("audiences") or [ISSUER]
        bound = spec.get("boundObjectRef")
        now = self._clock()
        subject: Object = {"namespace": namespace}
        if bound is not None:
            subject |= self._bound_to(bound, namespace, name)
        subject["serviceaccount"] = {"name": name, "uid": account.uid}
        token = self._signed(
            {
                "aud": audiences,
                "exp": int(now) + seconds,
                "iat": int(now),
                "iss": ISSUER,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": subject,
                "nbf": int(now),
                "sub": f"system:serviceaccount:{namespace}:{name}",
            }
        )
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                **meta,
                "name": name,
                "namespace": namespace,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": format_time(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": bound,
            },
            "status": {"token": token, "expirationTimestamp": format_time(now + seconds)},
        }

    def _bound_to(self, reference: Object, namespace: str, account: str) -> Object:
        """The claims about the object that a token is bound to, and about the node of a pod."""
        kind, version = reference.get("kind", ""), reference.get("apiVersion", "")
        group, _, number = version.rpartition("/")
        resource = _BINDABLE.get(kind) if not group else None
        if resource is None:
            shown = f"{group}/{number}, Kind={kind}"
            raise bad_request(f"cannot bind token to object of type {shown}")
        name = reference.get("name", "")
        item = self._verbs.store.get(resource, _place(resource, namespace), name)
        if item is None:
            raise not_found(resource, name)
        spec = item.decoded().get("spec") or {}
        if resource is PODS and spec.get("serviceAccountName", "") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different '
                "serviceaccount name."
            )
        if (uid := reference.get("uid", "")) and uid != item.uid:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object '
                f"reference ({uid}) does not match the UID in record. The object might have been "
                "deleted and then recreated",
                code=409,
                reason="Conflict",
                details={"name": name, "kind": kind},
            )
        claims: Object = {kind.lower(): {"name": name, "uid": item.uid}}
        if resource is PODS and (node := spec.get("nodeName")):
            found = self._verbs.store.get(NODES, "", node)
            claims["node"] = {"name": node, **({"uid": found.uid} if found is not None else {})}
        return claims

    def _signed(self, claims: Object) -> str:
        start = f"{_as_text(_encode({'alg': 'ES256'}))}.{_as_text(_encode(claims))}"
        signature = self._key.sign(start.encode(), ec.ECDSA(hashes.SHA256()))
        halves = utils.decode_dss_signature(signature)
        joined = b"".join(half.to_bytes(_COORDINATE, "big") for half in halves)
        return f"{start}.{_as_text(joined)}"

    # --- checking ------------------------------------------------------------------------------

    def caller(self, token: str) -> Caller | None:
        """The user of a valid token for this server."""
        try:
            found = self.review(token, [ISSUER])
        except InvalidToken:
            return None
        return found[0] if found is not None else None

    def review(self, token: str, audiences: Sequence[str]) -> tuple[Caller, list[str]] | None:
        """The user of a token, and which of these audiences it is for; None if it is not ours."""
        claims = self._claims(token)
        if claims is None:
            return None
        now = self._clock()
        if now >= claims["exp"]:
            raise InvalidToken("service account token has expired")
        common = [one for one in audiences if one in claims["aud"]]
        if not common:
            ours, wanted = _quoted(claims["aud"]), _quoted(audiences)
            raise InvalidToken(
                f"token audiences {ours} is invalid for the target audiences {wanted}"
            )
        subject = claims["kubernetes.io"]
        namespace, account = subject["namespace"], subject["serviceaccount"]
        self._check_exists(SERVICE_ACCOUNTS, namespace, account, now)
        extra = {f"{_EXTRA}/credential-id": f"JTI={claims['jti']}"}
        for kind, resource in _BINDABLE.items():
            bound = subject.get(kind.lower())
            if bound is None:
                continue
            if resource is not NODES or "pod" not in subject:  # the node of a pod is only told
                self._check_exists(resource, namespace, bound, now)
            if resource is not SECRETS:
                parts = ((part, bound[part]) for part in ("name", "uid") if part in bound)
                extra |= {f"{_EXTRA}/{kind.lower()}-{part}": value for part, value in parts}
        return _caller(claims["sub"], namespace, account["uid"], extra), common

    def _claims(self, token: str) -> dict[str, Any] | None:
        """What was signed with our key; None for any other text."""
        start, _, end = token.rpartition(".")
        try:
            signature = _as_bytes(end)
            halves = (
                int.from_bytes(signature[:_COORDINATE], "big"),
                int.from_bytes(signature[_COORDINATE:], "big"),
            )
            self._key.public_key().verify(
                utils.encode_dss_signature(*halves), start.encode(), ec.ECDSA(hashes.SHA256())
            )
        except (InvalidSignature, ValueError, binascii.Error):
            return None
        claims: dict[str, Any] = msgspec.json.decode(_as_bytes(start.partition(".")[2]))
        return claims

    def _check_exists(
        self, resource: Resource, namespace: str, claimed: Object, now: float
    ) -> None:
        item = self._verbs.store.get(resource, _place(resource, namespace), claimed["name"])
        if item is None or _has_ended(item, now):
            raise InvalidToken("service account token has been invalidated")
        if item.uid != claimed["uid"]:
            kind = resource.kind.lower()
            what, of = (kind, f"service account {kind} ref claim")
            if resource is SERVICE_ACCOUNTS:
                what, of = "service account", "claim"
            raise InvalidToken(f"{what} UID ({item.uid}) does not match {of} ({claimed['uid']})")


def _check_duration(seconds: int) -> None:
    why = ""
    if seconds < _SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        problem = invalid_value("spec.expirationSeconds", seconds, why)
        raise invalid_kind("TokenRequest", _GROUP, "", [problem])


def _caller(name: str, namespace: str, uid: str, extra: dict[str, str]) -> Caller:
    accounts = "system:serviceaccounts"
    return Caller(
        name=name,
        groups=(accounts, f"{accounts}:{namespace}", "system:authenticated"),
        uid=uid,
        extra=tuple((key, (value,)) for key, value in extra.items()),
    )


def _has_ended(item: Item, now: float) -> bool:
    deleted = item.decoded()["metadata"].get("deletionTimestamp", "")
    return bool(deleted) and parse_time(deleted) + _LEEWAY < now


def _place(resource: Resource, namespace: str) -> str:
    return namespace if resource.namespaced else ""


def _quoted(texts: Sequence[str]) -> str:
    return "[" + " ".join(f'"{text}"' for text in texts) + "]"


def _as_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _as_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
