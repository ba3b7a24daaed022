"""Stores stay true through what servers do on bad days."""

import random

import pytest
from tests.client.client_rig import ClientRig, Mirror
from tests.faulty_transport import EXPIRED, Fault, Refuse, Vanish

from mooring.api.core import Node, Pod


@pytest.fixture
def mirror(rig: ClientRig) -> Mirror:
    return Mirror(rig)


def write(rig: ClientRig, rng: random.Random) -> None:
    """Create, change or delete one of fifty pods."""
    name = f"p{rng.randrange(50)}"
    if f"default/{name}" in rig.server.content(Pod) and rng.random() < 0.4:
        rig.server.delete(Pod, name)
    else:
        rig.server.put(Pod, name, status={"phase": rng.choice(["Pending", "Running"])})


def test_an_expiry_every_fifty_events_costs_a_list_each_and_no_truth(
    rig: ClientRig, mirror: Mirror
) -> None:
    rng = random.Random(1)
    expiries = 0
    for event in range(1, 6001):
        write(rig, rng)
        rig.advance(0.005)  # 200 events a second
        if event % 50 == 0:
            expiries += len(rig.server.watches)
            rig.server.store.compact()
            rig.server.report()
        if event % 500 == 0:
            rig.advance(5)
            mirror.assert_true()
    assert mirror.lists == rig.server.count("list")
    assert 20 <= mirror.lists <= expiries + 1
    assert mirror.informer.problem == ""


def test_half_an_hour_of_bookmarks_and_a_cut_need_no_new_list(
    rig: ClientRig, mirror: Mirror
) -> None:
    rig.server.put(Pod, "a")
    for _ in range(30):
        rig.server.put(Node, "n")  # others move the version of the cluster on
        rig.advance(60)
        rig.server.store.compact()
    rig.server.cut()
    rig.server.put(Pod, "b")
    rig.settle()
    assert mirror.lists == 1
    mirror.assert_true()


def test_a_server_that_is_busy_half_of_the_time_need_not_list_again(
    rig: ClientRig, mirror: Mirror
) -> None:
    rng = random.Random(3)
    busy = Refuse(429, "TooManyRequests", "busy", retry_after=2)
    rig.server.fault = lambda asked: busy if rng.random() < 0.5 else None
    for second in range(300):
        write(rig, rng)
        if second % 10 == 0:
            rig.server.end()
        rig.advance(1)
    rig.server.fault = lambda asked: None
    rig.advance(10)
    mirror.assert_true()
    assert mirror.lists == 1


def test_many_restarts_leave_nothing_behind(rig: ClientRig, mirror: Mirror) -> None:
    rng = random.Random(4)
    for _ in range(20):
        rig.advance(10)
        rig.server.cut()
        rig.server.fault = lambda asked: Vanish()
        rig.settle()
        assert mirror.informer.problem == "cannot watch pods: connection refused"
        write(rig, rng)
        rig.advance(10)
        rig.server.fault = lambda asked: None
        rig.advance(10)
        assert mirror.informer.problem == ""
        mirror.assert_true()
    assert mirror.lists == 21  # after each outage: the server may have been restored


def test_a_kind_that_was_quiet_is_current_soon_after_a_restart(
    rig: ClientRig, mirror: Mirror
) -> None:
    rig.server.cut()
    rig.server.fault = lambda asked: Vanish()
    rig.advance(600)
    rig.server.put(Pod, "a")
    rig.server.store.compact()  # what happened is not remembered over a restart
    rig.server.fault = lambda asked: None
    rig.advance(10)
    mirror.assert_true()
    assert mirror.informer.problem == ""


def test_rules_taken_away_and_given_back_are_noticed(rig: ClientRig, mirror: Mirror) -> None:
    rig.server.forbidden = {("list", Pod), ("watch", Pod)}
    rig.server.store.compact()
    rig.server.cut()
    rig.server.put(Pod, "a")
    rig.advance(120)
    assert mirror.informer.problem.endswith(
        'pods is forbidden: User "mooring" cannot list resource "pods" in API group "" '
        "at the cluster scope: no rule"
    )
    rig.server.forbidden.clear()
    rig.advance(31)
    assert mirror.informer.problem == ""
    mirror.assert_true()


def test_a_rule_for_watching_that_is_missing_makes_it_list_now_and_then(
    rig: ClientRig, mirror: Mirror
) -> None:
    rig.server.forbidden = {("watch", Pod)}
    rig.server.cut()
    rig.server.put(Pod, "a")
    rig.advance(120)
    assert mirror.informer.problem.startswith("cannot watch pods: pods is forbidden")
    mirror.assert_true()
    assert mirror.lists <= 4


@pytest.mark.parametrize("fault", [Vanish(), Refuse(503, message="starting"), EXPIRED])
def test_a_list_that_fails_between_pages_is_begun_anew(fault: Fault, rig: ClientRig) -> None:
    for number in range(50):
        rig.server.put(Pod, f"p{number}")
    met = iter([None, fault])
    rig.server.fault = lambda asked: next(met, None)
    mirror = Mirror(rig)
    rig.advance(2)
    mirror.assert_true()
    assert mirror.informer.synced.is_set()
