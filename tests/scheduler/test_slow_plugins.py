"""A plugin that takes too long fails its pod only; one that never ends is interrupted."""

from typing import Any

import pytest
from tests.scheduler.misbehaving import (
    ASYNC,
    SILENT,
    SYNC,
    cornered,
    try_the_victim_and_then_an_innocent,
)
from tests.scheduler.recording import USUAL, Log, place, probe, world

from mooring.framework import OK, Status
from mooring.runtime.guard import Watchdog
from mooring.testing.builders import pod


class Stopwatch:
    """Time that passes only when a plugin says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def dawdle(self, *_: Any) -> Any:
        self.seconds += 6
        return USUAL


@pytest.mark.parametrize("point", SYNC + ASYNC)
def test_an_answer_that_comes_too_late_is_an_error(point: str) -> None:
    log: Log = []
    watch = Stopwatch()
    with cornered(point, watch.dawdle, log) as sim:
        sim.scheduler.guard.timer = watch
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    if point == "pre_enqueue":
        assert outcome.startswith("gated: gated by the PreEnqueue plugin First: ")
        assert "took longer than its budget of 5s" in outcome
    elif point == "bind":
        assert outcome == "a: "  # what was bound stays bound, however long it took
    elif point not in SILENT:
        assert '"First"' in outcome
        assert "took longer than its budget of 5s" in outcome


@pytest.mark.parametrize("point", ["filter", "score"])
def test_the_budget_is_for_all_nodes_together(point: str) -> None:
    log: Log = []
    watch = Stopwatch()
    with world(probe("First", log, **{point: watch.dawdle}), nodes=[*"abcdefgh"]) as sim:
        sim.scheduler.guard.timer = watch
        sim.scheduler.guard.budget = 20
        sim.schedule(pod("p"))
        assert log.count(f"First.{point}") == 4
        assert "budget of 20s" in sim.why("p")


def test_waiting_costs_nothing_but_hogging_the_loop_does() -> None:
    log: Log = []
    watch = Stopwatch()

    def in_steps(step: float) -> Any:
        async def pre_bind(self: Any, *_: Any) -> Status:
            for _i in range(3):
                watch.seconds += step
                await self.handle.clock.sleep(100)
            return OK

        return pre_bind

    for step, why in ((1.0, ""), (2.0, 'running PreBind plugin "First": took longer')):
        with world(probe("First", log, pre_bind=in_steps(step))) as sim:
            sim.scheduler.guard.timer = watch
            sim.schedule(pod("p"))
            sim.advance(300)
            assert sim.why("p").startswith(why)
            assert place(sim, "p") == ("error backoff" if why else "a")


def hang(*_: Any) -> Any:
    while True:
        pass


@pytest.mark.parametrize("point", SYNC + ASYNC)
def test_the_watchdog_ends_a_plugin_that_hangs(point: str) -> None:
    log: Log = []
    with cornered(point, hang, log, budget=0.2) as sim:
        with Watchdog(sim.scheduler.guard):
            sim.schedule(pod("victim"))
        assert f"First.{point}" in log
        outcome = sim.why("victim") or place(sim, "victim")
        sim.scheduler.guard.budget = 5.0
        sim.schedule(pod("innocent"))
        assert sim.node_of("innocent") != ""
    if point == "post_bind":
        assert outcome == "a"
    elif point == "unreserve":
        assert outcome == "0/1 nodes are available: 1 no."
    else:
        assert outcome is not None
        assert "First" in outcome
        assert "took longer than its budget of 0.2s" in outcome


def test_the_watchdog_comes_back_for_a_plugin_that_ignores_it() -> None:
    log: Log = []
    swallowed: list[BaseException] = []

    def deaf(*_: Any) -> Any:
        try:
            hang()
        except BaseException as error:
            swallowed.append(error)
        hang()

    with cornered("filter", deaf, log, budget=0.2) as sim:
        with Watchdog(sim.scheduler.guard):
            sim.schedule(pod("victim"))
        assert len(swallowed) == 1
        assert "took longer than its budget" in sim.why("victim")


def test_the_watchdog_leaves_our_own_code_alone() -> None:
    log: Log = []
    with world(probe("First", log), budget=0.02) as sim, Watchdog(sim.scheduler.guard):
        watch = Stopwatch()
        real = sim.scheduler.guard.timer
        until = real() + 0.06
        while real() < until:
            pass
        sim.scheduler.guard.timer = watch
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "a"


@pytest.mark.parametrize("dawdles", [True, False])
def test_others_get_a_turn_after_a_decision_that_took_long(
    dawdles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Log = []
    watch = Stopwatch()
    answers = {"filter": watch.dawdle} if dawdles else {}
    with world(probe("First", log, **answers), nodes=["a"]) as sim:
        monkeypatch.setattr(sim.loop, "time", watch)
        sim.apply(pod("p"), pod("q"))
        sim.settle()
    decided, begins_to_bind = "First.filter", "First.pre_flight"
    steps = [step for step in log if step in (decided, begins_to_bind)]
    if dawdles:
        assert steps == [decided, begins_to_bind] * 2
    else:
        assert steps == [decided] * 2 + [begins_to_bind] * 2
