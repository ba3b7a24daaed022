"""The second process of a component: when it acts, and that it ends; all real."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.controlplane.waiting import wait_until

from mooring.runtime.stand_in import Silence, StandIn

PROCESS = """
import asyncio, os, sys, time
from mooring.runtime.stand_in import StandIn

async def duty(silence):
    print(os.getpid(), file=open(sys.argv[1], "w"))
    await asyncio.sleep(600)

async def main():
    stand_in = StandIn([duty])
    stand_in.start()
    if not os.fork():  # a child that lives on, with all files of its parent
        time.sleep(60)
    await stand_in.run()

asyncio.run(main())
"""


class Longest:
    """The longest silence that a duty was told, in shared memory."""

    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, 8)).cast("d")

    async def duty(self, silence: Silence) -> None:
        while True:
            self._page[0] = max(self.seconds, silence())
            await asyncio.sleep(0.01)

    @property
    def seconds(self) -> float:
        return self._page[0]


@asynccontextmanager
async def standing_in(longest: Longest) -> AsyncIterator[StandIn]:
    stand_in = StandIn([longest.duty])
    stand_in.start()
    beating = asyncio.create_task(stand_in.run())
    try:
        await asyncio.sleep(0)
        yield stand_in
    finally:
        beating.cancel()
        stand_in.close()


@contextmanager
def in_a_session(script: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", script, *args], start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_loop_that_stands_still_is_silent_since_its_last_heartbeat() -> None:
    longest = Longest()
    async with standing_in(longest):
        wait_until(lambda: longest.seconds > 1.0, what="the silence is seen")  # blocks the loop
        await asyncio.sleep(0.3)
        before = longest.seconds
        await asyncio.sleep(0.3)
        assert longest.seconds == before


async def test_another_one_follows_one_that_was_killed() -> None:
    longest = Longest()
    async with standing_in(longest) as stand_in:
        os.kill(stand_in._pid, signal.SIGKILL)
        first = stand_in._pid
        async with asyncio.timeout(10):
            while stand_in._pid == first:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        wait_until(lambda: longest.seconds > 0.5, what="the next one sees the silence")


async def test_signals_of_a_terminal_are_left_to_the_process() -> None:
    longest = Longest()
    async with standing_in(longest) as stand_in:
        wait_until(lambda: longest.seconds > 0, what="it is at work")
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(stand_in._pid, number)
        before = longest.seconds
        wait_until(lambda: longest.seconds > before + 0.1, what="it goes on")


def test_it_ends_when_the_process_is_killed_even_if_a_child_of_that_is_left(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    with in_a_session(PROCESS, str(noted)) as process:
        wait_until(lambda: noted.exists() and noted.read_text(), what="the stand-in runs")
        pid = int(noted.read_text())
        assert is_alive(pid)
        process.kill()
        wait_until(lambda: not is_alive(pid), what="the stand-in has ended", every=0.01)


def test_it_ends_when_it_is_closed() -> None:
    stand_in = StandIn([])
    stand_in.start()
    pid = stand_in._pid
    stand_in.close()
    assert not is_alive(pid)
