"""Runs the command of an exec plugin within limits of time and output, and leaves no process.

What it writes to standard error becomes part of error messages, without what looks like a secret
and without control characters.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

_OUTPUT_LIMIT: Final = 1 << 20  # bytes of standard output
_COMPLAINT_KEPT: Final = 4096  # bytes, the last ones, of standard error
_LINES_SHOWN: Final = 5
_LINE_SHOWN: Final = 300  # characters

_PEM: Final = re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL)
_TOKEN: Final = re.compile(
    r"eyJ[\w-]{8,}(?:\.[\w-]*)*"  # a JSON web token
    r"|[A-Za-z0-9_+=~-]{32,}"  # random enough, and no word
    r"|^[A-Za-z0-9_+/=-]{32,}$",  # a line of base64, and no path among words
    re.MULTILINE,
)
_ESCAPE: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_HIDDEN: Final = "[hidden]"


class CommandFailed(Exception):
    """The command did not start, took too long, printed too much or ended with a failure."""


class _Run(asyncio.SubprocessProtocol):
    """Collects what one process prints; `ended` once it is gone and its pipes are closed."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.complaint = bytearray()
        self.overflow = asyncio.Event()
        self.ended = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self.complaint += data
            del self.complaint[:-_COMPLAINT_KEPT]
        elif len(self.output) + len(data) > _OUTPUT_LIMIT:
            self.overflow.set()
        else:
            self.output += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


_Started = tuple[asyncio.SubprocessTransport, _Run]


async def run_command(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    is_interactive: bool,
    time_limit: float,
    secrets: Iterable[str] = (),
) -> bytes:
    """What the command prints; an interactive one talks to our terminal meanwhile."""
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            _Run,
            *command,
            env=environ,
            stdin=None if is_interactive else subprocess.DEVNULL,
            stderr=None if is_interactive else subprocess.PIPE,
            # A group of its own, to be able to end its children as well; but a group that is not
            # the terminal's may not read from it.
            start_new_session=not is_interactive,
        )
    )
    failure = ""
    try:
        # Not to be cancelled half way: it may be running by then, and its children with it.
        _, run = await asyncio.shield(starting)
        failure = await _wait(run, time_limit)
    except (OSError, ValueError) as error:
        raise CommandFailed(f"cannot be started: {_words(error)}") from error
    finally:
        await asyncio.shield(_end(starting, is_group=not is_interactive))
    transport, run = starting.result()
    code = transport.get_returncode()
    if not failure and code:
        failure = f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"
    if failure:
        raise CommandFailed(failure + _last_words(bytes(run.complaint), secrets))
    return bytes(run.output)


async def _end(starting: asyncio.Future[_Started], *, is_group: bool) -> None:
    """Wait for the process, killed if it still runs, so that none outlives its caller."""
    await asyncio.wait([starting])
    if starting.exception() is not None:
        return
    transport, run = starting.result()
    if not run.ended.is_set():
        kill = os.killpg if is_group else os.kill
        with suppress(ProcessLookupError):  # it has just ended by itself
            kill(transport.get_pid(), signal.SIGKILL)
    transport.close()
    await run.ended.wait()


async def _wait(run: _Run, time_limit: float) -> str:
    """Wait for the end, or for the first limit that is broken; which one that was."""
    waiting = [asyncio.ensure_future(event.wait()) for event in (run.ended, run.overflow)]
    try:
        await asyncio.wait(waiting, timeout=time_limit, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiting:
            waiter.cancel()
    if run.overflow.is_set():
        return f"printed more than {_OUTPUT_LIMIT} bytes"
    return "" if run.ended.is_set() else f"was still running after {time_limit:g} seconds"


def _words(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _last_words(complaint: bytes, secrets: Iterable[str]) -> str:
    if len(complaint) == _COMPLAINT_KEPT:
        complaint = complaint.partition(b"\n")[2]  # the rest of a secret does not look like one
    text = complaint.decode(errors="replace")
    for secret in secrets:
        if secret:
            text = text.replace(secret, _HIDDEN)
    text = _TOKEN.sub(_HIDDEN, _PEM.sub(_HIDDEN, text))
    lines = [printable(line)[:_LINE_SHOWN].strip() for line in text.splitlines()]
    shown = [line for line in lines if line][-_LINES_SHOWN:]
    return ": " + " | ".join(shown) if shown else ""


def printable(text: str) -> str:
    """The text without colours and control characters, which could rewrite a terminal or a log."""
    plain = _ESCAPE.sub("", text)
    return "".join(letter if letter.isprintable() else " " for letter in plain).strip()
