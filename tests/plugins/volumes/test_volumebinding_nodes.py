"""Which nodes VolumeBinding lets through, and what the claims get there."""

from typing import Any

import pytest
from tests.plugins.volumes.storage import (
    DRIVER,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    term,
    user,
    volume,
)

from mooring.api.meta import Object
from mooring.framework import OK, CycleState, Node, Status
from mooring.plugins.volumebinding.plugin import RESERVATION, VolumeBinding
from mooring.testing import StubHandle, build, node, nodes
from mooring.testing.builders import ZONE

LOCAL = storage_class(provisioner="kubernetes.io/no-provisioner")
CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TWO = (node("a", zone="east"), node("b", zone="west"))


def ask(claims: str, *objects: Object, members: tuple[Node, ...] = TWO) -> list[Status]:
    """What both forms say of each node; they must agree, in any selection of nodes."""
    cluster = nodes(*members)
    plugin = build(VolumeBinding, handle=StubHandle(nodes=cluster, objects=objects))
    waiting, state = user("p", *claims.split()), CycleState()
    assert plugin.pre_filter(state, waiting, cluster) is OK
    one_by_one = [plugin.filter(state, waiting, it) for it in cluster]
    verdicts = plugin.filter_all(state, waiting, cluster)
    assert [verdicts.status(row) for row in range(len(cluster))] == one_by_one
    return one_by_one


def refused(*reasons: str) -> Status:
    return Status.unresolvable(*reasons)


def gets(claims: str, *objects: Object, on: str = "a") -> dict[str, str]:
    """Claim -> the volume it would get on a node, or "new"."""
    cluster = nodes(*TWO)
    plugin = build(VolumeBinding, handle=StubHandle(nodes=cluster, objects=objects))
    waiting, state = user("p", *claims.split()), CycleState()
    assert plugin.pre_filter(state, waiting, cluster) is OK
    assert plugin.reserve(state, waiting, on) is OK
    reservation = state[RESERVATION]
    found = {promise.claim.name: promise.volume.name for promise in reservation.promises}
    return found | {order.name: "new" for order in reservation.orders}


# --- bound claims ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (None, [OK, OK]),
        ([term(ZONE, "east")], [OK, refused(CONFLICT)]),
        ([term(ZONE, "east"), term(ZONE, "west")], [OK, OK]),
        ([term("kubernetes.io/hostname", "b")], [refused(CONFLICT), OK]),
        ([], [refused(CONFLICT), refused(CONFLICT)]),
        ([{}], [refused(CONFLICT), refused(CONFLICT)]),
        ([term(ZONE, "east", operator="Near")], [refused(CONFLICT), refused(CONFLICT)]),
        # kube-scheduler shows the affinity a node without a name, and then does not look at it.
        (
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}],
            [OK, OK],
        ),
    ],
)
def test_goes_where_bound_volumes_can_be_reached(
    affinity: list[dict[str, Any]] | None, expected: list[Status]
) -> None:
    objects = [claim("data", bound_to="pv"), volume("pv", affinity=affinity, phase="Bound")]
    assert ask("data", *objects) == expected


def test_goes_nowhere_if_a_bound_volume_does_not_exist() -> None:
    lost = claim("lost", bound_to="gone")
    assert ask("lost", lost) == [refused(GONE), refused(GONE)]
    far = [claim("far", bound_to="pv"), volume("pv", zone="west")]
    # The first volume that does not do decides.
    assert ask("far lost", lost, *far) == [refused(CONFLICT), refused(GONE)]
    assert ask("lost far", lost, *far) == [refused(GONE), refused(GONE)]


@pytest.mark.parametrize(
    ("labels", "migrated", "expected"),
    [
        ({"topology.gke.io/zone": "east"}, True, OK),
        ({ZONE: "east"}, True, refused(CONFLICT)),
        ({ZONE: "east"}, False, OK),
        ({"topology.gke.io/zone": "east"}, False, refused(CONFLICT)),
    ],
)
def test_asks_for_the_label_of_the_driver_where_it_took_over(
    labels: dict[str, str], migrated: bool, expected: Status
) -> None:
    disk = volume("pv", zone="east", source={"gcePersistentDisk": {"pdName": "d"}})
    plugins = ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"] if migrated else ()
    there = (node("a", labels=labels),)
    objects = [claim("data", bound_to="pv"), disk, csi_node("a", migrated=plugins)]
    assert ask("data", *objects, members=there) == [expected]


def test_is_an_error_where_the_driver_cannot_be_told_about_the_disk() -> None:
    disk = volume("pv", labels={ZONE: "x__y"}, source={"gcePersistentDisk": {"pdName": "d"}})
    objects = [claim("data", bound_to="pv"), disk]
    objects.append(csi_node("a", migrated=["kubernetes.io/gce-pd"]))  # type: ignore[arg-type]  # a list of what came first
    text = (
        "could not translate pv: failed to get region from zones: zone in unexpected format,"
        " expected: {locale}-{region}-{zone}, got: x"
    )
    assert ask("data", *objects) == [Status.error(text), OK]


# --- volumes that exist ---------------------------------------------------------------------------


