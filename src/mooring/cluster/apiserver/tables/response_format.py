"""Objects as bytes in the requested form: whole, as tables, or metadata only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from mooring.cluster.apiserver.lists import ListResult, list_body, metadata_body, partial, raw_of
from mooring.cluster.apiserver.negotiation import Form, accepted, check_form
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.tables.table import table
from mooring.cluster.apiserver.watch import WatchEncoder

encode: Final = msgspec.json.Encoder().encode


class ResponseFormat:
    """The form in which a request wants objects of one kind; 406 if there is no such form."""

    def __init__(
        self,
        request: ApiRequest,
        resource: Resource,
        clock: Callable[[], float],
        *,
        is_list: bool = False,
    ) -> None:
        self.form: Form = accepted(request.headers.get("accept", ""))
        self._resource = resource
        self._include = request.query.get("includeObject", "")
        self._clock = clock
        if request.query.get("watch", "") in ("", "false", "0"):
            check_form(self.form, resource.kind, is_list=is_list)

    def object_response(
        self, item: Item, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ApiResponse:
        if self.form == "whole":
            body = raw_of(self._resource, item)
        elif self.form == "Table":
            body = encode(self._table(item, False))
        else:
            body = encode(partial(item))
        return ApiResponse(status=status, body=body, headers=headers or {})

    def unstored_response(
        self, value: Object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ApiResponse:
        """An object that is not in the store, or not any more."""
        if self.form == "whole":
            return ApiResponse(status=status, body=encode(value), headers=headers or {})
        meta = value["metadata"]
        item = Item(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            version=int(meta.get("resourceVersion", "0")),
            raw=encode(value),
            labels=meta.get("labels", {}),
            fields={},
        )
        return self.object_response(item, status, headers)

    def list_response(self, found: ListResult) -> ApiResponse:
        if self.form == "whole":
            return ApiResponse(body=list_body(self._resource, found))
        if self.form == "PartialObjectMetadataList":
            return ApiResponse(body=metadata_body(found))
        meta = found.metadata
        shown = table(
            self._resource,
            found.items,
            include_object=self._include,
            version=meta.pop("resourceVersion"),
            now=self._clock(),
            metadata=meta,
        )
        return ApiResponse(body=encode(shown))

    def watch_encoder(self) -> WatchEncoder:
        """For the events of a watch."""
        return WatchEncoder(self._resource, self.form, self._table)

    def _table(self, item: Item, knows_columns: bool) -> Object:
        return table(
            self._resource,
            [item],
            include_object=self._include,
            version=str(item.version),
            now=self._clock(),
            watch=knows_columns,
        )
