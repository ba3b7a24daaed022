"""The HTTP side of an extender: verbs for schedulers, health and metrics for others.

    POST /filter, /prioritize (or /priority), /bind, /preempt
    GET  /healthz, /livez, /readyz, /metrics

A scheduler accepts only the code 200 and shows nothing but the code of any other. So whatever is
wrong with a filter or a bind, be it the request or a plugin, is answered with 200 and said in the
`Error` field, which ends up in the pod's event. The answers to prioritize and preempt have no such
field: there it is 400 for a bad request and 500 for what broke, with `{"Error": …}` for people.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from time import perf_counter
from typing import Any, Final

import msgspec
from aiohttp import web

from mooring.api.codec import DecodeError
from mooring.extender.serving.figures import ExtenderMetrics
from mooring.extender.serving.question import Failure
from mooring.extender.wire import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    decode,
    encode,
)
from mooring.observe import exposition
from mooring.observe.texts import type_name

log = logging.getLogger(__name__)

_BODIES: Final = 4  # of the greatest size, held at the same time

_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_HEADERS: Final = {"Server": "mooring", "X-Content-Type-Options": "nosniff"}

PATHS: Final[Mapping[str, str]] = {
    "/filter": "filter",
    "/prioritize": "prioritize",
    "/priority": "prioritize",
    "/bind": "bind",
    "/preempt": "preempt",
}
"""The paths of the verbs."""

_ARGS: Final[Mapping[str, type[Any]]] = {
    "filter": ExtenderArgs,
    "prioritize": ExtenderArgs,
    "bind": ExtenderBindingArgs,
    "preempt": ExtenderPreemptionArgs,
}
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_OTHER: Final = "other"  # the verb of whatever is none

Answer = Callable[[Any], Awaitable[Any]]
"""Payload in, payload out; raises `Failure`."""


class Reply(msgspec.Struct, frozen=True):
    """What to send."""

    code: int
    body: bytes
    content_type: str = _JSON
    allow: str = ""
    closes: bool = False  # the connection; there is more on it than was read


class Refused(Exception):
    """A request that is not even looked into."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.code)
        self.reply: Reply = reply


