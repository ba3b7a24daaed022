"""Notices a server that fell silent without a word: a network that swallows everything.

A watch may rightly be silent for a minute, so its silence proves nothing; and TCP keeps alive a
connection to whatever box in between still answers. When nobody has heard anything for a while, a
small request is sent. If that stays without an answer, no watch can be trusted any more.
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
_TIMEOUT: Final = 8.0  # seconds; less than a connection may take, so that we are the first to know
_NO_ANSWER: Final = f"the server gave no sign of life within {_TIMEOUT:g} s"


class Listener(Protocol):
    """Somebody who watches."""

    @property
    def last_contact(self) -> float | None:
        """When, on the loop's clock, the server was last heard."""
        ...

    def restart_watch(self, why: str) -> None:
        """What was heard may be old; begin anew."""
        ...


class LivenessProbe:
    """Feels for the server on behalf of all who listen to it."""

    def __init__(self, client: ApiClient, listeners: Sequence[Listener]) -> None:
        self._client = client
        self._listeners = listeners

    async def run(self) -> NoReturn:
        """Until cancelled."""
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
                self._restart_watches(self._silent_since(began))
            except ApiError as error:  # somebody answered, if only that there is no server
                log.debug("could not ask for a sign of life", extra={"error": str(error)})

    def _restart_watches(self, silent: list[Listener]) -> None:
        log.warning("%s; watches are begun anew", _NO_ANSWER, extra={"watches": len(silent)})
        for listener in silent:
            listener.restart_watch(_NO_ANSWER)

    def _silent_since(self, time: float) -> list[Listener]:
        return [
            one for one in self._listeners if one.last_contact is None or one.last_contact < time
        ]
