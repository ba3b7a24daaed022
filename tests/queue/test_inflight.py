import pytest
from tests.queue.builders import pod

from mooring.framework.events import Event
from mooring.queue.inflight import InFlight

A, B = pod("a"), pod("b")


def seen(flights: InFlight, uid: str) -> list[object]:
    observed_events = flights.since(uid)
    assert observed_events is not None
    return [observed.new for observed in observed_events]


def record(flights: InFlight, *news: object) -> None:
    for new in news:
        flights.record(Event.NODE_ADDED, None, new)


def test_shows_each_pod_what_happened_since_it_left() -> None:
    flights = InFlight()
    flights.start(A)
    record(flights, 1, 2)
    flights.start(B)
    record(flights, 3)
    assert seen(flights, A.uid) == [1, 2, 3]
    assert seen(flights, B.uid) == [3]


def test_remembers_nothing_while_nobody_is_in_flight() -> None:
    flights = InFlight()
    record(flights, 1)
    assert flights.held().total() == 0
    flights.start(A)
    assert seen(flights, A.uid) == []


@pytest.mark.parametrize(("first", "held"), [(A, 2), (B, 3)])
def test_forgets_events_nobody_needs_any_more(first: object, held: int) -> None:
    flights = InFlight()
    flights.start(A)
    record(flights, 1)
    flights.start(B)
    record(flights, 2, 3)
    second = B if first is A else A
    flights.done(A.uid if first is A else B.uid)
    assert flights.held().total() == held
    assert seen(flights, second.uid) == ([2, 3] if second is B else [1, 2, 3])
    flights.done(second.uid)
    assert (flights.held().total(), len(flights)) == (0, 0)


def test_does_not_know_pods_that_have_landed() -> None:
    flights = InFlight()
    flights.start(A)
    flights.done(A.uid)
    flights.done(A.uid)
    assert flights.since(A.uid) is None
    assert flights.find(A.key) is None
    assert A.uid not in flights


def test_finds_the_latest_life_of_a_name() -> None:
    flights = InFlight()
    reborn = pod("a", uid="second")
    flights.start(A)
    flights.start(reborn)
    assert flights.find("ns/a") is reborn
    assert flights[A.uid] is A
    flights.done(A.uid)
    assert flights.find("ns/a") is reborn


def test_starts_no_pod_twice() -> None:
    flights = InFlight()
    assert flights.start(A)
    record(flights, 1)
    assert not flights.start(A)
    assert seen(flights, A.uid) == [1]
    flights.done(A.uid)
    assert flights.start(A)
