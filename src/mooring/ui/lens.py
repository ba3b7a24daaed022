"""The pages of `/lens/v1/`: explanations and snapshots of a running scheduler.

    GET /lens/v1/pods/{namespace}/{name}/explain    ?depth=groups (default) or matrix
    GET /lens/v1/snapshot                           a file for `mooring explain --from` and others

They show pods and nodes of all namespaces, so a caller must be allowed to list both everywhere;
what paths it may get, or which paths are open to all, makes no difference.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Protocol

from aiohttp import web

from mooring.api.auth import ResourceAttributes
from mooring.lens.slices import Busy
from mooring.observe.listener import prolong
from mooring.ui.access import Denial
from mooring.ui.pages import HEADERS, JSON

log = logging.getLogger(__name__)

PREFIX: Final = "/lens/"
NEEDED: Final = (
    ResourceAttributes(verb="list", resource="pods"),
    ResourceAttributes(verb="list", resource="nodes"),
)
DEPTHS: Final = ("groups", "matrix")
_LONGEST: Final = 300.0  # seconds for a snapshot


class Lens(Protocol):
    """What is shown; both raise `Busy` if too many ask, the second before the first chunk."""

    async def explain(self, key: str, *, matrix: bool = False) -> bytes | None: ...

    def snapshot(self) -> AsyncGenerator[bytes, None]: ...


class LensPages:
    """The pages of one scheduler, for callers that were authorised."""

    def __init__(self, lens: Lens) -> None:
        self._lens = lens

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        try:
            match request.path.removeprefix(PREFIX).split("/"):
                case ["v1", "pods", namespace, name, "explain"]:
                    return await self._explain(request, f"{namespace}/{name}")
                case ["v1", "snapshot"]:
                    return await self._snapshot(request)
        except Busy as error:
            return Denial(429, "TooManyRequests", f"{error}; try again")
        return Denial(404, "NotFound", "there is no such page below /lens/")

    async def _explain(self, request: web.BaseRequest, key: str) -> web.Response | Denial:
        depth = request.query.get("depth", DEPTHS[0])
        if depth not in DEPTHS:
            text = f"depth: expected {' or '.join(DEPTHS)}, found {depth!r}"
            return Denial(400, "BadRequest", text)
        found = await self._lens.explain(key, matrix=depth == "matrix")
        if found is None:
            return Denial(404, "NotFound", f'pods "{key}" not found, or it has ended')
        return web.Response(body=found, headers={"Content-Type": JSON})

    async def _snapshot(self, request: web.BaseRequest) -> web.StreamResponse:
        prolong(request, _LONGEST)
        name = {"Content-Disposition": 'attachment; filename="cluster.snap.gz"'}
        response = web.StreamResponse(
            headers={**HEADERS, **name, "Content-Type": "application/gzip"}
        )
        response.force_close()
        if request.method == "HEAD":
            return response
        async with aclosing(self._lens.snapshot()) as chunks:
            first = await anext(chunks)
            await response.prepare(request)
            try:
                await response.write(first)
                async for chunk in chunks:
                    await response.write(chunk)
                await response.write_eof()
            except ConnectionError:
                log.debug("the client of a snapshot disconnected")
            except Exception:
                log.exception("a snapshot broke off")
                if request.transport is not None:
                    request.transport.abort()  # else it would look complete
        return response
