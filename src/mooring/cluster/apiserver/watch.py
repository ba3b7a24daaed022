"""Watches: the current objects, if requested, then changes, as lines of JSON.

    start ─▶ current objects as ADDED ─▶ changes, a bookmark each minute ─▶ end

With a selector, an object that begins to match is ADDED, one that ceases to match is DELETED. A
reader that is too slow is disconnected and resumes from its last resourceVersion.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final

import msgspec

from mooring.client.errors import Gone
from mooring.cluster.apiserver.errors import status_of
from mooring.cluster.apiserver.lists import partial, raw_of
from mooring.cluster.apiserver.negotiation import Form
from mooring.cluster.apiserver.options import ListOptions, SelectionPredicate
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Expired, Item, Object, Store, StoreChange, Subscription

TableOf = Callable[[Item, bool], Object]
"""A table of one row, and whether the reader knows its columns already."""

_BOOKMARKS: Final = 60.0  # seconds between them
_LONGEST: Final = 1800.0  # seconds, of a watch that does not say how long
_INITIAL_END: Final = "k8s.io/initial-events-end"

_encode: Final = msgspec.json.Encoder().encode


class WatchEncoder:
    """Encodes events in the form that the request asked for."""

    def __init__(self, resource: Resource, form: Form, table_of: TableOf | None) -> None:
        self._resource = resource
        self._form = form
        self._table_of = table_of
        self._knows_columns = False

    def event(self, kind: str, item: Item) -> bytes:
        if self._form == "whole":
            return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw_of(self._resource, item))
        if self._form == "Table" and self._table_of is not None:
            value = self._table_of(item, self._knows_columns)
            self._knows_columns = True
        else:
            value = partial(item)
        return _line(kind, value)

    def bookmark(self, version: int, *, is_end_of_present: bool = False) -> bytes:
        meta: Object = {"resourceVersion": str(version)}
        if is_end_of_present:
            meta["annotations"] = {_INITIAL_END: "true"}
        kind, api_version = self._resource.kind, self._resource.api_version
        if self._form != "whole":
            kind, api_version = "PartialObjectMetadata", "meta.k8s.io/v1"
        value: Object = {"kind": kind, "apiVersion": api_version, "metadata": meta}
        if self._form == "Table":
            rows = [{"cells": None, "object": value}]
            columns: list[Object] | None = None if self._knows_columns else []
            value = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": str(version)},
                "columnDefinitions": columns,
                "rows": rows,
            }
        return _line("BOOKMARK", value)


async def watch(
    store: Store,
    resource: Resource,
    options: ListOptions,
    version: int,
    watch_encoder: WatchEncoder,
) -> AsyncGenerator[bytes, None]:
    """The lines of one watch; ends after the requested time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + (options.seconds or _LONGEST)
    wants_present = options.initial or (options.initial is None and not version)
    try:
        since = None if wants_present or not version else version
        subscription = store.subscribe(resource, since)
    except Expired as error:
        gone = Gone(str(error), code=410, reason="Expired")
        yield _line("ERROR", status_of(gone))
        return
    try:
        if wants_present:
            present = store.version
            there = store.list(resource, options.predicate.namespace)
            lines = [
                watch_encoder.event("ADDED", item)
                for item in there
                if options.predicate.matches(item)
            ]
            if options.wants_bookmarks:
                lines.append(watch_encoder.bookmark(present, is_end_of_present=True))
            if lines:
                yield b"".join(lines)
        following = _follow(store, subscription, options, watch_encoder, end, version)
        async with aclosing(following) as batches:
            async for batch in batches:
                yield batch
    finally:
        subscription.close()


async def _follow(
    store: Store,
    subscription: Subscription,
    options: ListOptions,
    watch_encoder: WatchEncoder,
    end: float,
    seen: int,
) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    next_bookmark = loop.time() + _BOOKMARKS if options.wants_bookmarks else end
    timer = loop.call_at(min(end, next_bookmark), subscription.wake)
    try:
        while True:
            if batch := subscription.take():
                if lines := b"".join(_lines(batch, options.predicate, watch_encoder, seen)):
                    yield lines
                continue
            now = loop.time()
            if subscription.has_ended or now >= end:
                break
            if now >= next_bookmark:
                next_bookmark = now + _BOOKMARKS
                timer = loop.call_at(min(end, next_bookmark), subscription.wake)
                yield watch_encoder.bookmark(store.version)
                continue
            await subscription.arrival()
        if options.wants_bookmarks and not subscription.has_ended:
            yield watch_encoder.bookmark(store.version)
    finally:
        timer.cancel()


def _lines(
    batch: Iterable[StoreChange],
    predicate: SelectionPredicate,
    watch_encoder: WatchEncoder,
    seen: int,
) -> Iterable[bytes]:
    is_selective = bool(
        predicate.namespace or predicate.labels.requirements or predicate.fields.requirements
    )
    for change in batch:
        if change.version <= seen:  # the client has seen it already
            continue
        if not is_selective:
            yield watch_encoder.event(change.type, change.new)
            continue
        was = change.old is not None and predicate.matches(change.old)
        if change.type == "DELETED":
            if was:
                yield watch_encoder.event("DELETED", change.new)
        elif predicate.matches(change.new):
            yield watch_encoder.event("MODIFIED" if was else "ADDED", change.new)
        elif was and change.old is not None:
            yield watch_encoder.event("DELETED", _at(change.old, change.version))


def _at(item: Item, version: int) -> Item:
    """The last matching state, with the version of the change that ended the match."""
    value = item.decoded()
    value["metadata"]["resourceVersion"] = str(version)
    return msgspec.structs.replace(item, version=version, raw=_encode(value))


def _line(kind: str, value: Any) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), _encode(value))
