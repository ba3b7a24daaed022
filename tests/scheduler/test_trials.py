"""Pods tried in forked copies of this process; all real."""

import asyncio
import contextlib
import fcntl
import os
import signal
import time
from collections import defaultdict
from typing import Any

import pytest

import mooring.framework as fw
from mooring.framework.plugin import Args
from mooring.observe.metrics import Metrics
from mooring.runtime import forked
from mooring.runtime.guard import Guard
from mooring.scheduler import trials as module
from mooring.scheduler.trials import Outcome, PodTrial, Trials
from mooring.testing.builders import pod

SOON = 0.2  # seconds


class Quiet(fw.Filter):
    name = "Quiet"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


class Stage:
    """Trials of pods; their names say what happens."""

    def __init__(self, budget: float = 1.0) -> None:
        self.guard = Guard(Metrics(), budget=budget)
        handle: Any = None
        self._plugin = Quiet(Args(), handle)
        cache: Any = type("", (), {"nodes": ()})
        self.trials = Trials(self.guard, cache, screening=SOON, memory=1 << 28)
        self.outcomes: dict[str, Outcome] = {}
        self.doubted: set[str] = set()
        self.gone: set[str] = set()
        self._ended: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def submit(self, *names: str, alone: bool = False, key: str = "") -> None:
        runtime: Any = type("", (), {"cycle": self})
        for name in names:
            tried = pod(name)
            report = self._reporter(name)
            is_doubted = self._doubting(name)
            is_wanted = self._wanting(name)
            trial = PodTrial(runtime, tried, key or name, alone, is_doubted, is_wanted, report)
            self.trials.submit(trial)

    def _reporter(self, name: str) -> Any:
        def report(outcome: Outcome) -> None:
            assert name not in self.outcomes
            self.outcomes[name] = outcome
            self._ended[name].set()

        return report

    def _wanting(self, name: str) -> Any:
        return lambda: name not in self.gone

    def _doubting(self, name: str) -> Any:
        return lambda: name in self.doubted

    def decide_alone(self, _state: Any, pod: fw.Pod, _nodes: Any) -> None:
        self.guard.call(self._plugin, "Filter", getattr(self, pod.name.split("-")[0]))

    def good(self) -> None: ...

    def raises(self) -> None:
        raise ValueError("boom")

    def killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def deaf(self) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(60)

    def slow(self) -> None:
        time.sleep(2 * SOON)

    def hangs(self) -> None:
        sum(range(10**12))

    def bomb(self) -> None:
        taken = []
        while True:
            taken.append(bytearray(1 << 24))

    def ends(self) -> None:
        os._exit(7)

    async def wait(self, *names: str) -> None:
        async with asyncio.timeout(20):
            for name in names:
                await self._ended[name].wait()


async def test_reports_how_long_each_pod_took() -> None:
    stage = Stage()
    stage.submit("good-1", "good-2", "raises")
    await stage.wait("good-1", "good-2", "raises")
    assert all(not one.overran and one.seconds < SOON for one in stage.outcomes.values())
    assert "good-1" not in stage.trials


async def test_a_pod_that_hangs_takes_no_other_with_it() -> None:
    stage = Stage()
    stage.submit("hangs", *(f"good-{i}" for i in range(10)), key="same")
    stage.doubted |= {"hangs", *(f"good-{i}" for i in range(10))}
    await stage.wait("hangs", *(f"good-{i}" for i in range(10)))
    assert stage.outcomes.pop("hangs") == Outcome(
        0.0, "took longer than its budget of 0.2s", "Quiet", "Filter"
    )
    assert not any(one.overran for one in stage.outcomes.values())


async def test_a_batch_moves_on_while_one_of_its_pods_hangs() -> None:
    stage = Stage(budget=60.0)
    stage.trials._screening = 30.0
    names = ["hangs", *(f"good-{i}" for i in range(10))]
    stage.doubted |= set(names)
    stage.submit(*names, key="same")
    await stage.wait(*names[1:])
    assert "hangs" not in stage.outcomes
    stage.trials.close()


