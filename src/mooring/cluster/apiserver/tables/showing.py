"""Objects as bytes in the form that was asked for: whole, as tables, or metadata only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from mooring.cluster.apiserver.calls import Call, Reply
from mooring.cluster.apiserver.listing import Found, list_body, metadata_body, partial, raw_of
from mooring.cluster.apiserver.negotiation import Form, accepted, check_form
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.tables.table import table
from mooring.cluster.apiserver.watching import Frames

encode: Final = msgspec.json.Encoder().encode


class Shown:
    """How one call wants to see objects of one kind; raises if there is no such form."""

    def __init__(
        self, call: Call, resource: Resource, clock: Callable[[], float], *, is_list: bool = False
    ) -> None:
        self.form: Form = accepted(call.headers.get("accept", ""))
        self._resource = resource
        self._include = call.query.get("includeObject", "")
        self._clock = clock
        if call.query.get("watch", "") in ("", "false", "0"):
            check_form(self.form, resource.kind, is_list=is_list)

    def one(self, item: Item, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
        if self.form == "whole":
            body = raw_of(self._resource, item)
        elif self.form == "Table":
            body = encode(self._table(item, False))
        else:
            body = encode(partial(item))
        return Reply(status=status, body=body, headers=headers or {})

    def unstored(
        self, value: Object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """An object that is not in the store, or not any more."""
        if self.form == "whole":
            return Reply(status=status, body=encode(value), headers=headers or {})
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
        return self.one(item, status, headers)

    def many(self, found: Found) -> Reply:
        if self.form == "whole":
            return Reply(body=list_body(self._resource, found))
        if self.form == "PartialObjectMetadataList":
            return Reply(body=metadata_body(found))
        meta = found.metadata
        shown = table(
            self._resource,
            found.items,
            include_object=self._include,
            version=meta.pop("resourceVersion"),
            now=self._clock(),
            metadata=meta,
        )
        return Reply(body=encode(shown))

    def frames(self) -> Frames:
        """For the events of a watch."""
        return Frames(self._resource, self.form, self._table)

    def _table(self, item: Item, knows_columns: bool) -> Object:
        return table(
            self._resource,
            [item],
            include_object=self._include,
            version=str(item.version),
            now=self._clock(),
            watch=knows_columns,
        )
