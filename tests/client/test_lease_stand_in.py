"""A leader whose loop stands still, and the process that renews its lease meanwhile."""

from __future__ import annotations

import pytest
from tests.client.lease_world import SILENT_AFTER, Process, World

from mooring.client.lease import JITTER

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 15.0, 10.0, 2.0


def start(world: World) -> tuple[Process, Process]:
    """A leader with a stand-in just before it renews, and a candidate; at most one leads."""

    def at_most_one() -> None:
        assert len(world.leaders()) <= 1

    leader, candidate = world.start("leader"), world.start("candidate")
    leader.start_stand_in()
    world.on_step = at_most_one
    world.advance(3.9)
    assert world.leaders() == ["leader"]
    return leader, candidate


def stand_still(world: World, process: Process, seconds: float) -> None:
    process.pause()
    world.advance(seconds)
    process.resume()
    world.advance(0.1)


def renewals(world: World) -> int:
    return sum(request.method == "PUT" for request in world.server.requests)


def test_a_leader_that_stands_still_again_and_again_keeps_its_lease(world: World) -> None:
    leader, candidate = start(world)
    for _ in range(20):
        stand_still(world, leader, 0.98 * RENEW_DEADLINE)
        assert world.leaders() == ["leader"]
    assert leader.told == ["leader: leader", "started"]
    assert candidate.told == ["leader: leader"]
    assert world.server.spec["leaseTransitions"] == 0


def test_without_a_stand_in_the_same_leader_loses_it(world: World) -> None:
    leader = world.start("leader")
    world.advance(3.9)
    leader.pause()
    world.advance(0.98 * RENEW_DEADLINE)
    assert world.leaders() == []


def test_a_standstill_costs_one_renewal(world: World) -> None:
    leader, _ = start(world)
    before = renewals(world)
    leader.pause()
    world.advance(RENEW_DEADLINE - 0.1)
    assert renewals(world) == before + 1
    assert world.server.spec["renewTime"].startswith("2023-11-14T22:13:24.4")  # 0.5 s after 23.9


def test_a_renewal_just_before_a_standstill_is_not_the_one_for_it(world: World) -> None:
    leader, _ = start(world)
    world.advance(0.15)  # it has renewed, but not yet written the next heartbeat
    before = renewals(world)
    leader.pause(since_beat=0.2)
    world.advance(RENEW_DEADLINE)
    assert world.leaders() == ["leader"]
    assert renewals(world) == before + 1


def test_a_short_standstill_costs_none(world: World) -> None:
    leader, _ = start(world)
    before = renewals(world)
    leader.pause()
    world.advance(SILENT_AFTER - 0.1)
    assert renewals(world) == before


def test_a_leader_that_stands_still_too_long_is_succeeded_hardly_later(world: World) -> None:
    leader, _ = start(world)
    leader.pause()
    world.advance(SILENT_AFTER + RENEW_DEADLINE + 0.1)
    assert not leader.election.is_leader
    world.advance(LEASE_DURATION - RENEW_DEADLINE + JITTER * RETRY_PERIOD)
    assert world.leaders() == ["candidate"]
    leader.resume()
    world.advance(60)
    assert leader.told[2:] == [
        "stopped: the lease was not renewed within 10 s",
        "leader: candidate",
    ]


def test_a_renewal_that_fails_is_repeated(world: World) -> None:
    leader, _ = start(world)
    leader.pause()
    leader.break_wire("refused")
    world.advance(3)
    leader.heal_wire()
    world.advance(0.9 * RENEW_DEADLINE - 3)
    assert world.leaders() == ["leader"]
    assert world.server.spec["renewTime"] > "2023-11-14T22:13:26"


def test_no_renewal_begins_after_the_deadline(world: World) -> None:
    leader, _ = start(world)
    leader.pause()
    leader.break_wire("refused")
    world.advance(8.6)  # its last renewal was 1.9 s before
    leader.heal_wire()
    before = renewals(world)
    world.advance(4)
    assert renewals(world) == before
    assert not leader.election.is_leader


def test_no_renewal_follows_a_look_that_took_too_long(world: World) -> None:
    leader, _ = start(world)
    leader.pause()
    leader.break_wire("refused")
    world.advance(6.5)
    before = renewals(world)
    leader.break_wire("slow", 1.0)  # each way: the next answer comes after the deadline
    world.advance(6)
    assert renewals(world) == before


def test_a_candidate_that_stands_still_writes_nothing(world: World) -> None:
    _, candidate = start(world)
    candidate.start_stand_in()
    candidate.pause()
    world.advance(60)
    assert world.server.holder == "leader"


def test_the_lease_of_another_is_left_alone(world: World) -> None:
    leader, _ = start(world)
    leader.pause()
    world.server.put(holder="other")
    world.advance(5)
    assert world.server.holder == "other"
    leader.resume()
    world.advance(3)
    assert leader.told[2:] == ["leader: other", "stopped: the lease is held by other"]


@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_a_renewal_whose_answer_is_lost_counts_for_nothing(world: World, fault: str) -> None:
    leader, _ = start(world)
    leader.pause()
    leader.break_wire(fault)
    world.advance(RENEW_DEADLINE)
    assert not leader.election.is_leader


def test_a_leader_that_has_ended_in_good_order_is_not_kept(world: World) -> None:
    leader, _ = start(world)
    leader.shut_down()
    leader.pause()
    world.advance(10)
    assert world.leaders() == ["candidate"]


def test_a_leader_that_stood_still_is_healthy(world: World) -> None:
    leader, _ = start(world)
    for _ in range(10):
        stand_still(world, leader, 0.9 * RENEW_DEADLINE)
    assert leader.election.check() == ""
