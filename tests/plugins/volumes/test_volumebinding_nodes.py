"""Which nodes VolumeBinding lets through for volumes that exist, and which the claims get."""

from typing import Any

import pytest
from tests.plugins.volumes.storage import claim, csi_node, storage_class, term, volume
from tests.plugins.volumes.volumebinding_calls import (
    CONFLICT,
    GONE,
    LOCAL,
    NOTHING,
    ask,
    gets,
    refused,
)

from mooring.api.meta import Object
from mooring.framework import OK, Status
from mooring.testing import node
from mooring.testing.builders import ZONE

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
    there = csi_node("a", migrated=["kubernetes.io/gce-pd"])
    objects = [claim("data", bound_to="pv"), disk, there]
    text = (
        "could not translate pv: failed to get region from zones: zone in unexpected format,"
        " expected: {locale}-{region}-{zone}, got: x"
    )
    assert ask("data", *objects) == [Status.error(text), OK]


# --- volumes that exist ---------------------------------------------------------------------------


def test_finds_free_volumes_that_the_node_can_reach() -> None:
    assert ask("data", LOCAL, claim("data"), volume("pv", on="b")) == [
        refused(NOTHING),
        OK,
    ]
    assert ask("data", LOCAL, claim("data")) == [refused(NOTHING)] * 2


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        (claim("data"), volume(), True),
        (claim("data", size="2Gi"), volume(), False),
        (claim("data", size=None), volume(), True),
        (claim("data"), volume(phase="Released"), False),
        (claim("data"), volume(storage_class="other"), False),
        (claim("data"), volume(prebound_to="other"), False),
        (claim("data"), volume(prebound_to="shop/data"), False),
        (claim("data"), volume(prebound_to="data", uid="another"), False),
        (claim("data"), volume(prebound_to="data", phase="Released"), True),
        (claim("data", size="2Gi"), volume(prebound_to="data"), False),
        (claim("data", modes=["ReadWriteMany"]), volume(), False),
        (claim("data", modes=["ReadWriteMany"]), volume(prebound_to="data"), True),
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
    raw = volume(prebound_to="data")
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
    disks = [volume("l", size="5Gi", prebound_to="data"), volume("s")]
    assert gets("data", LOCAL, claim("data"), *disks) == {"data": "l"}


def test_takes_no_other_where_the_promised_one_cannot_be_reached() -> None:
    disks = [volume("there", on="b", prebound_to="data"), volume("anywhere")]
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
    far = [claim("far", bound_to="pv"), volume("pv", zone="west", prebound_to="far")]
    objects = [*far, LOCAL, claim("data")]
    assert ask("far data", *objects) == [refused(CONFLICT, NOTHING), refused(NOTHING)]


def test_finds_one_of_many_local_disks() -> None:
    hosts = tuple(node(f"n{number}") for number in range(20))
    disks = [volume(f"pv{number}", on=f"n{number}", size=f"{40 - number}Gi") for number in range(9)]
    several = volume("wide", affinity=[term("kubernetes.io/hostname", "n11", "n12", "no-such")])
    expected = [OK] * 9 + [refused(NOTHING)] * 2 + [OK] * 2 + [refused(NOTHING)] * 7
    assert ask("data", LOCAL, claim("data"), *disks, several, members=hosts) == expected
