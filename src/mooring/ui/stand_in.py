"""A second process that answers health checks while the event loop of the first is blocked.

    loop ── heartbeat, in shared memory ──▶ stand-in
      └───── one listening socket ─────────────┘   accepts only while the heartbeat is old

The stand-in is a copy of the process, forked at the start. A plugin in C code that holds the
interpreter lock stops every thread of the first process, but not the stand-in. The stand-in ends
with the first process and does nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import os
import signal
import socket
import struct
import time
from collections.abc import Sequence
from typing import Final, NoReturn

from aiohttp import web

from mooring.api.auth import UserInfo
from mooring.errors import ApiError
from mooring.runtime.forked import detach, fork
from mooring.ui.access import Access, Denial
from mooring.ui.endpoints import Endpoints, refusal
from mooring.ui.health import Health
from mooring.ui.serving_tls import ServingTls

log = logging.getLogger(__name__)

_BEAT: Final = 0.1  # seconds
_LOOK: Final = 0.05
_SILENT_AFTER: Final = 0.5  # seconds without a heartbeat until the stand-in accepts connections
_BUSY: Final = Denial(503, "ServiceUnavailable", "the process is busy; try again")
_SERVED: Final = ("/healthz", "/livez")


class StandIn:
    """A second process for /healthz and /livez; they fail after `deadline` seconds of silence."""

    def __init__(
        self, address: str, tls: ServingTls, open_paths: Sequence[str], deadline: float
    ) -> None:
        self._address = address
        self._tls = tls
        self._open_paths = open_paths
        self._deadline = deadline
        self._heartbeat = mmap.mmap(-1, 8)
        self._socket: socket.socket | None = None
        self._pid = 0
        self._lifeline = -1  # a pipe that closes when this process ends

    def start(self, listening: socket.socket) -> None:
        """Fork; the copy shares the socket."""
        self._socket = listening
        self._beat()
        reading, writing = os.pipe()
        try:
            pid = fork()
        except OSError as error:  # no process or no memory is left
            log.warning("no stand-in for health checks", extra={"error": str(error)})
            os.close(reading)
            os.close(writing)
            return
        if not pid:
            self._run_in_copy(listening, reading)
        os.close(reading)
        self._pid, self._lifeline = pid, writing

    async def run(self) -> None:
        """Write heartbeats; start another stand-in if this one has ended."""
        while True:
            self._beat()
            await asyncio.sleep(_BEAT)
            self._restart_if_ended()

    def close(self) -> None:
        if self._pid:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            os.close(self._lifeline)
            self._pid = 0

    def _restart_if_ended(self) -> None:
        if self._pid and self._socket is not None and os.waitpid(self._pid, os.WNOHANG)[0]:
            log.warning("the stand-in for health checks has ended")
            os.close(self._lifeline)
            self._pid = 0
            self.start(self._socket)

    def _beat(self) -> None:
        struct.pack_into("d", self._heartbeat, 0, time.monotonic())

    @property
    def _silence(self) -> float:
        """Seconds since the last heartbeat."""
        (last,) = struct.unpack_from("d", self._heartbeat)
        return time.monotonic() - float(last)

    # --- in the copy ---------------------------------------------------------------------------

    def _run_in_copy(self, listening: socket.socket, lifeline: int) -> NoReturn:
        try:
            detach(listening.fileno(), lifeline)
            asyncio._set_running_loop(None)  # that of the parent process
            asyncio.run(self._serve(listening, lifeline))
        finally:
            os._exit(0)

    async def _serve(self, listening: socket.socket, lifeline: int) -> None:
        asyncio.get_running_loop().add_reader(lifeline, os._exit, 0)
        health = Health()
        health.add("heartbeat", self._check, on=("healthz", "livez"))
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
            is_silent = self._silence >= _SILENT_AFTER
            if is_silent and not accepts:
                listener.resume()
            elif accepts and not is_silent:
                listener.pause()
            accepts = is_silent

    def _check(self) -> str:
        silence = self._silence
        return f"the loop stands still for {silence:.0f} s" if silence > self._deadline else ""


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
