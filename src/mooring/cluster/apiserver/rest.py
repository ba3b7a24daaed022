"""Requests for objects: dispatched by path and method."""

from __future__ import annotations

import time
from collections.abc import Callable

from mooring.cluster.apiserver.errors import no_such_method, not_found
from mooring.cluster.apiserver.lists import list_objects, too_large
from mooring.cluster.apiserver.options import list_options, read_version
from mooring.cluster.apiserver.paths import Target
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse, WatchResponse
from mooring.cluster.apiserver.store import Store
from mooring.cluster.apiserver.tables.response_format import ResponseFormat, encode
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.apiserver.watch import watch
from mooring.cluster.apiserver.write_handlers import WriteHandlers


class Rest:
    """Answers requests for objects of all kinds; refusals are raised."""

    def __init__(self, verbs: Verbs, *, clock: Callable[[], float] = time.time) -> None:
        self._verbs = verbs
        self._store: Store = verbs.store
        self._clock = clock
        self._writing = WriteHandlers(verbs, clock)

    def answer(self, target: Target, request: ApiRequest) -> ApiResponse | WatchResponse:
        match target.subresource:
            case "binding" | "eviction":
                return self._writing.post_to_pod(target, request)
            case "token":
                raise no_such_method()
        if not target.name:
            return self._answer_all(target, request)
        match request.method:
            case "GET" | "HEAD":
                return self._get(target, request)
            case "PUT":
                return self._writing.put(target, request)
            case "PATCH":
                return self._writing.patch(target, request)
            case "DELETE" if not target.subresource:
                return self._writing.delete(target, request)
        raise no_such_method()

    def _answer_all(self, target: Target, request: ApiRequest) -> ApiResponse | WatchResponse:
        is_one_place = bool(target.namespace) or not target.resource.namespaced
        match request.method:
            case "GET" | "HEAD":
                return self._list(target, request)
            case "POST" if is_one_place:
                return self._writing.create(target, request)
            case "DELETE" if is_one_place:
                return self._writing.delete_all(target, request)
        raise no_such_method()

    def _get(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource = target.resource
        response_format = ResponseFormat(request, resource, self._clock)
        wanted = request.query.get("resourceVersion", "")
        if wanted.isdecimal() and int(wanted) > self._store.version:
            raise too_large(int(wanted), self._store.version)
        if target.subresource == "scale":
            scale = self._verbs.get(resource, target.namespace, target.name, subresource="scale")
            return ApiResponse(body=encode(scale))
        item = self._store.get(resource, target.namespace, target.name)
        if item is None:
            raise not_found(resource, target.name)
        return response_format.object_response(item)

    def _list(self, target: Target, request: ApiRequest) -> ApiResponse | WatchResponse:
        resource = target.resource
        options = list_options(resource, target.namespace, request.query)
        response_format = ResponseFormat(request, resource, self._clock, is_list=True)
        if not options.is_watch:
            return response_format.list_response(list_objects(self._store, resource, options))
        version = read_version(options)
        return WatchResponse(
            chunks=watch(self._store, resource, options, version, response_format.watch_encoder())
        )
