"""Where VolumeBinding would have volumes made, and what it reserves."""

import pytest
from tests.plugins.volumes.storage import (
    DRIVER,
    capacity,
    claim,
    csi_driver,
    storage_class,
    user,
    volume,
)
from tests.plugins.volumes.volumebinding_calls import (
    LOCAL,
    NO_SPACE,
    NOTHING,
    TWO,
    ask,
    gets,
    refused,
)

from mooring.api.meta import Object
from mooring.framework import OK, CycleState, Status
from mooring.plugins.volumebinding.plugin import VolumeBinding
from mooring.testing import StubHandle, build, nodes
from mooring.testing.builders import ZONE


def test_makes_volumes_only_where_the_class_allows_it() -> None:
    assert ask("data", storage_class(), claim("data")) == [OK, OK]
    assert ask("data", storage_class(zones=["east"]), claim("data")) == [
        OK,
        refused(NOTHING),
    ]
    assert ask("data", storage_class(provisioner=""), claim("data")) == [refused(NOTHING)] * 2
    empty = storage_class(topologies=[{}])
    assert ask("data", empty, claim("data")) == [refused(NOTHING)] * 2
    bad = storage_class(topologies=[{"matchLabelExpressions": [{"key": ZONE, "values": []}]}])
    assert ask("data", bad, claim("data")) == [refused(NOTHING)] * 2


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ([], [refused(NO_SPACE)] * 2),
        ([capacity(topology={})], [OK, OK]),
        ([capacity(topology=None)], [refused(NO_SPACE)] * 2),
        ([capacity(topology={"matchLabels": {ZONE: "east"}})], [OK, refused(NO_SPACE)]),
        ([capacity(size="1Mi", topology={})], [refused(NO_SPACE)] * 2),
        ([capacity(size=None, topology={})], [refused(NO_SPACE)] * 2),
        ([capacity(size="1Mi", largest="5Gi", topology={})], [OK, OK]),
        ([capacity(size="5Gi", largest="1Mi", topology={})], [refused(NO_SPACE)] * 2),
        ([capacity(storage_class="other", topology={})], [refused(NO_SPACE)] * 2),
        (
            [capacity(topology={"matchExpressions": [{"key": ZONE, "operator": "Near"}]})],
            [refused(NO_SPACE)] * 2,
        ),
    ],
)
def test_makes_volumes_only_where_the_driver_has_room(
    reported: list[Object], expected: list[Status]
) -> None:
    objects = [storage_class(), claim("data"), *reported]
    assert ask("data", csi_driver(), *objects) == expected
    assert ask("data", csi_driver(tracks_capacity=False), *objects) == [OK, OK]
    assert ask("data", csi_driver("other"), *objects) == [OK, OK]


def test_asks_for_room_only_if_the_claim_has_a_size() -> None:
    assert ask("data", storage_class(), claim("data", size=None), csi_driver()) == [OK, OK]


def test_says_what_the_first_claim_lacks() -> None:
    tracked = storage_class("tracked")
    objects = [LOCAL, tracked, csi_driver(), claim("none", size="1Gi")]
    roomy = claim("roomy", size="2Gi", storage_class="tracked")
    assert ask("none roomy", *objects, roomy) == [refused(NOTHING)] * 2
    smaller = claim("roomy", size="1Mi", storage_class="tracked")
    assert ask("none roomy", *objects, smaller) == [refused(NO_SPACE)] * 2


def test_makes_a_volume_on_the_node_that_was_selected() -> None:
    objects = [storage_class(), claim("data", selected="b"), volume("pv")]
    assert ask("data", *objects) == [refused(NOTHING), OK]
    assert gets("data", *objects, on="b") == {"data": "new"}
    other = claim("other", selected="a")
    assert ask("data other", *objects, other) == [refused(NOTHING)] * 2
    assert ask("data", storage_class(), claim("data", selected="gone")) == [refused(NOTHING)] * 2
    elsewhere = storage_class(zones=["east"])
    assert ask("data", elsewhere, claim("data", selected="b")) == [refused(NOTHING)] * 2
    assert ask("data", storage_class(provisioner=DRIVER), claim("data", selected="")) == (
        [refused(NOTHING)] * 2
    )


# --- reserving ------------------------------------------------------------------------------------


def reserved(*objects: Object) -> tuple[VolumeBinding, CycleState]:
    cluster = nodes(*TWO)
    plugin = build(VolumeBinding, handle=StubHandle(nodes=cluster, objects=objects))
    state, waiting = CycleState(), user("p", "data")
    assert plugin.pre_filter(state, waiting, cluster) is OK
    return plugin, state


def test_reserves_nothing_if_all_is_bound() -> None:
    plugin, state = reserved(claim("data", bound_to="pv"), volume("pv"))
    assert plugin.reserve(state, user("p", "data"), "a") is OK
    assert plugin.pre_flight(state, user("p", "data"), "a").skipped


def test_cannot_reserve_on_a_node_that_went() -> None:
    plugin, state = reserved(LOCAL, claim("data"), volume("pv", on="a"))
    assert plugin.reserve(state, user("p", "data"), "gone") == Status.error('node "gone" not found')
    assert plugin.reserve(state, user("p", "data"), "b") == refused(NOTHING)


def test_does_not_reserve_what_has_changed_since_it_was_looked_at() -> None:
    disks = [volume("one"), volume("two", size="2Gi")]
    cluster = nodes(*TWO)
    handle = StubHandle(nodes=cluster, objects=[LOCAL, claim("x"), claim("y", size="2Gi"), *disks])
    plugin = build(VolumeBinding, handle=handle)
    state, waiting = CycleState(), user("p", "x", "y")
    assert plugin.pre_filter(state, waiting, cluster) is OK
    handle.objects.remove(disks[1])
    status = plugin.reserve(state, waiting, "a")
    assert status == Status.error('"two" is out of sync (stored: none, assume: 1)')
    assert len(plugin._volumes) == 0  # nor is the first one kept