class Server:
    """Reads requests, has them answered, and writes what came of it.

    With `certified` a verified client certificate is needed for all but health; if names are given,
    one with such a common name.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        metrics: ExtenderMetrics,
        *,
        readiness: Callable[[], str],
        max_body_bytes: int,
        body_seconds: float,
        certified: bool = False,
        client_names: Collection[str] = (),
    ) -> None:
        self._answers = dict(answers)
        self._metrics = metrics
        self._exposition = exposition.Exposition(metrics)
        self._readiness = readiness
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds
        self._certified = certified
        self._client_names = frozenset(client_names)
        self._held = 0  # bytes of bodies

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request, up to the last byte of its answer."""
        started = perf_counter()
        verb = PATHS.get(request.path, _OTHER)
        in_flight = self._metrics.in_flight.labels(verb)
        in_flight.add()
        code = 0
        try:
            reply = await self._reply(request, verb)
            code = reply.code
            return await self._send(request, reply)
        finally:
            in_flight.add(-1)
            shown = str(code) if code else "gone"
            self._metrics.requests.labels(verb, shown).observe(perf_counter() - started)

    async def _send(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
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
            request.protocol.force_close()  # it does not take what it asked for
        return response

    # --- what to answer ------------------------------------------------------------------------

    async def _reply(self, request: web.BaseRequest, verb: str) -> Reply:
        try:
            self._check_caller(request)
            if verb == _OTHER:
                return self._page(request)
            answer = self._answers.get(verb)
            if answer is None:
                raise Refused(_told(404, f"this extender does not serve {request.path}"))
            if request.method != "POST":
                raise Refused(_not_allowed("POST"))
            return await self._ask(request, verb, answer)
        except Refused as refusal:
            return refusal.reply

    async def _ask(self, request: web.BaseRequest, verb: str, answer: Answer) -> Reply:
        held: list[bytes] = []
        try:
            await self._read(request, held)
            body = b"".join(held)
            return Reply(200, encode(await answer(decode(body, _ARGS[verb]))))
        except Refused:
            self._metrics.errors.labels(verb, "").add()
            raise
        except (DecodeError, RecursionError) as error:
            self._metrics.errors.labels(verb, "").add()
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            return _failed(verb, 400, f"the request can't be read: {why}")
        except Failure as failure:
            self._metrics.errors.labels(verb, failure.plugin).add()
            return _failed(verb, 500, str(failure))
        except Exception as error:
            self._metrics.errors.labels(verb, "").add()
            log.exception("answering a request broke", extra={"verb": verb})
            return _failed(verb, 500, f"the extender broke: {type_name(error)}")
        finally:
            self._held -= sum(map(len, held))

    async def _read(self, request: web.BaseRequest, held: list[bytes]) -> None:
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused(_told(415, "send the body as it is, without Content-Encoding", True))
        most = self._max_body_bytes
        if (request.content_length or 0) > most:
            raise Refused(self._too_large())
        size = 0
        try:
            async with asyncio.timeout(self._body_seconds):
                async for piece in request.content.iter_any():
                    held.append(piece)
                    size += len(piece)
                    self._held += len(piece)
                    if size > most:
                        raise Refused(self._too_large())
                    if self._held > _BODIES * most:
                        text = "too many large requests at the same time"
                        raise Refused(_told(503, text, True))
        except TimeoutError as error:
            text = f"the body did not arrive within {self._body_seconds:g} s"
            raise Refused(_told(408, text, True)) from error
        except web.RequestPayloadError as error:
            raise Refused(_told(400, f"the body can't be read: {error}", True)) from error

    def _too_large(self) -> Reply:
        text = f"the body is larger than {self._max_body_bytes} bytes (--max-body-bytes)"
        return _told(413, text, True)

    # --- everything else -----------------------------------------------------------------------

    def _check_caller(self, request: web.BaseRequest) -> None:
        if not self._certified or request.path in _HEALTH:
            return
        certificate = request.get_extra_info("peercert")
        if not certificate:
            text = "a client certificate is needed, signed by the authority of --client-ca-file"
            raise Refused(_told(401, text, True))
        if self._client_names and not self._client_names & _common_names(certificate):
            raise Refused(_told(403, "this client certificate has none of --client-names", True))

    def _page(self, request: web.BaseRequest) -> Reply:
        path = request.path
        if path != "/metrics" and path not in _HEALTH:
            served = ", ".join(f"/{verb}" for verb in self._answers)
            raise Refused(_told(404, f"no such path; this extender serves {served}"))
        if request.method not in ("GET", "HEAD"):
            raise Refused(_not_allowed("GET, HEAD"))
        if path == "/metrics":
            text = self._exposition.render()
            return Reply(200, text.encode(errors="backslashreplace"), exposition.CONTENT_TYPE)
        problem = self._readiness() if path == "/readyz" else ""
        return Reply(503 if problem else 200, (problem or "ok").encode(), _TEXT)


def _failed(verb: str, code: int, text: str) -> Reply:
    """What could not be done, in the place where schedulers look for it."""
    if verb == "filter":
        return Reply(200, encode(ExtenderFilterResult(error=text)))
    if verb == "bind":
        return Reply(200, encode(ExtenderBindingResult(error=text)))
    return _told(code, text)


def _told(code: int, text: str, closes: bool = False) -> Reply:
    return Reply(code, encode({"Error": text}), closes=closes)


def _not_allowed(methods: str) -> Reply:
    text = f"only {methods} is allowed here"
    # What came with it is not read, so nothing can follow it.
    return Reply(405, encode({"Error": text}), allow=methods, closes=True)


def _common_names(certificate: Mapping[str, Any]) -> set[str]:
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    return {value for key, value in subject if key == "commonName"}
