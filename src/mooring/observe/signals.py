"""Signal handling.

SIGTERM, SIGINT     stop the process; a second one ends it at once
SIGUSR2             writes the state of a scheduler to the log; of other processes, as SIGUSR1
SIGUSR1             is logged and ignored
SIGHUP              a scheduler takes a changed configuration; others end, as do all on a terminal
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

log = logging.getLogger(__name__)

_STOP: Final = (signal.SIGTERM, signal.SIGINT)
_IGNORED: Final = (signal.SIGUSR1, signal.SIGUSR2)  # their default is to end the process
_quiet: Final[set[object]] = set()  # handlers that event loops have set: they raise nothing


def handle_signals(
    stop: Callable[[], None],
    dump: Callable[[], None] | None = None,
    reload: Callable[[], None] | None = None,
) -> None:
    """Handle signals in the running loop until it is closed; the first stop signal calls `stop`.

    Each SIGUSR2 calls `dump`, each SIGHUP `reload`.
    """
    loop = asyncio.get_running_loop()
    is_stopping = False

    def on_signal(number: int) -> None:
        nonlocal is_stopping
        if is_stopping:
            log.warning("second signal: exiting at once")
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        is_stopping = True
        stop()

    for number in _STOP:
        loop.add_signal_handler(number, on_signal, number)
    for number in _IGNORED:
        loop.add_signal_handler(number, _ignore, number)
    if dump is not None:
        loop.add_signal_handler(signal.SIGUSR2, dump)
    if reload is not None and not sys.stdin.isatty():  # else it means that the terminal has gone
        loop.add_signal_handler(signal.SIGHUP, reload)
    _quiet.add(signal.getsignal(signal.SIGINT))


async def run_until_signalled(
    run: Callable[[], Awaitable[None]],
    stop: Callable[[], None],
    dump: Callable[[], None] | None = None,
    reload: Callable[[], None] | None = None,
) -> None:
    """Await the main function of this process; a signal calls `stop`, `dump` or `reload`."""

    def on_signal() -> None:
        log.info("Requested to terminate, exiting", extra={"v": 0})
        stop()

    handle_signals(on_signal, dump, reload)
    await run()
    log.info("stopped", extra={"v": 0})


def is_ctrl_c(error: BaseException) -> bool:
    """Whether an exception may come from SIGINT.

    If the event loop handles SIGINT, a KeyboardInterrupt was raised by code, not by the signal.
    """
    # By type, because `error.__class__` may run code of a plugin.
    return issubclass(type(error), KeyboardInterrupt) and (
        signal.getsignal(signal.SIGINT) not in _quiet
    )


def _ignore(number: int) -> None:
    name = signal.Signals(number).name
    log.info("Received a signal that is ignored", extra={"v": 0, "signal": name})
