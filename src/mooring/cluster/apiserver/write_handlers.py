"""Requests that write: create, update, patch, delete, bind, evict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mooring.cluster.apiserver.decoding import decode_unstored, fit_unstored
from mooring.cluster.apiserver.errors import (
    bad_request,
    invalid_kind,
    invalid_value,
    no_such_method,
    success,
)
from mooring.cluster.apiserver.lists import list_objects
from mooring.cluster.apiserver.options import (
    WriteOptions,
    delete_options,
    list_options,
    write_options,
)
from mooring.cluster.apiserver.patching.patch import APPLY_PATCH, patched
from mooring.cluster.apiserver.paths import Target
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.request_bodies import (
    check_name,
    check_patched,
    decode_body,
    media_of,
    warning_headers,
)
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object, Store
from mooring.cluster.apiserver.tables.response_format import ResponseFormat, encode
from mooring.cluster.apiserver.verbs import FieldManager, Verbs

_CREATED: Final = encode(success(201))


class WriteHandlers:
    """Handle writes, and respond with the result."""

    def __init__(self, verbs: Verbs, clock: Callable[[], float]) -> None:
        self._verbs = verbs
        self._store: Store = verbs.store
        self._clock = clock

    def create(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource = target.resource
        response_format = ResponseFormat(request, resource, self._clock)
        options = write_options(request, "CreateOptions")
        value, warnings = decode_body(resource, request, options)
        made = self._verbs.create(
            resource,
            value,
            namespace=target.namespace,
            dry_run=options.dry_run,
            field_manager=_field_manager(options),
        )
        return self._written(resource, made, response_format, options, warnings, 201)

    def put(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource, name = target.resource, target.name
        response_format = ResponseFormat(request, resource, self._clock)
        options = write_options(request, "UpdateOptions")
        if target.subresource == "scale":
            return self._scaled(
                target, decode_unstored("autoscaling/v1", "Scale", request.body), options
            )
        value, warnings = decode_body(resource, request, options)
        check_name(value, name)
        is_new = self._store.get(resource, target.namespace, name) is None
        put = self._verbs.replace(
            resource,
            value,
            namespace=target.namespace,
            name=name,
            subresource=target.subresource,
            dry_run=options.dry_run,
            field_manager=_field_manager(options),
        )
        return self._written(
            resource, put, response_format, options, warnings, 201 if is_new else 200
        )

    def patch(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource, name, namespace = target.resource, target.name, target.namespace
        response_format = ResponseFormat(request, resource, self._clock)
        options = write_options(request, "PatchOptions")
        media = media_of(request)
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
            return self._scaled(target, scale, options)
        value, warnings = check_patched(resource, value, options, request.body)
        check_name(value, name)
        field_manager = _field_manager(options, "Apply" if media == APPLY_PATCH else "Update")
        if item is None:
            made = self._verbs.create(
                resource,
                value,
                namespace=namespace,
                dry_run=options.dry_run,
                field_manager=field_manager,
            )
            return self._written(resource, made, response_format, options, warnings, 201)
        _check_uid(resource, item, value)
        put = self._verbs.replace(
            resource,
            value,
            namespace=namespace,
            name=name,
            subresource=target.subresource,
            dry_run=options.dry_run,
            field_manager=field_manager,
        )
        return self._written(resource, put, response_format, options, warnings, 200)

    def _scaled(self, target: Target, scale: Object, options: WriteOptions) -> ApiResponse:
        check_name(scale, target.name)
        changed = self._verbs.replace(
            target.resource,
            scale,
            namespace=target.namespace,
            name=target.name,
            subresource="scale",
            dry_run=options.dry_run,
            field_manager=_field_manager(options),
        )
        return ApiResponse(body=encode(changed))

    def _written(
        self,
        resource: Resource,
        value: Object,
        response_format: ResponseFormat,
        options: WriteOptions,
        warnings: list[str],
        status: int,
    ) -> ApiResponse:
        """The response to a write, from the stored bytes, or from `value` on a dry run."""
        meta = value["metadata"]
        headers = warning_headers(warnings)
        item = self._store.get(resource, meta.get("namespace", ""), meta["name"])
        if options.dry_run or item is None or str(item.version) != meta.get("resourceVersion"):
            return response_format.unstored_response(value, status, headers)
        return response_format.object_response(item, status, headers)

    # --- deleting ------------------------------------------------------------------------------

    def delete(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource, name = target.resource, target.name
        response_format = ResponseFormat(request, resource, self._clock)
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

    def delete_all(self, target: Target, request: ApiRequest) -> ApiResponse:
        resource = target.resource
        response_format = ResponseFormat(request, resource, self._clock, is_list=True)
        options = delete_options(request)
        query = {key: value for key, value in request.query.items() if key != "watch"}
        found = list_objects(self._store, resource, list_options(resource, target.namespace, query))
        predicate = {item.key for item in found.items}
        self._verbs.delete_collection(
            resource,
            target.namespace,
            lambda item: item.key in predicate,
            grace=options.grace,
            propagation=options.propagation or kind_of(resource).propagation,
            dry_run=options.dry_run,
        )
        return response_format.list_response(found)

    # --- pods ----------------------------------------------------------------------------------

    def post_to_pod(self, target: Target, request: ApiRequest) -> ApiResponse:
        """Bind a pod, or evict it."""
        if request.method != "POST":
            raise no_such_method()
        options = write_options(request, "CreateOptions")
        is_binding = target.subresource == "binding"
        kind, version = ("Binding", "v1") if is_binding else ("Eviction", "policy/v1")
        value = decode_unstored(version, kind, request.body)
        namespace = value.get("metadata", {}).get("namespace", target.namespace)
        if namespace != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        do = self._verbs.bind if is_binding else self._verbs.evict
        do(target.namespace, target.name, value, dry_run=options.dry_run)
        return ApiResponse(status=201, body=_CREATED)


def _field_manager(options: WriteOptions, operation: str = "Update") -> FieldManager:
    return FieldManager(options.manager, options.agent, operation)


def _check_uid(resource: Resource, item: Item, value: Object) -> None:
    """A patch checks the uid later than an update does."""
    uid = value.get("metadata", {}).get("uid", "")
    if uid and uid != item.uid:
        problem = invalid_value("metadata.uid", uid, "field is immutable")
        raise invalid_kind(resource.kind, resource.group, item.name, [problem])