def test_finds_free_volumes_that_the_node_can_reach() -> None:
    assert ask("data", LOCAL, claim("data"), volume("pv", on="b")) == [refused(NOTHING), OK]
    assert ask("data", LOCAL, claim("data")) == [refused(NOTHING)] * 2


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        (claim("data"), volume(), True),
        (claim("data", size="2Gi"), volume(), False),
        (claim("data", size=None), volume(), True),
        (claim("data"), volume(phase="Released"), False),
        (claim("data"), volume(storage_class="other"), False),
        (claim("data"), volume(promised_to="other"), False),
        (claim("data"), volume(promised_to="shop/data"), False),
        (claim("data"), volume(promised_to="data", uid="another"), False),
        (claim("data"), volume(promised_to="data", phase="Released"), True),
        (claim("data", size="2Gi"), volume(promised_to="data"), False),
        (claim("data", modes=["ReadWriteMany"]), volume(), False),
        (claim("data", modes=["ReadWriteMany"]), volume(promised_to="data"), True),
        (claim("data", spec={"volumeMode": "Block"}), volume(), False),
        (claim("data", spec={"volumeMode": "Filesystem"}), volume(), True),
        (claim("data"), volume(spec={"volumeMode": "Block"}), False),
        (claim("data", spec={"volumeAttributesClassName": "gold"}), volume(), False),
        (
            claim("data", spec={"volumeAttributesClassName": "gold"}),
            volume(spec={"volumeAttributesClassName": "gold"}),
            True,
        ),
        (claim("data", spec={"selector": {"matchLabels": {"k": "v"}}}), volume(), False),
        (
            claim("data", spec={"selector": {"matchLabels": {"k": "v"}}}),
            volume(labels={"k": "v"}),
            True,
        ),
        (claim("data", spec={"selector": {}}), volume(), True),
    ],
)
def test_is_particular_about_what_it_binds(wanted: Object, offered: Object, fits: bool) -> None:
    expected = OK if fits else refused(NOTHING)
    assert ask("data", LOCAL, wanted, offered) == [expected] * 2


def test_does_not_bind_volumes_that_are_being_deleted() -> None:
    raw = volume(promised_to="data")
    dying = type(raw)(
        metadata=type(raw.metadata)(name="pv", deletion_timestamp="2026-01-01T00:00:00Z"),
        spec=raw.spec,
        status=raw.status,
    )
    assert ask("data", LOCAL, claim("data"), dying) == [refused(NOTHING)] * 2


def test_takes_the_smallest_volume_that_is_large_enough() -> None:
    disks = [volume("l", size="5Gi"), volume("m", size="2Gi"), volume("s", size="1Gi")]
    assert gets("data", LOCAL, claim("data", size="2Gi"), *disks) == {"data": "m"}


def test_takes_the_promised_volume_before_a_smaller_one() -> None:
    disks = [volume("l", size="5Gi", promised_to="data"), volume("s")]
    assert gets("data", LOCAL, claim("data"), *disks) == {"data": "l"}


def test_takes_no_other_where_the_promised_one_cannot_be_reached() -> None:
    disks = [volume("there", on="b", promised_to="data"), volume("anywhere")]
    assert ask("data", LOCAL, claim("data"), *disks) == [refused(NOTHING), OK]
    made = storage_class()
    assert gets("data", made, claim("data"), *disks) == {"data": "new"}


def test_serves_small_claims_first_and_gives_no_volume_twice() -> None:
    claims = [claim("big", size="2Gi"), claim("small", size="1Gi")]
    disks = [volume("one", size="3Gi"), volume("two", size="4Gi")]
    assert gets("big small", LOCAL, *claims, *disks) == {"small": "one", "big": "two"}
    assert ask("big small", LOCAL, *claims, disks[0]) == [refused(NOTHING)] * 2
    near, far = volume("near", size="3Gi", on="a"), volume("far", size="3Gi", on="b")
    both = [*claims, near, far, volume("more", size="9Gi", on="b")]
    assert ask("big small", LOCAL, *both) == [refused(NOTHING), OK]


def test_serves_a_claim_once_that_is_mounted_twice() -> None:
    assert ask("data data", LOCAL, claim("data"), volume("pv")) == [OK, OK]


def test_adds_up_the_reasons_of_bound_and_open_claims() -> None:
    objects = [claim("far", bound_to="pv"), volume("pv", zone="west"), LOCAL, claim("data")]
    assert ask("far data", *objects) == [refused(CONFLICT, NOTHING), refused(NOTHING)]


def test_finds_one_of_many_local_disks() -> None:
    hosts = tuple(node(f"n{number}") for number in range(20))
    disks = [volume(f"pv{number}", on=f"n{number}", size=f"{40 - number}Gi") for number in range(9)]
    several = volume("wide", affinity=[term("kubernetes.io/hostname", "n11", "n12", "no-such")])
    expected = [OK] * 9 + [refused(NOTHING)] * 2 + [OK] * 2 + [refused(NOTHING)] * 7
    assert ask("data", LOCAL, claim("data"), *disks, several, members=hosts) == expected


# --- volumes to be made ---------------------------------------------------------------------------


def test_makes_volumes_only_where_the_class_allows_it() -> None:
    assert ask("data", storage_class(), claim("data")) == [OK, OK]
    assert ask("data", storage_class(zones=["east"]), claim("data")) == [OK, refused(NOTHING)]
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
