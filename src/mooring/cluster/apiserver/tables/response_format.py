"""Objects as bytes in the form that a request accepts: whole, as tables, or metadata only.

A table is what `kubectl get` prints, made by the server (meta.k8s.io/v1 Table).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, get_args

import msgspec

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.events import from_storage, is_translated
from mooring.cluster.apiserver.lists import ListResult
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.tables import (
    cells_cluster,
    cells_network,
    cells_pods,
    cells_storage,
    cells_workloads,
)
from mooring.cluster.apiserver.tables.columns import Layout, layout

Form = Literal["whole", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_ANY: Final = ("application/json", "application/*", "*/*", "")
_GROUP: Final = "meta.k8s.io"
_API_VERSION: Final = "meta.k8s.io/v1"
_NAME_AND_AGE: Final = layout("Name, Age")
_NAME_AND_CREATION: Final = layout("Name, Created At:date=metadata.creationTimestamp")
_COLUMNS: Final[Mapping[str, Layout]] = {
    "serviceaccounts": _NAME_AND_AGE,
    "deviceclasses.resource.k8s.io": _NAME_AND_AGE,
    "resourceclaimtemplates.resource.k8s.io": _NAME_AND_AGE,
    **cells_cluster.COLUMNS,
    **cells_network.COLUMNS,
    **cells_pods.COLUMNS,
    **cells_storage.COLUMNS,
    **cells_workloads.COLUMNS,
}
_INITIAL_END: Final = "k8s.io/initial-events-end"

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
        self._knows_columns = False  # true for the reader of a watch after the first table
        if request.query.get("watch", "") in ("", "false", "0"):
            _check_form(self.form, resource.kind, is_list=is_list)

    def object_response(
        self, item: Item, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ApiResponse:
        return ApiResponse(status=status, body=self._object(item), headers=headers or {})

    def unstored_response(
        self, value: Object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ApiResponse:
        """An object that is not, or no longer, in the store."""
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
            return ApiResponse(body=self._whole_list(found))
        if self.form == "Table":
            return ApiResponse(body=encode(self._table(found.items, found.metadata)))
        value = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": _API_VERSION,
            "metadata": found.metadata,
            "items": [_partial(item.decoded()["metadata"]) for item in found.items],
        }
        return ApiResponse(body=encode(value))

    # --- watches -------------------------------------------------------------------------------

    def event_line(self, kind: str, item: Item) -> bytes:
        return event_line(kind, self._object(item))

    def bookmark_line(self, version: int, *, is_end_of_present: bool = False) -> bytes:
        meta: Object = {"resourceVersion": str(version)}
        value = _partial(meta)
        if self.form == "whole":
            kind, api_version = self._resource.kind, self._resource.api_version
            value = {"kind": kind, "apiVersion": api_version, "metadata": meta}
        elif self.form == "Table":
            columns: list[Object] | None = None if self._knows_columns else []
            value = _table_of(dict(meta), columns, [{"cells": None, "object": value}])
        if is_end_of_present:
            meta["annotations"] = {_INITIAL_END: "true"}
        return event_line("BOOKMARK", encode(value))

    # --- forms ---------------------------------------------------------------------------------

    def _object(self, item: Item) -> bytes:
        if self.form == "whole":
            return self._raw(item)
        if self.form == "Table":
            table = self._table([item], {"resourceVersion": str(item.version)})
            self._knows_columns = True
            return encode(table)
        return encode(_partial(item.decoded()["metadata"]))

    def _raw(self, item: Item) -> bytes:
        if is_translated(self._resource):
            return encode(from_storage(self._resource, item.decoded()))
        if isinstance(self._resource, CustomResource):
            return self._resource.raw(item)
        return item.raw

    def _decoded(self, item: Item) -> Object:
        if isinstance(self._resource, CustomResource):
            return self._resource.read(item)
        return item.decoded()

    def _whole_list(self, found: ListResult) -> bytes:
        """The list, joined from stored bytes; kind and apiVersion are left out of the items."""
        if self._resource.is_custom:
            return self._custom_list(found)
        kind, api_version = self._resource.kind, self._resource.api_version
        start = f'{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":'.encode()
        head = f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode()
        items = [
            b"{" + raw[len(head) :] if raw.startswith(head) else raw
            for raw in map(self._raw, found.items)
        ]
        return b"".join((start, encode(found.metadata), b',"items":[', b",".join(items), b"]}"))

    def _custom_list(self, found: ListResult) -> bytes:
        """Items of a list of custom objects have a kind; the list always has a continue token."""
        head = {"apiVersion": self._resource.api_version, "kind": self._resource.list_kind}
        meta = {"continue": "", **found.metadata}
        start = encode({**head, "metadata": meta})[:-1]
        items = b",".join(map(self._raw, found.items))
        return b"".join((start, b',"items":[', items, b"]}"))

    def _table(self, items: Iterable[Item], metadata: Object) -> Object:
        if isinstance(self._resource, CustomResource):
            columns = self._resource.served.layout
        else:
            columns = _COLUMNS.get(self._resource.key, _NAME_AND_CREATION)
        now = self._clock()
        rows = []
        for item in items:
            value = self._decoded(item)
            row: Object = {"cells": columns.cells(value, now)}
            if self._resource.key == "pods" and (
                conditions := cells_pods.pod_row_conditions(value)
            ):
                row["conditions"] = conditions
            row["object"] = self._included(value)
            rows.append(row)
        return _table_of(metadata, None if self._knows_columns else columns.columns, rows)

    def _included(self, value: Object) -> Object | None:
        """The object of a row, by `includeObject`: Metadata unless the query has Object or None."""
        if self._include == "None":
            return None
        if self._include == "Object":
            return from_storage(self._resource, value)
        return _partial(value["metadata"])


def event_line(kind: str, body: bytes) -> bytes:
    """An event of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


def _table_of(metadata: Object, columns: list[Object] | None, rows: list[Any]) -> Object:
    return {
        "kind": "Table",
        "apiVersion": _API_VERSION,
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def _partial(metadata: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _API_VERSION, "metadata": metadata}


# --- content negotiation -------------------------------------------------------------------------


@lru_cache(maxsize=256)
def accepted(header: str) -> Form:
    """The first form that the client accepts and the server has; 406 if there is none."""
    is_json = False
    for clause in header.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media.lower() not in _ANY:
            continue
        is_json = True
        asked = dict(part.split("=", 1) for part in parameters if "=" in part)
        if not asked.get("as"):
            return "whole"
        if asked.get("g", "") == _GROUP and asked.get("v", "") == "v1":
            for form in get_args(Form)[1:]:
                if asked["as"] == form:
                    found: Form = form
                    return found
    if is_json:
        raise not_acceptable()
    message = "406: Not Acceptable\n\nAvailable representations: application/json"
    raise StatusError(message, code=406, reason="NotAcceptable", details={})


def not_acceptable() -> StatusError:
    """406 for JSON in a form that an object does not have."""
    message = "only the following media types are accepted: application/json"
    return StatusError(message, code=406, reason="NotAcceptable")


def _check_form(form: Form, kind: str, *, is_list: bool) -> None:
    """Refuse list metadata for one object, and object metadata for a list."""
    if is_list and form == "PartialObjectMetadata":
        why = f"but the requested object is a list (*core.{kind}List)"
    elif not is_list and form == "PartialObjectMetadataList":
        why = f"but the requested object is not a list (*core.{kind})"
    else:
        return
    raise StatusError(f"you requested {form}, {why}", code=406, reason="NotAcceptable")
