"""The HTTP server of an extender: verbs, health checks and metrics.

    POST /filter and the other verbs of `wire.VERBS`
    GET  /healthz, /livez, /readyz, /metrics

If a response is not 200, a scheduler shows only its code. So errors of the request or of a plugin
are answered with 200 and the `Error` field, which is shown in the pod's Events. Verbs without such
a field in the answer fail with 400 for a bad request and 500 otherwise, and `{"Error": …}` as body.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from time import perf_counter
from typing import Any, Final

import msgspec
from aiohttp import web

from mooring.api.codec import DecodeError
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.extender.serving.request import Failure, VerbHandler
from mooring.extender.wire import VERBS, AnyVerb, decode, encode
from mooring.observe import exposition
from mooring.observe.texts import type_name

log = logging.getLogger(__name__)

_BODIES: Final = 4  # of the maximum size, in memory at the same time

_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_HEADERS: Final = {"Server": "mooring", "X-Content-Type-Options": "nosniff"}

PATHS: Final = {f"/{path}": verb for verb in VERBS for path in (verb.name, *verb.other_paths)}
"""The verbs by path."""

_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_OTHER: Final = "other"  # the verb label of other paths


class HttpReply(msgspec.Struct, frozen=True):
    """A response."""

    code: int
    body: bytes
    content_type: str = _JSON
    allow: str = ""
    closes: bool = False  # close the connection: its request was not read to the end


class RequestRejected(Exception):
    """A request that is refused before it reaches a verb handler."""

    def __init__(self, code: int, text: str, *, closes: bool = False, allow: str = "") -> None:
        super().__init__(text)
        self.reply: HttpReply = _error_reply(code, text, closes=closes, allow=allow)


class Server:
    """Reads requests, calls the handler of the verb and writes the reply.

    With `certified` every path but the health checks needs a verified client certificate; if names
    are given, with one of them as its common name.
    """

    def __init__(
        self,
        handlers: Mapping[str, VerbHandler],
        metrics: ExtenderMetrics,
        *,
        readiness: Callable[[], str],
        max_body_bytes: int,
        body_seconds: float,
        certified: bool = False,
        client_names: Collection[str] = (),
    ) -> None:
        self._handlers = dict(handlers)
        self._metrics = metrics
        self._exposition = exposition.Exposition(metrics)
        self._readiness = readiness
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds
        self._certified = certified
        self._client_names = frozenset(client_names)
        self._held = 0  # bytes of bodies

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle one request, up to the last byte of its answer."""
        started = perf_counter()
        verb = PATHS.get(request.path)
        label = _OTHER if verb is None else verb.name
        in_flight = self._metrics.in_flight.labels(label)
        in_flight.add()
        code = 0
        try:
            reply = await self._reply(request, verb)
            code = reply.code
            return await self._send(request, reply)
        finally:
            in_flight.add(-1)
            shown = str(code) if code else "gone"
            self._metrics.requests.labels(label, shown).observe(perf_counter() - started)

    async def _send(self, request: web.BaseRequest, reply: HttpReply) -> web.StreamResponse:
        response = web.Response(status=reply.code, body=reply.body, headers=_HEADERS)
        response.headers["Content-Type"] = reply.content_type
        if reply.allow:
            response.headers["Allow"] = reply.allow
        if reply.closes:
            response.force_close()
        try:
            async with asyncio.timeout(self._body_seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            request.protocol.force_close()  # the client does not read the answer
        return response

    # --- verbs ---------------------------------------------------------------------------------

    async def _reply(self, request: web.BaseRequest, verb: AnyVerb | None) -> HttpReply:
        try:
            self._check_caller(request)
            if verb is None:
                return self._page(request)
            answer = self._handlers.get(verb.name)
            if answer is None:
                raise RequestRejected(404, f"this extender does not serve {request.path}")
            if request.method != "POST":
                raise _not_allowed("POST")
            return await self._ask(request, verb, answer)
        except RequestRejected as refusal:
            return refusal.reply

    async def _ask(self, request: web.BaseRequest, verb: AnyVerb, answer: VerbHandler) -> HttpReply:
        held: list[bytes] = []
        try:
            await self._read(request, held)
            body = b"".join(held)
            return HttpReply(200, encode(await answer(decode(body, verb.args))))
        except RequestRejected:
            self._metrics.errors.labels(verb.name, "").add()
            raise
        except (DecodeError, RecursionError) as error:
            self._metrics.errors.labels(verb.name, "").add()
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            return _failure_reply(verb, 400, f"the request can't be read: {why}")
        except Failure as failure:
            self._metrics.errors.labels(verb.name, failure.plugin).add()
            return _failure_reply(verb, 500, str(failure))
        except Exception as error:
            self._metrics.errors.labels(verb.name, "").add()
            log.exception("a request handler failed", extra={"verb": verb.name})
            return _failure_reply(verb, 500, f"the extender failed: {type_name(error)}")
        finally:
            self._held -= sum(map(len, held))

    async def _read(self, request: web.BaseRequest, held: list[bytes]) -> None:
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise RequestRejected(
                415, "send the body as it is, without Content-Encoding", closes=True
            )
        most = self._max_body_bytes
        if (request.content_length or 0) > most:
            raise self._too_large()
        size = 0
        try:
            async with asyncio.timeout(self._body_seconds):
                async for piece in request.content.iter_any():
                    held.append(piece)
                    size += len(piece)
                    self._held += len(piece)
                    if size > most:
                        raise self._too_large()
                    if self._held > _BODIES * most:
                        text = "too many large requests at the same time"
                        raise RequestRejected(503, text, closes=True)
        except TimeoutError as error:
            text = f"the body did not arrive within {self._body_seconds:g} s"
            raise RequestRejected(408, text, closes=True) from error
        except web.RequestPayloadError as error:
            raise RequestRejected(400, f"the body can't be read: {error}", closes=True) from error

    def _too_large(self) -> RequestRejected:
        text = f"the body is larger than {self._max_body_bytes} bytes (--max-body-bytes)"
        return RequestRejected(413, text, closes=True)

    # --- other requests ------------------------------------------------------------------------

    def _check_caller(self, request: web.BaseRequest) -> None:
        if not self._certified or request.path in _HEALTH:
            return
        certificate = request.get_extra_info("peercert")
        if not certificate:
            text = "a client certificate is needed, signed by the authority of --client-ca-file"
            raise RequestRejected(401, text, closes=True)
        if self._client_names and not self._client_names & _common_names(certificate):
            raise RequestRejected(
                403, "this client certificate has none of --client-names", closes=True
            )

    def _page(self, request: web.BaseRequest) -> HttpReply:
        path = request.path
        if path != "/metrics" and path not in _HEALTH:
            served = ", ".join(f"/{verb}" for verb in self._handlers)
            raise RequestRejected(404, f"no such path; this extender serves {served}")
        if request.method not in ("GET", "HEAD"):
            raise _not_allowed("GET, HEAD")
        if path == "/metrics":
            text = self._exposition.render()
            return HttpReply(200, text.encode(errors="backslashreplace"), exposition.CONTENT_TYPE)
        problem = self._readiness() if path == "/readyz" else ""
        return HttpReply(503 if problem else 200, (problem or "ok").encode(), _TEXT)


def _failure_reply(verb: AnyVerb, code: int, text: str) -> HttpReply:
    """A failure, in the field that schedulers read."""
    if verb.says_errors:
        return HttpReply(200, encode(verb.result(error=text)))
    return _error_reply(code, text)


def _error_reply(code: int, text: str, *, closes: bool = False, allow: str = "") -> HttpReply:
    return HttpReply(code, encode({"Error": text}), closes=closes, allow=allow)


def _not_allowed(methods: str) -> RequestRejected:
    # The body of the request is not read, so the connection can't be used again.
    return RequestRejected(405, f"only {methods} is allowed here", closes=True, allow=methods)


def _common_names(certificate: Mapping[str, Any]) -> set[str]:
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    return {value for key, value in subject if key == "commonName"}
