"""A list that was begun before its reflector: taken if it is complete, and means the same."""

from __future__ import annotations

import pytest
from tests.client.client_rig import ClientRig, Recorded
from tests.faulty_transport import Hang, Refuse, Vanish

from mooring.api.core import Pod
from mooring.client.listing import FirstList, Query
from mooring.client.raw_objects import RawObjects
from mooring.client.watch import Reflector


@pytest.fixture
def reflector(rig: ClientRig) -> Reflector[Pod]:
    return Reflector(rig.client, Pod, rig._sink, rng=rig.rng)


def begin(rig: ClientRig, query: Query | None = None) -> FirstList[Pod]:
    first: FirstList[Pod] = rig.call(FirstList, rig.client, query or Query(Pod), Pod)
    rig.settle()
    return first


def test_is_not_asked_for_again_and_watched_from(rig: ClientRig, reflector: Reflector[Pod]) -> None:
    rig.server.put(Pod, "a")
    reflector.begin_with(begin(rig))
    rig.server.put(Pod, "b")  # after the list
    rig.start(reflector.run())
    assert rig.told == ["all: a", "put b"]
    assert (rig.server.count("list"), reflector.lists) == (1, 1)
    assert reflector.last_contact is not None


def test_may_still_be_under_way(rig: ClientRig, reflector: Reflector[Pod]) -> None:
    hang = Hang()
    rig.server.put(Pod, "a")
    rig.server.fail("list", hang)
    reflector.begin_with(begin(rig))
    rig.start(reflector.run())
    assert rig.told == []
    rig.advance(100)  # the request has timed out, and the reflector lists itself
    assert rig.told == ["all: a"]


@pytest.mark.parametrize("fault", [Vanish(), Refuse(403)])
def test_that_failed_is_asked_for_by_the_reflector(
    rig: ClientRig, reflector: Reflector[Pod], fault: Vanish | Refuse
) -> None:
    rig.server.put(Pod, "a")
    rig.server.fail("list", fault)
    reflector.begin_with(begin(rig))
    rig.start(reflector.run())
    assert rig.told == ["all: a"]
    assert reflector.problem == ""
    assert rig.server.count("list") == 2


def test_with_an_object_that_cannot_be_read_is_asked_for_again(
    rig: ClientRig, reflector: Reflector[Pod]
) -> None:
    rig.server.put(Pod, "a")
    rig.server.put(Pod, "broken", spec={"nodeName": 1})
    reflector.begin_with(begin(rig))
    rig.start(reflector.run())
    assert rig.told == ["all: a broken?"]
    assert reflector.undecodable == 1


def test_of_other_objects_is_left_alone(rig: ClientRig, reflector: Reflector[Pod]) -> None:
    rig.server.put(Pod, "a")
    rig.server.put(Pod, "b", "other")
    reflector.begin_with(begin(rig, Query(Pod, namespace="other")))
    rig.start(reflector.run())
    assert rig.told == ["all: a b"]


def test_is_left_alone_where_json_is_kept(rig: ClientRig) -> None:
    sink: Recorded[Pod] = Recorded()
    kept: RawObjects[Pod] = RawObjects()
    reflector = Reflector(rig.client, Pod, sink, on_read=kept.put)
    rig.server.put(Pod, "a")
    reflector.begin_with(begin(rig))
    rig.start(reflector.run())
    assert rig.server.count("list") == 2
    assert kept.get(str(rig.server.uid(Pod, "a"))) is not None


def test_is_older_than_a_refresh(rig: ClientRig, reflector: Reflector[Pod]) -> None:
    reflector.begin_with(begin(rig))
    rig.server.put(Pod, "a")
    refreshed = rig.start(reflector.refresh())
    rig.start(reflector.run())
    assert refreshed.done()
    assert rig.told == ["all: a"]


def test_that_is_given_up_leaves_nothing_behind(rig: ClientRig) -> None:
    for fault in (Hang(), Refuse(403)):
        rig.server.fail("list", fault)
        first = begin(rig)
        closing = rig.start(first.cancel())
        assert closing.done()
        assert rig.start(first.result()).result() is None
