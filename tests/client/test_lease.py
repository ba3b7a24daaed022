"""One replica, one lease: how it is won, kept, lost, given back, and what is written into it."""

import json
import logging

import pytest
from tests.client.lease_world import NAME, NAMESPACE, World
from tests.faulty_transport import Garbage
from tests.garbage import NO_OBJECT, NO_TEXT

from mooring.client.client import ApiClient
from mooring.client.errors import Fenced
from mooring.client.lease import (
    LeaderElection,
    default_identity,
    refuse_foreign_lease,
    uptime,
)


def test_creates_a_lease_that_does_not_exist(world: World) -> None:
    a = world.start("a")
    assert world.leaders() == ["a"]
    assert a.told == ["leader: a", "started"]
    assert world.server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    }


def test_renews_every_retry_period_and_keeps_the_time_of_acquisition(world: World) -> None:
    world.start("a")
    before = len(world.server.requests)
    world.advance(20)
    assert len(world.server.requests) - before == 10
    assert world.server.spec["renewTime"] == "2023-11-14T22:13:40.000000Z"
    assert world.server.spec["acquireTime"] == "2023-11-14T22:13:20.000000Z"
    assert world.server.spec["leaseTransitions"] == 0


def test_renews_so_that_others_can_see_it_even_if_its_clock_stands_still(world: World) -> None:
    a = world.start("a")
    b = world.start("b")
    for _ in range(200):
        a.wall_step -= 0.5
        world.advance(0.5)
    assert world.leaders() == ["a"]
    assert b.told == ["leader: a"]


def test_rounds_the_duration_up_so_that_nobody_waits_too_short(world: World) -> None:
    world.start("a", lease_duration=10.2, renew_deadline=10.1)
    assert world.server.spec["leaseDurationSeconds"] == 11


def test_takes_a_free_lease_at_once(world: World) -> None:
    world.server.put(holder="", duration=1)
    world.start("a")
    assert world.leaders() == ["a"]
    assert world.server.spec["leaseTransitions"] == 4


def test_waits_for_the_duration_of_the_record_before_it_takes_a_foreign_lease(world: World) -> None:
    world.server.put(holder="gone", duration=40)
    a = world.start("a")
    world.advance(39.9)
    assert world.leaders() == []
    assert a.election.leader == "gone"
    world.advance(0.2)
    assert world.leaders() == ["a"]
    assert a.told == ["leader: gone", "leader: a", "started"]
    assert world.server.spec["leaseTransitions"] == 4


def test_waits_its_own_duration_for_a_record_without_one(world: World) -> None:
    world.server.put(holder="gone", duration=None)
    world.start("a")
    world.advance(14.9)
    assert world.leaders() == []
    world.advance(0.2)
    assert world.leaders() == ["a"]


def test_counts_from_when_the_answer_came_not_from_when_it_was_asked_for(world: World) -> None:
    world.start("b")
    a = world.start("a", delay=2.0)  # its question is on the way
    a.pause()
    world.advance(30)
    world.processes[0].break_wire("refused")  # b has just renewed, and may write until 40
    a.resume(suspended=True)
    world.advance(9.9)
    assert a.told == ["leader: b"]
    assert world.leaders() == ["b"]
    world.advance(20)
    assert world.leaders() == ["a"]


def test_is_not_misled_by_a_record_from_the_future(world: World) -> None:
    world.server.put(holder="b", renewTime="2099-01-01T00:00:00.000000Z")
    world.start("a")
    world.advance(15.1)
    assert world.leaders() == ["a"]


def test_leaves_alone_what_it_does_not_know_of_a_lease(world: World) -> None:
    world.server.put(
        holder="", metadata={"labels": {"team": "x"}}, strategy="OldestEmulationVersion"
    )
    world.start("a")
    assert world.server.lease is not None
    assert world.server.holder == "a"
    assert world.server.lease["metadata"]["labels"] == {"team": "x"}
    assert world.server.lease["metadata"]["uid"] == "u"
    assert world.server.spec["strategy"] == "OldestEmulationVersion"


@pytest.mark.parametrize("fault", ["refused", "error", "busy", "cut", "hang", "lost"])
def test_may_not_write_after_the_renew_deadline(world: World, fault: str) -> None:
    a = world.start("a")
    world.advance(4.1)  # the last renewal was at 4
    a.break_wire(fault)
    world.advance(9.8)
    assert world.leaders() == ["a"]
    a.election.fence()
    world.advance(0.2)
    assert world.leaders() == []
    assert a.told[-1] == "stopped: the lease was not renewed within 10 s"
    with pytest.raises(Fenced, match=r"not the leader of the lease kube-system/mooring since .*"):
        a.election.fence()


