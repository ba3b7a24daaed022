"""Requests for objects: dispatched by path and method, answered by the verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.customresources.scaling import check_replicas
from mooring.cluster.apiserver.decoding import (
    check_applied,
    check_name,
    check_patched,
    decode_body,
    decode_unstored,
    fit_unstored,
    media_of,
    warning_headers,
)
from mooring.cluster.apiserver.errors import (
    insufficient_storage,
    invalid_kind,
    invalid_value,
    no_such_method,
    no_such_verb,
    not_found,
    other_namespace,
    success,
)
from mooring.cluster.apiserver.lists import list_objects, too_large
from mooring.cluster.apiserver.options import (
    WriteOptions,
    delete_options,
    list_options,
    read_version,
    write_options,
)
from mooring.cluster.apiserver.patching.patch import APPLY_PATCH, patched
from mooring.cluster.apiserver.paths import Target
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.requests import (
    NO_PAGE,
    ApiRequest,
    ApiResponse,
    WatchResponse,
)
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object, Store
from mooring.cluster.apiserver.tables.response_format import ResponseFormat, encode
from mooring.cluster.apiserver.tokens import AccountTokens
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.apiserver.watch import watch

_CREATED: Final = encode(success(201))
_VERBS: Final = {"POST": "create", "DELETE": "delete"}


class Rest:
    """Answers requests for objects of all kinds; failures are raised."""

    def __init__(self, verbs: Verbs, clock: Callable[[], float], tokens: AccountTokens) -> None:
        self._verbs = verbs
        self._tokens = tokens
        self._store: Store = verbs.store
        self._clock = clock

    def answer(self, target: Target, request: ApiRequest) -> ApiResponse | WatchResponse:
        if self._store.unsaved and request.method not in ("GET", "HEAD"):
            raise insufficient_storage(self._store.unsaved)
        if target.subresource and target.subresource not in target.resource.subresources:
            raise not_found(target.resource, target.name)
        match target.subresource:
            case "binding" | "eviction":
                return self._post_to_pod(target, request)
            case "token":
                return self._create_token(target, request)
        if not target.name:
            return self._answer_all(target, request)
        match request.method:
            case "GET" | "HEAD":
                return self._get(target, request)
            case "PUT":
                return self._put(target, request)
            case "PATCH":
                return self._patch(target, request)
            case "DELETE" if not target.subresource:
                return self._delete(target, request)
        if target.resource.is_custom and (verb := _VERBS.get(request.method)):
            raise no_such_verb(target.resource, verb)
        raise no_such_method()

    def _answer_all(self, target: Target, request: ApiRequest) -> ApiResponse | WatchResponse:
        is_one_place = bool(target.namespace) or not target.resource.namespaced
        match request.method:
            case "GET" | "HEAD":
                return self._list(target, request)
            case "POST" if is_one_place:
                return self._create(target, request)
            case "DELETE" if is_one_place:
                return self._delete_all(target, request)
        if target.resource.is_custom and not is_one_place:
            return NO_PAGE
        raise no_such_method()

    def _format(
        self, target: Target, request: ApiRequest, *, is_list: bool = False
    ) -> ResponseFormat:
        return ResponseFormat(request, target.resource, self._clock, is_list=is_list)

    # --- reading -------------------------------------------------------------------------------

    def _get(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource = target.resource
        response_format = self._format(target, request)
        wanted = request.query.get("resourceVersion", "")
        if wanted.isdecimal() and int(wanted) > self._store.version:
            raise too_large(int(wanted), self._store.version)
        if target.subresource == "scale":
            if isinstance(resource, CustomResource):
                value = self._verbs.get(resource, target.namespace, target.name)
                check_replicas(resource, value)
            scale = self._verbs.get(resource, target.namespace, target.name, subresource="scale")
            return ApiResponse(body=encode(scale))
        item = self._store.get(resource, target.namespace, target.name)
        if item is None:
            raise not_found(resource, target.name)
        return response_format.object_response(item)

    def _list(self, target: Target, request: ApiRequest) -> ApiResponse | WatchResponse:
        resource = target.resource
        options = list_options(resource, target.namespace, request.query)
        response_format = self._format(target, request, is_list=True)
        if not options.is_watch:
            return response_format.list_response(list_objects(self._store, resource, options))
        version = read_version(options)
        return WatchResponse(chunks=watch(self._store, resource, options, version, response_format))

    # --- writing -------------------------------------------------------------------------------

    def _create(self, target: Target, request: ApiRequest) -> ApiResponse:
        response_format = self._format(target, request)
        options = write_options(request, "CreateOptions")
        value, warnings = decode_body(target.resource, request, options)
        made = self._verbs.create(
            target.resource, value, namespace=target.namespace, options=options
        )
        return self._written(target, made, response_format, options, warnings, 201)

    def _put(self, target: Target, request: ApiRequest) -> ApiResponse:
        response_format = self._format(target, request)
        options = write_options(request, "UpdateOptions")
        if target.subresource == "scale":
            scale = decode_unstored("autoscaling/v1", "Scale", request.body)
            return self._scaled(target, scale, options)
        value, warnings = decode_body(target.resource, request, options)
        check_name(value, target.name)
        is_new = self._store.get(target.resource, target.namespace, target.name) is None
        put = self._replace(target, value, options)
        status = 201 if is_new else 200
        return self._written(target, put, response_format, options, warnings, status)

    def _patch(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource, name, namespace = target.resource, target.name, target.namespace
        response_format = self._format(target, request)
        media = media_of(request)
        options = msgspec.structs.replace(
            write_options(request, "PatchOptions"), is_apply=media == APPLY_PATCH
        )
        item = self._store.get(resource, namespace, name)
        current: Object | None = None
        if item is not None or target.subresource:
            current = self._verbs.get(resource, namespace, name, subresource=target.subresource)
        value = patched(
            resource,
            current,
            request.body,
            media,
            manager=options.manager,
            force=request.query.get("force", "").lower() in ("true", "1"),
            subresource=target.subresource,
            now=self._verbs.now(),
            name=name,
        )
        if target.subresource == "scale":
            scale = fit_unstored("autoscaling/v1", "Scale", value)
            return self._scaled(target, scale, msgspec.structs.replace(options, is_apply=False))
        repeated = check_applied(request.body, options) if options.is_apply else []
        value, strangers = check_patched(resource, value, options, request.body)
        warnings = [*repeated, *strangers]
        check_name(value, name)
        if item is None:
            made = self._verbs.create(resource, value, namespace=namespace, options=options)
            return self._written(target, made, response_format, options, warnings, 201)
        _check_uid(resource, item, value)
        put = self._replace(target, value, options)
        return self._written(target, put, response_format, options, warnings, 200)

    def _scaled(self, target: Target, scale: Object, options: WriteOptions) -> ApiResponse:
        check_name(scale, target.name)
        return ApiResponse(body=encode(self._replace(target, scale, options)))

    def _replace(self, target: Target, value: Object, options: WriteOptions) -> Object:
        return self._verbs.replace(
            target.resource,
            value,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            options=options,
        )

    def _written(
        self,
        target: Target,
        value: Object,
        response_format: ResponseFormat,
        options: WriteOptions,
        warnings: list[str],
        status: int,
    ) -> ApiResponse:
        """The response to a write, from the stored bytes, or from `value` on a dry run."""
        meta = value["metadata"]
        if not target.subresource and (limit := kind_of(target.resource).warning):
            warnings = [*warnings, limit]
        headers = warning_headers(warnings)
        item = self._store.get(target.resource, meta.get("namespace", ""), meta["name"])
        if options.dry_run or item is None or str(item.version) != meta.get("resourceVersion"):
            return response_format.unstored_response(value, status, headers)
        return response_format.object_response(item, status, headers)

    # --- deleting ------------------------------------------------------------------------------

    def _delete(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource, name = target.resource, target.name
        response_format = self._format(target, request)
        options = delete_options(request)
        value = self._verbs.delete(
            resource,
            target.namespace,
            name,
            uid=options.uid,
            version=options.version,
            grace=options.grace,
            propagation=options.propagation or kind_of(resource).propagation,
            dry_run=options.dry_run,
        )
        meta = value["metadata"]
        is_there = self._store.get(resource, target.namespace, name) is not None
        if (is_there and "deletionTimestamp" in meta) or kind_of(resource).returns_deleted:
            return response_format.unstored_response(value)
        details = {"name": name, "group": resource.group, "kind": resource.name, "uid": meta["uid"]}
        details = {key: part for key, part in details.items() if part}
        return ApiResponse(body=encode(success(details=details)))

    def _delete_all(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource = target.resource
        response_format = self._format(target, request, is_list=True)
        options = delete_options(request)
        query = {key: value for key, value in request.query.items() if key != "watch"}
        found = list_objects(self._store, resource, list_options(resource, target.namespace, query))
        for item in found.items:
            # An object may be gone with another one: a namespace deletes its content.
            if self._store.get(resource, item.namespace, item.name) is not None:
                self._verbs.delete(
                    resource,
                    item.namespace,
                    item.name,
                    grace=options.grace,
                    propagation=options.propagation or kind_of(resource).propagation,
                    dry_run=options.dry_run,
                )
        return response_format.list_response(found)

    # --- pods ----------------------------------------------------------------------------------

    def _post_to_pod(self, target: Target, request: ApiRequest) -> ApiResponse:
        """Bind a pod, or evict it."""
        if request.method != "POST":
            raise no_such_method()
        options = write_options(request, "CreateOptions")
        is_binding = target.subresource == "binding"
        kind, version = ("Binding", "v1") if is_binding else ("Eviction", "policy/v1")
        value = decode_unstored(version, kind, request.body)
        namespace = value.get("metadata", {}).get("namespace", target.namespace)
        if namespace != target.namespace:
            raise other_namespace()
        do = self._verbs.bind if is_binding else self._verbs.evict
        do(target.namespace, target.name, value, dry_run=options.dry_run)
        return ApiResponse(status=201, body=_CREATED)

    # --- service accounts ----------------------------------------------------------------------

    def _create_token(self, target: Target, request: ApiRequest) -> ApiResponse:
        if request.method != "POST":
            raise no_such_method()
        write_options(request, "CreateOptions")
        value = self._tokens.create(target.namespace, target.name, request.body)
        return ApiResponse(status=201, body=encode(value))


def _check_uid(resource: Resource, item: Item, value: Object) -> None:
    """A patch checks the uid later than an update does."""
    uid = value.get("metadata", {}).get("uid", "")
    if uid and uid != item.uid:
        problem = invalid_value("metadata.uid", uid, "field is immutable")
        raise invalid_kind(resource.kind, resource.group, item.name, [problem])
