"""The pages of `/lens/v1/` of a running scheduler, forwarded with the user's own credentials.

The browser has no kubeconfig: it talks to this process on loopback, and this process to the
scheduler. Nothing but `/lens/v1/` is forwarded, and no header of the browser.
"""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import quote

from aiohttp import web

from mooring.client.errors import status_error
from mooring.client.transport import Request, Transport
from mooring.errors import ApiError
from mooring.ui.access import Denial
from mooring.ui.file_lens import MAX_BODY, read_body
from mooring.ui.lens import PREFIX
from mooring.ui.pages import JSON

log = logging.getLogger(__name__)

VERSIONED: Final = f"{PREFIX}v1/"
MAX_ANSWER: Final = 64 * 1024 * 1024  # bytes
_PATIENCE: Final = 120.0  # seconds for an answer
_STREAMED: Final = ("stream", "snapshot")
_NOT_FOUND: Final = Denial(404, "NotFound", "only pages below /lens/v1/ are forwarded")


class UpstreamLens:
    """Forwards to one scheduler, for a reader of all namespaces or of one."""

    def __init__(self, transport: Transport, namespace: str = "") -> None:
        self._transport = transport
        self._namespace = namespace

    async def check(self) -> None:
        """Raise ApiError if the scheduler does not answer, or does not let this user in."""
        query = f"?namespace={quote(self._namespace)}" if self._namespace else ""
        answer = await self._transport.send(
            Request(method="GET", path=f"{VERSIONED}state{query}", max_answer=MAX_ANSWER)
        )
        if answer.status >= 300:
            raise status_error(answer.status, answer.body, answer.headers)

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        path = request.path
        if not path.startswith(VERSIONED) or any(part in (".", "..") for part in path.split("/")):
            return _NOT_FOUND
        body = await read_body(request)
        if body is None:
            return Denial(413, "RequestEntityTooLarge", f"expected at most {MAX_BODY:,} bytes")
        url = request.rel_url
        if self._namespace:
            url = url.update_query(namespace=self._namespace)
        asked = Request(
            method=request.method,
            path=str(url),
            body=body,
            timeout=_PATIENCE,
            max_answer=MAX_ANSWER,
        )
        try:
            if path.removeprefix(VERSIONED) in _STREAMED:
                return await self._stream(request, asked)
            answer = await self._transport.send(asked)
        except ApiError as error:
            return Denial(502, "BadGateway", f"the scheduler does not answer: {error}")
        kind = answer.headers.get("content-type", JSON)
        response = web.Response(
            status=answer.status, body=answer.body, headers={"Content-Type": kind}
        )
        if len(answer.body) > 1024:
            response.enable_compression()
        return response

    async def _stream(self, request: web.BaseRequest, asked: Request) -> web.StreamResponse:
        async with self._transport.stream(asked) as upstream:
            kind = upstream.headers.get("content-type", JSON)
            response = web.StreamResponse(
                status=upstream.status, headers={"Content-Type": kind, "Cache-Control": "no-store"}
            )
            if upstream.status >= 300:
                return web.Response(
                    status=upstream.status,
                    body=await upstream.read(),
                    headers={"Content-Type": kind},
                )
            await response.prepare(request)
            try:
                async for chunk in upstream.chunks():
                    await response.write(chunk)
                await response.write_eof()
            except ConnectionError:
                log.debug("the client of a stream disconnected")
            except ApiError as error:
                log.debug("a stream broke off", extra={"error": str(error)})
                if request.transport is not None:
                    request.transport.abort()
        return response
