"""Stores stay true through what servers do on bad days."""

import random
from collections.abc import Iterator

import pytest
from tests.client.memory_server import EXPIRED, Fault, Refuse, Vanish
from tests.client.stage import Mirror, Stage

from mooring.api.core import Node, Pod


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture
def mirror(stage: Stage) -> Mirror:
    return Mirror(stage)


def write(stage: Stage, rng: random.Random) -> None:
    """Create, change or delete one of fifty pods."""
    name = f"p{rng.randrange(50)}"
    if f"default/{name}" in stage.server.content(Pod) and rng.random() < 0.4:
        stage.server.delete(Pod, name)
    else:
        stage.server.put(Pod, name, status={"phase": rng.choice(["Pending", "Running"])})


def test_an_expiry_every_fifty_events_costs_a_list_each_and_no_truth(
    stage: Stage, mirror: Mirror
) -> None:
    rng = random.Random(1)
    for event in range(1, 6001):
        write(stage, rng)
        stage.advance(0.005)  # 200 events a second
        if event % 50 == 0:
            stage.server.compact()
            stage.server.expire()
        if event % 500 == 0:
            stage.advance(5)
            mirror.assert_true()
    assert stage.server.expiries >= 20
    assert mirror.lists == stage.server.count("list")
    assert mirror.lists <= stage.server.expiries + 1
    assert mirror.informer.problem == ""


def test_half_an_hour_of_bookmarks_and_a_cut_need_no_new_list(stage: Stage, mirror: Mirror) -> None:
    stage.server.put(Pod, "a")
    for _ in range(30):
        stage.advance(60)
        stage.server.put(Node, "n")  # others move the version of the cluster on
        stage.server.bookmark()
        stage.settle()
        stage.server.compact()
    stage.server.cut()
    stage.server.put(Pod, "b")
    stage.settle()
    assert mirror.lists == 1
    mirror.assert_true()


def test_a_server_that_is_busy_half_of_the_time_need_not_list_again(
    stage: Stage, mirror: Mirror
) -> None:
    rng = random.Random(3)
    busy = Refuse(429, "TooManyRequests", "busy", retry_after=2)
    stage.server.weather = lambda verb: busy if rng.random() < 0.5 else None
    for second in range(300):
        write(stage, rng)
        if second % 10 == 0:
            stage.server.end()
        stage.advance(1)
    stage.server.weather = lambda verb: None
    stage.advance(10)
    mirror.assert_true()
    assert mirror.lists == 1


def test_many_restarts_leave_nothing_behind(stage: Stage, mirror: Mirror) -> None:
    rng = random.Random(4)
    for _ in range(20):
        stage.advance(10)
        stage.server.cut()
        stage.server.weather = lambda verb: Vanish()
        stage.settle()
        assert mirror.informer.problem == "cannot watch pods: connection refused"
        write(stage, rng)
        stage.advance(10)
        stage.server.weather = lambda verb: None
        stage.advance(10)
        assert mirror.informer.problem == ""
        mirror.assert_true()
    assert mirror.lists == 1


def test_a_kind_that_was_quiet_is_current_soon_after_a_restart(
    stage: Stage, mirror: Mirror
) -> None:
    stage.server.cut()
    stage.server.weather = lambda verb: Vanish()
    stage.advance(600)
    stage.server.put(Pod, "a")
    stage.server.compact()  # what happened is not remembered over a restart
    stage.server.weather = lambda verb: None
    stage.advance(10)
    mirror.assert_true()
    assert mirror.informer.problem == ""


def test_rules_taken_away_and_given_back_are_noticed(stage: Stage, mirror: Mirror) -> None:
    stage.server.forbidden = {("list", Pod), ("watch", Pod)}
    stage.server.compact()
    stage.server.cut()
    stage.server.put(Pod, "a")
    stage.advance(120)
    assert mirror.informer.problem.endswith(
        'pods is forbidden: User "mooring" cannot list resource "pods" in API group "" '
        "at the cluster scope"
    )
    stage.server.forbidden.clear()
    stage.advance(31)
    assert mirror.informer.problem == ""
    mirror.assert_true()


def test_a_rule_for_watching_that_is_missing_makes_it_list_now_and_then(
    stage: Stage, mirror: Mirror
) -> None:
    stage.server.forbidden = {("watch", Pod)}
    stage.server.cut()
    stage.server.put(Pod, "a")
    stage.advance(120)
    assert mirror.informer.problem.startswith("cannot watch pods: pods is forbidden")
    mirror.assert_true()
    assert mirror.lists <= 4


@pytest.mark.parametrize("fault", [Vanish(), Refuse(503, message="starting"), EXPIRED])
def test_a_list_that_fails_between_pages_is_begun_anew(fault: Fault, stage: Stage) -> None:
    for number in range(50):
        stage.server.put(Pod, f"p{number}")
    met = iter([None, fault])
    stage.server.weather = lambda verb: next(met, None)
    mirror = Mirror(stage)
    stage.advance(2)
    mirror.assert_true()
    assert mirror.informer.synced.is_set()
