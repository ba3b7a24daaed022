"""The server behind every transport: one request in, one response out.

    ApiRequest ─┬─▶ /healthz /livez /readyz
                ├─▶ discovery, openapi
                ├─▶ reviews
                └─▶ rest ─▶ verbs ─▶ store

A request is handled without awaiting anything, so it is atomic. Only watches continue; their
readers drive them.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Final

import msgspec

from mooring.client.errors import NotFound, StatusError
from mooring.cluster.apiserver._auth import Authorize, is_health
from mooring.cluster.apiserver.bootstrap import bootstrap
from mooring.cluster.apiserver.customresources.decoding import refuse_protobuf
from mooring.cluster.apiserver.customresources.lifecycle import DefinitionLifecycle
from mooring.cluster.apiserver.decoding import check_size, decode_unstored
from mooring.cluster.apiserver.discovery import discover
from mooring.cluster.apiserver.errors import bad_request, no_such_method, no_such_path, status_of
from mooring.cluster.apiserver.field_selectors import fields_of
from mooring.cluster.apiserver.openapi import openapi
from mooring.cluster.apiserver.paths import Target, is_in_known_group, parse_path
from mooring.cluster.apiserver.protobuf import as_json, is_protobuf
from mooring.cluster.apiserver.requests import NO_PAGE, ApiRequest, ApiResponse, WatchResponse
from mooring.cluster.apiserver.resources import PODS
from mooring.cluster.apiserver.rest import Rest
from mooring.cluster.apiserver.reviews import Authenticate, Reviews
from mooring.cluster.apiserver.store import Store
from mooring.cluster.apiserver.tokens import AccountTokens
from mooring.cluster.apiserver.unsimulated import refuse_unsimulated
from mooring.cluster.apiserver.verbs import Verbs

log = logging.getLogger(__name__)

_TEXT: Final = "text/plain; charset=utf-8"
_OK: Final = ApiResponse(body=b"ok", content_type=_TEXT)
_encode: Final = msgspec.json.Encoder().encode


def new_store(history: int = 50_000) -> Store:
    """A store that supports field selectors."""
    return Store(history=history, fields=fields_of)


class ApiServer:
    """One cluster's API server, without a transport.

    `store` may contain a cluster; an empty one is bootstrapped. `authenticate` returns the user of
    a token, `authorize` the reason why a user may not do something.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        authenticate: Authenticate | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        self.store: Store = new_store() if store is None else store
        self.verbs: Verbs = Verbs(self.store, clock=clock, rng=rng)
        self.tokens: AccountTokens = AccountTokens(self.verbs, clock)
        self.reviews: Reviews = Reviews(self.tokens, authenticate, authorize)
        self._rest = Rest(self.verbs, clock, self.tokens)
        bootstrap(self.verbs)
        DefinitionLifecycle(self.verbs)

    async def handle(self, request: ApiRequest) -> ApiResponse | WatchResponse:
        """The response to a request; failures are responses too."""
        return self.answer(request)

    def answer(self, request: ApiRequest) -> ApiResponse | WatchResponse:
        """The same, synchronously."""
        try:
            return self._answer(request)
        except StatusError as error:
            return refusal(error)
        except RecursionError:  # kube-apiserver refuses deeply nested objects as well
            return refusal(bad_request("the body is nested too deeply"))
        except Exception as error:
            extra = {"method": request.method, "path": request.path}
            log.exception("a request handler failed", extra=extra)
            text = f"Internal error occurred: {type(error).__name__}: {error}"
            return refusal(StatusError(text, code=500, reason="InternalError"))

    def _answer(self, request: ApiRequest) -> ApiResponse | WatchResponse:
        target = parse_path(request.path, self.verbs.custom.find)
        if target is not None and target.resource.is_custom and is_protobuf(request):
            raise refuse_protobuf(target.resource)
        try:
            request = as_json(request)
        except StatusError:
            if target is None:  # a kind that is not served has no fields, but a path
                self._refuse_path(request)
            raise
        check_size(request.body)
        if target is not None:
            return self._rest.answer(target, request)
        return self._answer_other(request)

    def _refuse_path(self, request: ApiRequest) -> None:
        """Raise if nothing is served at this path."""
        json_request = msgspec.structs.replace(request, body=b"{}", headers={})
        try:
            found = self._answer_other(json_request)
        except NotFound:
            raise
        except StatusError:
            return
        if isinstance(found, ApiResponse) and found.status == 404:
            raise no_such_path()

    def _answer_other(self, request: ApiRequest) -> ApiResponse | WatchResponse:
        """Paths that are not objects."""
        path = request.path
        if is_health(path):
            return self._health(request)
        if request.method in ("GET", "HEAD"):
            accept = request.headers.get("accept", "")
            served = self.verbs.custom.resources
            found = discover(path, accept, served) or openapi(path, accept, served)
            if found is not None:
                return found
        review = self.reviews.answer(request, self.verbs.now())
        if review is not None:
            return review
        parts = path.strip("/").split("/")
        if len(parts) == 5 and parts[:3] == ["api", "v1", "namespaces"] and parts[4] == "bindings":
            return self._bind(request, parts[3])
        refuse_unsimulated(self.store, path)
        if is_in_known_group(path):
            raise no_such_path()
        return NO_PAGE

    def _health(self, request: ApiRequest) -> ApiResponse:
        if request.method not in ("GET", "HEAD"):
            raise no_such_method()
        if request.path != "/readyz" or not self.store.unsaved:
            return _OK
        text = f"[-]data failed: {self.store.unsaved}\nreadyz check failed\n"
        return ApiResponse(status=500, body=text.encode(), content_type=_TEXT)

    def _bind(self, request: ApiRequest, namespace: str) -> ApiResponse | WatchResponse:
        """POST to `bindings` instead of to the pod: its name is only in the body."""
        if request.method != "POST":
            raise no_such_method()
        binding = decode_unstored("v1", "Binding", request.body)
        name = binding.get("metadata", {}).get("name", "")
        return self._rest.answer(Target(PODS, namespace, name, "binding"), request)


def refusal(error: StatusError) -> ApiResponse:
    """The response to a request that failed."""
    headers = {"Retry-After": f"{error.retry_after:.0f}"} if error.retry_after else {}
    return ApiResponse(status=error.code, body=_encode(status_of(error)), headers=headers)
