"""Runs what owns its process: signals, and a watchdog for plugins that hang."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from mooring.observe.signals import handle_signals
from mooring.runtime.guard import Guard, Watchdog

log = logging.getLogger(__name__)


async def run_until_signalled(
    run: Callable[[], Awaitable[None]], stop: Callable[[], None], guard: Guard
) -> None:
    """Run until it ends; SIGTERM or SIGINT calls `stop`."""

    def on_signal() -> None:
        log.info("Requested to terminate, exiting", extra={"v": 0})
        stop()

    handle_signals(on_signal)
    with Watchdog(guard):
        await run()
    log.info("stopped", extra={"v": 0})
