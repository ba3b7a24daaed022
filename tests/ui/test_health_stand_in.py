"""Health checks while the loop stands still; all real."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mooring.runtime.stand_in import StandIn
from mooring.ui.access import OPEN_PATHS, Access
from mooring.ui.endpoints import Endpoints
from mooring.ui.health import Health
from mooring.ui.health_stand_in import HealthStandIn
from mooring.ui.pages import HttpPage
from mooring.ui.serving_tls import ServingTls

TRUSTING = ssl.create_default_context()
TRUSTING.check_hostname = False
TRUSTING.verify_mode = ssl.CERT_NONE


def get(port: int, path: str) -> tuple[int, str]:
    address = f"https://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(address, context=TRUSTING, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Served:
    """Endpoints with a stand-in, and what was asked in a thread while the loop stood still."""

    def __init__(self, port: int) -> None:
        self.port = port

    def during_silence(self, ask: Callable[[], Any]) -> Any:
        """Block the loop until a thread has asked."""
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(ask()))
        time.sleep(0.2)
        thread.start()
        thread.join(20)
        return seen[0]


@asynccontextmanager
async def serving(deadline: float = 60.0, open_paths: Any = OPEN_PATHS) -> AsyncIterator[Served]:
    tls = ServingTls()
    reviewer: Any = None
    endpoints = Endpoints(
        address="127.0.0.1",
        port=0,
        tls=tls,
        health=Health(),
        pages={"/page": lambda: HttpPage(b"page", "text/plain")},
        access=Access(reviewer, open_paths=[*open_paths, "/page"]),
    )
    port = await endpoints.start()
    listening = endpoints.listener.listening
    health = HealthStandIn("127.0.0.1", tls, open_paths, deadline)
    stand_in = StandIn([partial(health.serve, listening)], files=[listening.fileno()])
    stand_in.start()
    beating = asyncio.create_task(stand_in.run())
    try:
        await asyncio.sleep(0)
        yield Served(port)
    finally:
        beating.cancel()
        stand_in.close()
        await endpoints.close()


async def test_health_is_answered_while_the_loop_stands_still() -> None:
    async with serving() as served:
        assert served.during_silence(lambda: get(served.port, "/livez")) == (200, "ok")
        code, text = served.during_silence(lambda: get(served.port, "/healthz?verbose"))
        assert (code, text) == (200, "[+]ping ok\n[+]heartbeat ok\nhealthz check passed\n")


async def test_all_else_is_answered_by_the_process_itself() -> None:
    async with serving() as served:
        for path in ("/page", "/readyz"):
            code, text = served.during_silence(partial(get, served.port, path))
            assert (code, "ServiceUnavailable" in text) == (503, True)
        await asyncio.sleep(0.3)
        for _ in range(20):
            assert await asyncio.to_thread(get, served.port, "/page") == (200, "page")


async def test_health_fails_when_the_loop_stands_still_for_too_long() -> None:
    async with serving(deadline=0.1) as served:
        code, text = served.during_silence(lambda: get(served.port, "/livez"))
        assert code == 500
        assert "[-]heartbeat failed: the loop stands still for" in text
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(get, served.port, "/livez") == (200, "ok")


async def test_health_that_is_not_open_stays_closed() -> None:
    async with serving(open_paths=()) as served:
        code, _ = served.during_silence(lambda: get(served.port, "/livez"))
        assert code == 401