async def test_alone_a_pod_has_the_whole_budget() -> None:
    stage = Stage()
    stage.submit("slow", "hangs", alone=True)
    began = time.monotonic()
    await stage.wait("slow", "hangs")
    assert 2 * SOON <= stage.outcomes["slow"].seconds < 1.0
    assert stage.outcomes["hangs"].overran == "took longer than its budget of 1s"
    assert time.monotonic() - began >= 1.0


async def test_memory_is_limited_and_the_plugin_named() -> None:
    stage = Stage(budget=15.0)
    stage.submit("bomb", alone=True)
    await stage.wait("bomb")
    overran = "took more than its 256Mi of memory"
    assert stage.outcomes["bomb"] == Outcome(0.0, overran, "Quiet", "Filter")


async def test_a_plugin_that_ends_the_process_ends_the_copy() -> None:
    stage = Stage()
    stage.submit("ends", alone=True)
    await stage.wait("ends")
    assert stage.outcomes["ends"].overran == "ended its process with 7"


async def test_a_copy_that_the_kernel_kills_is_not_called_slow() -> None:
    stage = Stage()
    stage.submit("killed", alone=True)
    await stage.wait("killed")
    what = "was killed with its process, as when the memory of the machine runs out"
    assert stage.outcomes["killed"] == Outcome(0.0, what, "Quiet", "Filter")


async def test_a_copy_that_ignores_its_timer_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE", 0.1)
    stage = Stage(budget=SOON)
    stage.submit("deaf", alone=True)
    await stage.wait("deaf")
    assert stage.outcomes["deaf"].overran == f"took longer than its budget of {SOON:g}s"


async def test_one_pod_of_a_kind_is_screened_first() -> None:
    stage = Stage()
    stage.submit("hangs-1", "hangs-2", "hangs-3", key="same")
    await asyncio.sleep(SOON / 4)
    assert len(stage.trials.withdraw("same")) == 2
    assert "hangs-2" not in stage.outcomes


async def test_a_pod_that_is_gone_is_not_tried() -> None:
    stage = Stage()
    stage.gone |= {"good-1", "good-2"}
    stage.submit("good-1")
    stage.submit("good-2", "good-3", alone=True)
    await stage.wait("good-3")
    assert stage.outcomes.keys() == {"good-3"}
    stage.gone.clear()
    stage.submit("good-1", "good-2")
    await stage.wait("good-1", "good-2")


async def test_few_copies_at_a_time() -> None:
    stage = Stage()
    stage.submit("hangs-1", "hangs-2", "hangs-3", alone=True)
    stage.submit("slow-1", "slow-2", "slow-3")
    await asyncio.sleep(SOON / 4)
    most = module._MOST_ALONE + module._MOST_SCREENING + module._MOST_STUCK
    assert 2 < len(stage.trials._running) <= most
    await stage.wait("hangs-1", "hangs-2", "hangs-3", "slow-1", "slow-2", "slow-3")
    assert stage.trials._running == {}


async def test_a_fork_that_fails_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    forks = iter([True, True])

    def fork() -> int:
        if next(forks, False):
            raise BlockingIOError("no process is left")
        return os.fork()

    monkeypatch.setattr(forked, "fork", fork)
    monkeypatch.setattr(module, "_FORK_AGAIN", 0.01)
    stage.submit("good-1")
    stage.submit("good-2", alone=True)
    await stage.wait("good-1", "good-2")


async def test_close_ends_all_copies() -> None:
    stage = Stage(budget=60.0)
    stage.submit("hangs", alone=True)
    await asyncio.sleep(0.05)
    pids = [batch.copy.pid for batch in stage.trials._running.values()]
    assert pids
    stage.trials.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_copy_has_no_files_of_ours() -> None:
    stage = Stage()
    reading, writing = os.pipe()
    high = fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, 500)  # beyond the pipe of the copy

    def keeps(*_: Any) -> None:
        for file in (writing, high):
            with contextlib.suppress(OSError):
                os.write(file, b"x")

    stage.good = keeps  # type: ignore[method-assign]  # what the copy runs
    stage.submit("good")
    await stage.wait("good")
    os.set_blocking(reading, False)
    with pytest.raises(BlockingIOError):
        os.read(reading, 1)
    for file in (reading, writing, high):
        os.close(file)