@pytest.mark.parametrize("fault", ["refused", "error", "busy", "cut", "hang", "lost"])
def test_survives_an_outage_that_is_shorter_than_the_deadline(world: World, fault: str) -> None:
    a = world.start("a")
    world.advance(4.1)
    a.break_wire(fault)
    world.advance(5)
    a.heal_wire()
    world.advance(30)
    assert a.told == ["leader: a", "started"]
    assert world.leaders() == ["a"]


def test_leads_again_when_nobody_took_the_lease_meanwhile(world: World) -> None:
    a = world.start("a")
    a.break_wire("refused")
    world.advance(60)
    a.heal_wire()
    world.advance(2.5)
    assert a.told[1:] == ["started", "stopped: the lease was not renewed within 10 s", "started"]
    assert world.server.spec["leaseTransitions"] == 0


def test_stops_at_once_when_it_sees_another_name_in_the_lease(world: World) -> None:
    a = world.start("a")
    world.server.put(holder="kubectl")
    world.advance(2)
    assert a.told[2:] == ["leader: kubectl", "stopped: the lease is held by kubectl"]


def test_does_not_pass_over_a_reign_that_ended_already(world: World) -> None:
    a = world.start("a")
    world.server.put(holder="")  # somebody took it and gave it back
    world.advance(2)
    assert a.told[2:] == ["stopped: the lease is held by no replica", "started"]


def test_creates_its_lease_again_when_it_is_deleted(world: World) -> None:
    a = world.start("a")
    world.advance(5)
    world.server.delete()
    world.advance(5)
    assert a.told == ["leader: a", "started"]
    assert world.server.holder == "a"


def test_respects_the_holder_of_a_deleted_lease(world: World) -> None:
    a = world.start("a")
    world.start("b")
    world.advance(6)
    a.pause()
    world.server.delete()
    for _ in range(160):
        world.advance(0.1)
        assert len(world.leaders()) <= 1
    assert world.leaders() == ["b"]


def test_finds_out_after_a_pause_before_any_of_its_tasks_ran(world: World) -> None:
    a = world.start("a")
    world.advance(1)
    a.pause()
    world.advance(30)
    assert a.told == ["leader: a", "started"]  # nothing has run
    with pytest.raises(Fenced, match=r"since 2023-11-14T22:13:30Z \(21.0 s ago\)"):
        a.election.fence()
    assert a.election.check() == ""
    world.advance(5)
    text = "failed election to renew leadership on lease kube-system/mooring"
    assert a.election.check() == text
    a.resume()
    assert a.told[2] == "stopped: the lease was not renewed within 10 s"
    assert a.election.check() == ""


@pytest.mark.parametrize("suspended", [False, True])
def test_a_renewal_answered_after_a_long_pause_counts_from_its_start(
    world: World, suspended: bool
) -> None:
    a = world.start("a")
    b = world.start("b")
    a.break_wire("slow", 0.5)
    world.advance(2.7)  # a's renewal has arrived, its answer is on the way
    a.pause()
    world.advance(18)
    assert world.leaders() == ["b"]
    a.resume(suspended=suspended)
    assert world.leaders() == ["b"]
    a.heal_wire()
    world.advance(60)
    assert world.leaders() == ["b"]
    assert a.told[2:] == ["stopped: the lease was not renewed within 10 s", "leader: b"]
    assert b.told == ["leader: a", "leader: b", "started"]


def test_a_renewal_that_began_too_late_is_a_new_reign(world: World) -> None:
    a = world.start("a")
    a.break_wire("cut")
    world.advance(2.1)  # renewed, but it does not know; so it has to read the lease again
    a.break_wire("slow", 0.5)
    world.advance(3.6)
    assert world.server.requests[-1].method == "GET"
    a.pause()
    world.advance(12)
    a.resume(suspended=True)
    world.advance(5)
    assert a.told[1:] == ["started", "stopped: the lease was not renewed within 10 s", "started"]


def test_never_was_the_leader_before_it_is(world: World) -> None:
    world.server.put(holder="b")
    a = world.start("a")
    with pytest.raises(Fenced, match="has never been the leader of the lease kube-system/mooring"):
        a.election.fence()


# --- ending ------------------------------------------------------------------------------------


def test_gives_the_lease_back_so_that_the_next_one_starts_at_once(world: World) -> None:
    a = world.start("a")
    world.start("b")
    world.advance(7)
    a.shut_down()
    assert a.told[-1] == "stopped: the election was stopped"
    assert world.leaders() == []
    assert world.server.spec["holderIdentity"] == ""
    assert world.server.spec["leaseDurationSeconds"] == 1
    assert world.server.spec["leaseTransitions"] == 0
    world.advance(2.4)
    assert world.leaders() == ["b"]
    assert world.server.spec["leaseTransitions"] == 1


