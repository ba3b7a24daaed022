"""Answers that take longer than a moment: from a process of its own, with a snapshot.

The process is started for one question and ends with its answer. It is nice (10), has limited
memory and time, and reads its question and the snapshot from stdin: there is no file, and nothing
of the cluster on its command line.

    stdin     {"question": …, "body": …}, a line feed, the snapshot if the question is about one
    stdout    the answer, or one line why there is none and exit code 2
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, nullcontext, suppress
from typing import Final

import msgspec

from mooring.errors import ConfigError, Problem
from mooring.lens.api import Depth
from mooring.lens.slices import Busy

log = logging.getLogger(__name__)

SECONDS: Final = 60.0
MEMORY: Final = 4 << 30  # bytes of address space
NICE: Final = 10
MAX_WAITING: Final = 4  # questions, besides the one that is being answered
REFUSED: Final = 2  # exit code: the question is at fault

_LIMITS: Final = (
    "import os, resource, runpy, sys;"
    "os.nice({nice});"
    "resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}));"
    "resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}));"
    "sys.argv = [{module!r}];"
    "runpy.run_module({module!r}, run_name='__main__')"
)


class WorkerQuestion(msgspec.Struct, frozen=True):
    """The first line of stdin."""

    question: str
    body: str = ""
    plugins: tuple[str, ...] = ()  # "module:Class", of --plugin


class PastQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The body of "past": an attempt, and where its journal is; see `JournalFolder.before`."""

    journal: str  # folder
    since: float
    seq: int
    pod: str  # "namespace/name"
    depth: Depth = "groups"
    nodes: tuple[str, ...] = ()  # to say more about


class LensWorker:
    """One question at a time, as they come; `module` is run as a program and answers it."""

    def __init__(
        self,
        module: str,
        *,
        plugins: Sequence[str] = (),
        seconds: float = SECONDS,
        memory: int = MEMORY,
    ) -> None:
        self._module = module
        self._plugins = tuple(plugins)
        self._seconds = seconds
        self._memory = memory
        self._asked = 0
        self._turn = asyncio.Lock()

    async def ask(
        self, question: str, body: bytes, snapshot: AsyncGenerator[bytes, None] | None = None
    ) -> bytes:
        """The answer; Busy if too many wait for theirs, ConfigError if there is none."""
        if self._asked > MAX_WAITING:
            raise Busy(f"{MAX_WAITING} questions wait for their answers")
        self._asked += 1
        try:
            closing = nullcontext() if snapshot is None else aclosing(snapshot)
            async with closing, asyncio.timeout(self._seconds), self._turn:
                return await self._ask(question, body, snapshot)
        except TimeoutError:
            text = f"no answer within {self._seconds:.0f} seconds"
            raise ConfigError([Problem(question, text)]) from None
        finally:
            self._asked -= 1

    async def _ask(
        self, question: str, body: bytes, snapshot: AsyncGenerator[bytes, None] | None
    ) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            asked = WorkerQuestion(question, body.decode(errors="replace"), self._plugins)
            feeding = asyncio.create_task(_feed(process, asked, snapshot))
            try:
                assert process.stdout is not None
                assert process.stderr is not None
                answer, said = await asyncio.gather(process.stdout.read(), process.stderr.read())
                code = await process.wait()
                await feeding
            finally:
                feeding.cancel()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if code == 0:
            return answer
        if code == REFUSED:
            raise ConfigError([Problem("", said.decode(errors="replace").strip())])
        log.warning(
            "a worker of the lens failed",
            extra={
                "question": question,
                "code": code,
                "error": said[-2000:].decode("utf-8", "replace"),
            },
        )
        what = "it needs more memory than it may have" if b"MemoryError" in said else "it failed"
        raise ConfigError([Problem(question, f"the worker gave no answer: {what}")])

    def _command(self) -> list[str]:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        memory = self._memory if hard == resource.RLIM_INFINITY else min(self._memory, hard)
        text = _LIMITS.format(
            nice=NICE, memory=memory, seconds=int(self._seconds) + 1, module=self._module
        )
        return [sys.executable, "-c", text]


async def _feed(
    process: asyncio.subprocess.Process,
    asked: WorkerQuestion,
    snapshot: AsyncGenerator[bytes, None] | None,
) -> None:
    stdin = process.stdin
    assert stdin is not None
    with suppress(ConnectionError):  # it has ended, and says why
        stdin.write(msgspec.json.encode(asked) + b"\n")
        if snapshot is not None:
            async for chunk in snapshot:
                stdin.write(chunk)
                await stdin.drain()
        stdin.close()
        await stdin.wait_closed()
