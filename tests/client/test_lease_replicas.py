"""Several replicas, one lease: never two that may write, and soon one that does."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.client.lease_world import Process, World
from tests.sizes import sized

LEASE_DURATION, RETRY_PERIOD, JITTER = 15.0, 2.0, 1.2
FAIL_OVER = LEASE_DURATION + RETRY_PERIOD * JITTER

# Between a slow and a fast clock lies less than lease_duration / renew_deadline.
RATES = st.sampled_from([0.85, 0.95, 1.0, 1.0001, 1.1, 1.2])
FAULTS = st.sampled_from(["refused", "hang", "lost", "cut", "late", "error", "busy", "slow"])
SECONDS = st.one_of(st.floats(0.01, 3.0), st.floats(3.0, 30.0))
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def one_at_most(world: World) -> None:
    assert len(world.leaders()) <= 1, f"two leaders at {world.time}: {world.leaders()}"


def test_one_of_two_leads(world: World) -> None:
    a, b = world.start("a"), world.start("b")
    world.on_step = lambda: one_at_most(world)
    world.advance(300)
    assert world.leaders() == ["a"]
    assert b.told == ["leader: a"]
    assert a.told == ["leader: a", "started"]


def test_only_one_wins_when_all_find_no_lease_and_the_others_see_who(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    rivals = [world.start(name, delay=0.05) for name in "abc"]
    world.on_step = lambda: one_at_most(world)
    world.advance(0.4)
    assert [r.method for r in world.server.requests] == ["GET"] * 3 + ["POST"] * 3 + ["GET"] * 2
    assert len(world.leaders()) == 1
    assert {rival.election.leader for rival in rivals} == set(world.leaders())
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    world.advance(60)
    assert sum("started" in rival.told for rival in rivals) == 1


def test_a_process_that_was_stopped_does_not_write_beside_its_successor(world: World) -> None:
    a, _ = world.start("a"), world.start("b")
    world.on_step = lambda: one_at_most(world)
    world.advance(3)
    a.pause()
    world.advance(30)
    assert world.leaders() == ["b"]
    a.resume()
    world.advance(60)
    assert world.leaders() == ["b"]


def test_a_claim_that_is_answered_after_its_time_is_none(world: World) -> None:
    world.server.put(holder="")
    a = world.start("a", delay=0.5)
    world.advance(1.7)  # the claim has arrived, its answer is on the way
    assert world.server.holder == "a"
    a.pause()
    world.start("b")
    world.advance(20)
    assert world.leaders() == ["b"]
    world.on_step = lambda: one_at_most(world)
    a.resume(suspended=True)
    world.advance(60)
    assert a.told == ["leader: a", "leader: b"]


@pytest.mark.parametrize("step", [3600.0, -3600.0])
@pytest.mark.parametrize("who", [0, 1])
def test_a_step_of_the_wall_clock_changes_nothing(world: World, step: float, who: int) -> None:
    replicas = [world.start("a"), world.start("b")]
    world.on_step = lambda: one_at_most(world)
    world.advance(11)
    replicas[who].wall_step += step
    world.advance(100)
    assert world.leaders() == ["a"]
    assert replicas[0].told == ["leader: a", "started"]
    assert replicas[1].told == ["leader: a"]


def test_a_renewal_that_arrives_late_overwrites_nobody(world: World) -> None:
    a, _ = world.start("a"), world.start("b")
    world.on_step = lambda: one_at_most(world)
    a.break_wire("late", 20.0)
    world.advance(19)
    assert world.leaders() == ["b"]
    world.advance(30)
    assert world.server.holder == "b"


@QUICK
@given(st.floats(0, 10), st.sampled_from(["crash", "pause", "refused", "hang"]), st.integers(1, 3))
def test_another_leads_soon_after_the_leader_is_gone(
    phase: float, how: str, candidates: int
) -> None:
    world = World()
    try:
        leader = world.start("leader")
        for number in range(candidates):
            world.start(f"candidate-{number}")
            world.advance(0.3)
        world.on_step = lambda: one_at_most(world)
        world.advance(phase)
        match how:
            case "crash":
                world.kill(leader)
            case "pause":
                leader.pause()
            case fault:
                leader.break_wire(fault)
        world.advance(FAIL_OVER + 0.05)
        [successor] = world.leaders()
        assert successor.startswith("candidate")
    finally:
        world.close()


class Replicas(RuleBasedStateMachine):
    """Processes start, crash, end, pause, lose the network; clocks are stepped and run askew."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.on_step = lambda: one_at_most(self.world)
        self.born = 0

    def start(self, rate: float) -> None:
        self.born += 1
        process = self.world.start(f"replica-{self.born}", rate)
        if self.born % 2:
            process.start_stand_in()

    def pick(self, index: int) -> Process:
        return self.world.processes[index % len(self.world.processes)]

    @initialize(first=RATES, second=RATES)
    def begin(self, first: float, second: float) -> None:
        self.start(first)
        self.start(second)

    @rule(rate=RATES)
    def a_replica_starts(self, rate: float) -> None:
        if len(self.world.processes) < 4:
            self.start(rate)

    @rule(index=st.integers(0, 3))
    def a_replica_crashes(self, index: int) -> None:
        if len(self.world.processes) > 1:
            self.world.kill(self.pick(index))

    @rule(index=st.integers(0, 3))
    def a_replica_ends_in_good_order(self, index: int) -> None:
        process = self.pick(index)
        if len(self.world.processes) > 1 and not process.is_paused:
            process.shut_down()
            self.world.advance(1)
            self.world.kill(process)

    @rule(index=st.integers(0, 3))
    def a_replica_is_paused(self, index: int) -> None:
        if not self.pick(index).is_paused:
            self.pick(index).pause()

    @rule(index=st.integers(0, 3), suspended=st.booleans())
    def a_replica_goes_on(self, index: int, suspended: bool) -> None:
        if self.pick(index).is_paused:
            self.pick(index).resume(suspended=suspended)

    @rule(index=st.integers(0, 3), fault=FAULTS, delay=SECONDS)
    def a_wire_breaks(self, index: int, fault: str, delay: float) -> None:
        self.pick(index).break_wire(fault, delay)

    @rule(index=st.integers(0, 3))
    def a_wire_heals(self, index: int) -> None:
        self.pick(index).heal_wire()

    @rule(index=st.integers(0, 3), step=st.sampled_from([3600.0, -3600.0]))
    def a_wall_clock_is_stepped(self, index: int, step: float) -> None:
        self.pick(index).wall_step += step

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def all_is_well_for_a_while(self) -> None:
        for process in self.world.processes:
            process.heal_wire()
            if process.is_paused:
                process.resume()
        # What is on its way may come first, and the slowest clock counts the time.
        self.world.advance(30 + FAIL_OVER / 0.85 + 5)
        assert len(self.world.leaders()) == 1
        assert self.world.server.holder == self.world.leaders()[0]

    @invariant()
    def never_two_may_write(self) -> None:
        one_at_most(self.world)

    @invariant()
    def what_is_told_alternates(self) -> None:
        for process in self.world.processes:
            turns = [word[:7] for word in process.told if not word.startswith("leader")]
            assert set(turns[::2]) <= {"started"}
            assert set(turns[1::2]) <= {"stopped"}

    def teardown(self) -> None:
        self.world.close()


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(QUICK, max_examples=sized(25), stateful_step_count=30)
