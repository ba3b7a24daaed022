"""Reviews: TokenReview, SelfSubjectReview, SubjectAccessReview and the like; never stored.

There is no RBAC here. Two hooks of the server authenticate tokens and authorise access; without
them no token is known, and all access is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver._auth import MASTERS, Attributes, Authorize
from mooring.cluster.apiserver.decoding import decode_unstored
from mooring.cluster.apiserver.errors import (
    bad_request,
    invalid_kind,
    invalid_value,
    no_such_method,
    no_such_path,
)
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse, Caller
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.response_format import accepted, not_acceptable
from mooring.cluster.apiserver.tokens import ISSUER, AccountTokens, InvalidToken

Authenticate = Callable[[str], Caller | None]
"""The user of a token; None if it is unknown."""

REVIEWS: Final[Mapping[str, Sequence[str]]] = {
    "authentication.k8s.io": ["SelfSubjectReview", "TokenReview"],
    "authorization.k8s.io": [
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ],
}
"""The kinds of reviews in each group."""

# By the end of their paths; a namespace may stand before it.
_KINDS: Final = {
    (group, f"{kind.lower()}s"): kind for group, kinds in REVIEWS.items() for kind in kinds
}
_encode: Final = msgspec.json.Encoder().encode


class Reviews:
    """Answers reviews of tokens and of access."""

    def __init__(
        self,
        tokens: AccountTokens,
        authenticate: Authenticate | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        self._tokens = tokens
        self.authenticate: Authenticate | None = authenticate
        self.authorize: Authorize | None = authorize

    def answer(self, request: ApiRequest, now: str) -> ApiResponse | None:
        """The response to a review; None for any other path."""
        group = next((found for found in REVIEWS if request.path.startswith(_root(found))), "")
        if not group:
            return None
        kind = _KINDS.get((group, request.path.rpartition("/")[2]), "")
        if not kind:
            raise no_such_path()
        if request.method != "POST":
            raise no_such_method()
        if accepted(request.headers.get("accept", "")) != "whole":
            raise not_acceptable()
        api_version = f"{group}/v1"
        review = decode_unstored(api_version, kind, request.body)
        status = self._QUESTIONS[kind](self, review, request.caller)
        meta = review.get("metadata") or {}
        if kind == "SelfSubjectReview":
            meta["creationTimestamp"] = now
        answered: Object = {
            "kind": kind,
            "apiVersion": api_version,
            "metadata": meta,
            "spec": review.get("spec") or {},
            "status": status,
        }
        return ApiResponse(status=201, body=_encode(answered))

    # --- authentication --------------------------------------------------------------------------

    def _review_token(self, review: Object, caller: Caller) -> Object:
        spec = review.get("spec") or {}
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        wanted = spec.get("audiences") or [ISSUER]
        known = self.authenticate(token) if self.authenticate is not None else None
        try:
            if known is not None:
                found = (known, [ISSUER]) if ISSUER in wanted else None
            else:
                found = self._tokens.review(token, wanted)
        except InvalidToken as error:
            return {"user": {}, "error": f"[invalid bearer token, {error}]"}
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        caller_of_token, audiences = found
        return {"authenticated": True, "user": _user(caller_of_token), "audiences": audiences}

    def _review_self(self, review: Object, caller: Caller) -> Object:
        return {"userInfo": _user(caller)}

    # --- authorisation -------------------------------------------------------------------------

    def _review_own_access(self, review: Object, caller: Caller) -> Object:
        return self._review_access_of(caller, review.get("spec") or {})

    def _review_access(self, review: Object, caller: Caller) -> Object:
        spec = review.get("spec") or {}
        groups = tuple(spec.get("groups") or ())
        if not spec.get("user") and not groups:
            why = "at least one of user or group must be specified"
            raise _wrong("spec.user", "", why)
        return self._review_access_of(Caller(spec.get("user", ""), groups, ""), spec)

    def _review_access_of(self, caller: Caller, spec: Mapping[str, Any]) -> Object:
        wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (wanted is None) == (path is None):
            why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise _wrong("spec.resourceAttributes", wanted, why)
        if self.authorize is None or MASTERS in caller.groups:
            return {"allowed": True}
        asked = _attributes(wanted or path or {})
        why_not = self.authorize(caller, asked)
        return {"allowed": False, "reason": why_not} if why_not else {"allowed": True}

    def _review_rules(self, review: Object, caller: Caller) -> Object:
        if not (review.get("spec") or {}).get("namespace"):
            raise bad_request("no namespace on request")
        if self.authorize is not None and MASTERS not in caller.groups:
            # As of kube-apiserver's webhooks: a hook answers one question at a time.
            why = "webhook authorizer does not support user rule resolution"
            nothing: Object = {"resourceRules": [], "nonResourceRules": []}
            return nothing | {"incomplete": True, "evaluationError": why}
        return {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }

    _QUESTIONS: Final[Mapping[str, Callable[[Reviews, Object, Caller], Object]]] = {
        "TokenReview": _review_token,
        "SelfSubjectReview": _review_self,
        "SelfSubjectAccessReview": _review_own_access,
        "SubjectAccessReview": _review_access,
        "LocalSubjectAccessReview": _review_access,
        "SelfSubjectRulesReview": _review_rules,
    }


def _root(group: str) -> str:
    return f"/apis/{group}/v1/"


def _attributes(asked: Mapping[str, Any]) -> Attributes:
    known = {field: asked.get(field, "") for field in Attributes.__struct_fields__}
    return Attributes(**known)


def _user(caller: Caller) -> Object:
    user: Object = {"username": caller.name, "groups": list(caller.groups)}
    if caller.uid:
        user["uid"] = caller.uid
    if caller.extra:
        user["extra"] = {key: list(values) for key, values in caller.extra}
    return user


def _wrong(field: str, value: Any, why: str) -> Exception:
    return invalid_kind("", "authorization.k8s.io", "", [invalid_value(field, value, why)])
