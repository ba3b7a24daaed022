"""Watches: the current objects, if requested, then changes, as lines of JSON.

    start ─▶ current objects as ADDED ─▶ changes, a bookmark each minute ─▶ end

With a selector, an object that begins to match is ADDED, one that ceases to match is DELETED. A
reader that is too slow is disconnected and resumes from its last resourceVersion.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Final

import msgspec

from mooring.client.errors import Gone
from mooring.cluster.apiserver.errors import status_of
from mooring.cluster.apiserver.options import ListOptions, SelectionPredicate
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Expired, Item, Store, StoreChange
from mooring.cluster.apiserver.tables.response_format import ResponseFormat, encode, event_line

_BOOKMARKS: Final = 60.0  # seconds between them
_LONGEST: Final = 1800.0  # seconds, of a watch without timeoutSeconds


async def watch(
    store: Store,
    resource: Resource,
    options: ListOptions,
    version: int,
    response_format: ResponseFormat,
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
        yield event_line("ERROR", encode(status_of(gone)))
        return
    next_bookmark = loop.time() + _BOOKMARKS if options.wants_bookmarks else end
    timer = loop.call_at(min(end, next_bookmark), subscription.wake)
    try:
        if wants_present:
            present = store.version
            there = store.list(resource, options.predicate.namespace)
            lines = [
                response_format.event_line("ADDED", item)
                for item in there
                if options.predicate.matches(item)
            ]
            if options.wants_bookmarks:
                lines.append(response_format.bookmark_line(present, is_end_of_present=True))
            if lines:
                yield b"".join(lines)
        while True:
            if batch := subscription.take():
                if lines := list(_lines(batch, options.predicate, response_format, version)):
                    yield b"".join(lines)
                continue
            now = loop.time()
            if subscription.has_ended or now >= end:
                break
            if now >= next_bookmark:
                next_bookmark = now + _BOOKMARKS
                timer = loop.call_at(min(end, next_bookmark), subscription.wake)
                yield response_format.bookmark_line(store.version)
                continue
            await subscription.arrival()
        if options.wants_bookmarks and not subscription.has_ended:
            yield response_format.bookmark_line(store.version)
    finally:
        timer.cancel()
        subscription.close()


def _lines(
    batch: Iterable[StoreChange],
    predicate: SelectionPredicate,
    response_format: ResponseFormat,
    seen: int,
) -> Iterable[bytes]:
    is_selective = bool(predicate.namespace) or predicate.has_selector
    for change in batch:
        if change.version <= seen:  # the client has seen it already
            continue
        if not is_selective:
            yield response_format.event_line(change.type, change.new)
            continue
        was = change.old is not None and predicate.matches(change.old)
        if change.type == "DELETED":
            if was:
                yield response_format.event_line("DELETED", change.new)
        elif predicate.matches(change.new):
            yield response_format.event_line("MODIFIED" if was else "ADDED", change.new)
        elif was and change.old is not None:
            yield response_format.event_line("DELETED", _at(change.old, change.version))


def _at(item: Item, version: int) -> Item:
    """The last matching state, with the version of the change that ended the match."""
    value = item.decoded()
    value["metadata"]["resourceVersion"] = str(version)
    return msgspec.structs.replace(item, version=version, raw=encode(value))
