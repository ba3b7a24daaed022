"""Detects a server that does not answer any more, such as behind a network that drops everything.

A watch may be silent for a minute, and TCP keep-alive may be answered by a box in between. So when
no watch has received anything for a while, a small request is sent; without a response to it, all
watches are restarted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from mooring.client.client import ApiClient
from mooring.errors import ApiError

log = logging.getLogger(__name__)

_EVERY: Final = 15.0  # seconds
_TIMEOUT: Final = 8.0  # seconds; less than a connection may take
_NO_ANSWER: Final = f"the server did not answer within {_TIMEOUT:g} s"


class Listener(Protocol):
    """A watch, such as that of a reflector."""

    @property
    def last_contact(self) -> float | None:
        """When, on the loop's clock, something last arrived."""
        ...

    def restart_watch(self, why: str) -> None:
        """The server may be gone: connect again."""
        ...


class LivenessProbe:
    """Probes one server for all its watches."""

    def __init__(self, client: ApiClient, listeners: Sequence[Listener]) -> None:
        self._client = client
        self._listeners = listeners

    async def run(self) -> NoReturn:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_EVERY)
            began = loop.time()
            if len(self._silent_since(began - _EVERY)) < len(self._listeners):
                continue
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await self._client.ping()
            except TimeoutError:
                silent = self._silent_since(began)
                log.warning("%s; restarting watches", _NO_ANSWER, extra={"watches": len(silent)})
                for listener in silent:
                    listener.restart_watch(_NO_ANSWER)
            except ApiError as error:  # an answer, if only of a proxy
                log.debug("the liveness probe got an error", extra={"error": str(error)})

    def _silent_since(self, time: float) -> list[Listener]:
        return [
            one for one in self._listeners if one.last_contact is None or one.last_contact < time
        ]
