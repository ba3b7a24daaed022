"""A snapshot from an API server: every kind that a scheduler reads, listed in pages.

Only GET is sent. `mooring snapshot`, `mooring explain` and the commands that take a live cluster
call it. Kinds that may not be read are listed under `missing`, with nodes and pods the exception:
without them there is nothing to answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from mooring.api.codec import DecodeError, decode
from mooring.api.core import Node, Pod
from mooring.api.meta import Object
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden, Gone, NotFound
from mooring.client.paths import group_of, resource_of
from mooring.errors import ConfigError, Problem
from mooring.lens.snapshot import KINDS, ClusterState, MissingKind, Snapshot

PAGE: Final = 500  # objects
_TRIES: Final = 3  # of a list whose pages expired

OnPage = Callable[[str, int], None]
"""Called after every page: the plural of the kind and the objects of it so far."""


async def collect(
    client: ApiClient, *, on_page: OnPage | None = None, now: Callable[[], float] = time.time
) -> Snapshot:
    """List all kinds. Raises ApiError, or ConfigError if nodes or pods may not be listed."""
    at = now()
    found: dict[str, Any] = {}  # tuples of objects, by the field of ClusterState
    missing: dict[type[Object], MissingKind] = {}
    unread: list[str] = []
    for field, kind in KINDS.items():
        try:
            found[field] = await _list(client, kind, on_page, unread)
        except Forbidden as error:
            missing[kind] = MissingKind(_full_name(kind), str(error))
        except NotFound:
            if kind is Node:
                raise ConfigError([Problem("", "not a Kubernetes API server")]) from None
            # The server has no such kind, so there are no objects of it.
    if len(missing) == len(KINDS):
        raise ConfigError([Problem("", f"no permission to list anything: {missing[Node].problem}")])
    for needed in (Node, Pod):
        if needed in missing:
            raise ConfigError([Problem("", f"no permission: {missing[needed].problem}")])
    return Snapshot(
        cluster=ClusterState(**found),
        missing=tuple(missing.values()),
        at=at,
        notes=tuple(f"left out, because it can't be read: {why}" for why in dict.fromkeys(unread)),
    )


async def _list(
    client: ApiClient, kind: type[Object], on_page: OnPage | None, unread: list[str]
) -> tuple[Object, ...]:
    for _ in range(_TRIES - 1):
        try:
            return await _pages(client, kind, on_page, unread)
        except Gone:
            continue  # the pages of a list are kept for some minutes only
    return await _pages(client, kind, on_page, unread)


async def _pages(
    client: ApiClient, kind: type[Object], on_page: OnPage | None, unread: list[str]
) -> tuple[Object, ...]:
    found: list[Object] = []
    continue_ = ""
    while True:
        page = await client.list_page(kind, limit=PAGE, continue_=continue_)
        for raw in page.items:
            try:
                found.append(decode(raw, kind))
            except DecodeError as error:  # one object must not hide all others
                unread.append(str(error))
        if on_page is not None:
            on_page(resource_of(kind), len(found))
        continue_ = page.continue_
        if not continue_:
            return tuple(found)
        await asyncio.sleep(0)


def _full_name(kind: type[Object]) -> str:
    """As RBAC and kubectl name it: "poddisruptionbudgets.policy"."""
    group = group_of(kind)
    return f"{resource_of(kind)}.{group}" if group else resource_of(kind)
