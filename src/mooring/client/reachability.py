"""Whether an API server can be reached, in few lines of the log.

Each watch, the lease and the permissions find out on their own; the connection says it for all.
"""

from __future__ import annotations

import logging
from typing import Final

log = logging.getLogger(__name__)

AGAIN: Final = 60.0  # seconds between two lines


class Reachability:
    """Logs the first failure to connect to a server, one a minute after it, and the recovery."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lost_at: float | None = None
        self._said_at = 0.0

    def lost(self, why: str, now: float) -> None:
        """No connection could be opened; the times are those of the event loop."""
        if self._lost_at is None:
            self._lost_at = now
        elif now - self._said_at < AGAIN:
            return
        self._said_at = now
        extra: dict[str, object] = {"server": self._server, "error": why}
        if now > self._lost_at:
            extra["seconds"] = round(now - self._lost_at)
        log.warning("can't reach the API server", extra=extra)

    def found(self, now: float) -> None:
        """A connection was opened."""
        if self._lost_at is not None:
            seconds = round(now - self._lost_at)
            self._lost_at = None
            extra = {"v": 0, "server": self._server, "seconds": seconds}
            log.info("the API server can be reached again", extra=extra)