def test_gives_back_a_lease_whose_last_renewal_was_not_answered(world: World) -> None:
    a = world.start("a")
    a.break_wire("lost")
    world.advance(2.5)
    a.heal_wire()
    a.shut_down()
    assert world.server.holder == ""


def test_does_not_touch_the_lease_of_another_when_it_ends(world: World) -> None:
    world.server.put(holder="b")
    a = world.start("a")
    before = len(world.server.requests)
    a.shut_down()
    assert len(world.server.requests) == before
    assert world.server.holder == "b"


def test_gives_back_nothing_that_was_taken_from_it(world: World) -> None:
    a = world.start("a")
    world.server.put(holder="b")
    a.shut_down()
    assert world.server.holder == "b"


@pytest.mark.parametrize("fault", ["refused", "error", "cut", "hang"])
def test_only_warns_when_the_lease_cannot_be_given_back(
    world: World, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    a = world.start("a")
    a.break_wire(fault)
    a.shut_down()
    world.advance(11)
    assert a.task.done()
    assert a.task.exception() is None
    assert "could not release the lease; others wait until it lapses" in caplog.messages


def test_ends_quietly_when_the_lease_is_gone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    a = world.start("a")
    world.server.delete()
    a.shut_down()
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


# --- around it ---------------------------------------------------------------------------------


def test_tells_of_a_lasting_failure_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    a = world.start("a")
    a.break_wire("refused")
    world.advance(300)
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert [r.__dict__["error"] for r in warnings] == ["connection refused"]
    assert warnings[0].__dict__["lease"] == f"{NAMESPACE}/{NAME}"


def test_writes_with_the_version_it_has_read(world: World) -> None:
    world.start("a")
    first = world.server.store.version
    world.advance(4)
    sent = [json.loads(r.body) for r in world.server.requests if r.method == "PUT"]
    versions = [lease["metadata"]["resourceVersion"] for lease in sent]
    assert versions == [str(first), str(first + 1)]


@pytest.mark.parametrize(
    "periods",
    [
        {"lease_duration": 10.0, "renew_deadline": 10.0},
        {"renew_deadline": 2.4, "retry_period": 2.0},
        {"retry_period": 0.0},
    ],
)
def test_refuses_periods_that_cannot_work(world: World, periods: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected lease_duration > renew_deadline"):
        world.start("a", **periods)


def test_refuses_to_have_no_name(world: World) -> None:
    client = ApiClient(world.start("a").transport)
    with pytest.raises(ValueError, match="identity"):
        LeaderElection(client, namespace="n", name="m", identity="")


def test_replicas_on_one_host_have_different_names() -> None:
    first, second = default_identity(), default_identity()
    assert first != second
    assert first.rpartition("_")[0] == second.rpartition("_")[0] != ""


def test_refuses_the_lease_of_kube_scheduler() -> None:
    problem = refuse_foreign_lease("kube-system", "kube-scheduler")
    assert problem is not None
    assert str(problem) == (
        "leaderElection.resourceName: the lease kube-system/kube-scheduler belongs to "
        "kube-scheduler; set leaderElection.resourceName or --leader-elect-resource-name"
    )
    assert refuse_foreign_lease("kube-system", "mooring") is None
    assert refuse_foreign_lease("mine", "kube-scheduler") is None


def test_the_clock_of_the_machine_goes_forward() -> None:
    assert 0 < uptime() <= uptime()


# --- a server that answers 200 and garbage --------------------------------------------------------

ABSURD = b'{"spec":{"holderIdentity":"b","leaseDurationSeconds":1%s,"leaseTransitions":1%s}}' % (
    b"0" * 400,
    b"0" * 400,
)


@pytest.mark.parametrize("garbage", [*NO_OBJECT, *NO_TEXT, ABSURD])
@pytest.mark.parametrize("exists", [True, False])
def test_stands_for_election_until_answers_can_be_read_again(
    world: World, exists: bool, garbage: bytes
) -> None:
    if exists:
        world.server.put(holder="gone", duration=1)
    a = world.start("a")
    a.break_wire(Garbage(garbage, done=True))
    world.advance(60)
    assert not a.task.done()
    assert world.leaders() == []
    a.heal_wire()
    world.advance(30)
    assert world.leaders() == ["a"]


@pytest.mark.parametrize("garbage", [*NO_OBJECT, *NO_TEXT, ABSURD])
def test_releases_a_lease_without_raising_whatever_the_answer(world: World, garbage: bytes) -> None:
    a = world.start("a")
    a.break_wire(Garbage(garbage, done=True))
    a.shut_down()
    assert a.task.done()
    assert a.task.exception() is None
