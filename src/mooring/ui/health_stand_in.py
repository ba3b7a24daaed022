"""Health checks that a second process answers while the event loop of the first stands still.

    process ──── one listening socket ──── stand-in   accepts only while the loop stands still

A duty of the stand-in (`runtime/stand_in.py`), which serves nothing else.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from mooring.api.auth import UserInfo
from mooring.errors import ApiError
from mooring.ui.access import Access, Denial
from mooring.ui.endpoints import Endpoints, refusal
from mooring.ui.health import Health
from mooring.ui.serving_tls import ServingTls

_LOOK: Final = 0.05  # seconds
_BUSY: Final = Denial(503, "ServiceUnavailable", "the process is busy; try again")
_SERVED: Final = ("/healthz", "/livez")


class HealthStandIn:
    """/healthz and /livez in another process; they fail after `deadline` seconds of silence."""

    def __init__(
        self, address: str, tls: ServingTls, open_paths: Sequence[str], deadline: float
    ) -> None:
        self._address = address
        self._tls = tls
        self._open_paths = open_paths
        self._deadline = deadline

    async def serve(self, listening: socket.socket, silence: Callable[[], float]) -> None:
        """In the copy: accept from the socket of the process while `silence` is more than 0."""

        def check() -> str:
            seconds = silence()
            return f"the loop stands still for {seconds:.0f} s" if seconds > self._deadline else ""

        health = Health()
        health.add("heartbeat", check, on=("healthz", "livez"))
        endpoints = _Endpoints(
            address=self._address,
            port=0,
            tls=self._tls,
            health=health,
            pages={},
            access=Access(_NoReviews(), open_paths=self._open_paths),
        )
        listener = endpoints.listener
        listener.adopt(listening)
        accepts = False
        while True:
            await asyncio.sleep(_LOOK)
            is_silent = silence() > 0
            if is_silent and not accepts:
                listener.resume()
            elif accepts and not is_silent:
                listener.pause()
            accepts = is_silent


class _Endpoints(Endpoints):
    """Health checks without reviews; any other page needs the first process."""

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        if request.path.startswith(_SERVED):
            return await super()._respond(request)
        return refusal(_BUSY)


class _NoReviews:
    """Refuses every path that needs a review."""

    async def review_token(self, token: str) -> UserInfo | None:
        raise ApiError(_BUSY.message)

    async def allowed(self, user: UserInfo, verb: str, path: str) -> bool:
        raise ApiError(_BUSY.message)
