"""In-tree disks as their drivers know them."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.plugins.volumes.storage import term, volume

from mooring.api import codec
from mooring.api.core import NodeSelector
from mooring.plugins._csi_migration import (
    EBS,
    GCE,
    PORTWORX,
    Migration,
    Untranslatable,
    handle,
    migration_of,
    translated_nodes,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = (
    f"failure-domain.beta.kubernetes.io/{word}" for word in ("zone", "region")
)
DRIVERS_ZONE = GCE.zone_label
PD: Mapping[str, Any] = {"gcePersistentDisk": {"pdName": "d"}}
Terms = list[dict[str, Any]]


def both(first: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    tests = [test for it in (first, *others) for test in it["matchExpressions"]]
    return {"matchExpressions": tests}


def selector(terms: Terms) -> NodeSelector:
    return codec.convert({"nodeSelectorTerms": terms}, NodeSelector)


@pytest.mark.parametrize(
    ("source", "labels", "expected"),
    [
        (PD, {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        (PD, {ZONE: "us-x-1"}, "projects/UNSPECIFIED/zones/us-x-1/disks/d"),
        (PD, {BETA_ZONE: "b", ZONE: "a"}, "projects/UNSPECIFIED/zones/b/disks/d"),
        (PD, {ZONE: "us-x-1__us-x-2"}, "projects/UNSPECIFIED/regions/us-x/disks/d"),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, {}, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1/"}}, {}, "vol-1"),
        ({"azureDisk": {"diskURI": "uri"}}, {}, "uri"),
        ({"cinder": {"volumeID": "c"}}, {}, "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "p"),
    ],
)
def test_names_the_disk_as_the_driver_does(
    source: Mapping[str, Any], labels: Mapping[str, str], expected: str
) -> None:
    assert handle(volume(source=source, labels=labels)) == expected


@pytest.mark.parametrize(
    ("source", "labels", "problem"),
    [
        (PD, {ZONE: "a__b"}, "zone in unexpected format"),
        (PD, {ZONE: "us-x-1__us-y-1"}, r"got: map\[us-x:\{\} us-y:\{\}\]"),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/x"}}, {}, r"AWS volume \(aws://z/x\)"),
        ({"azureDisk": {"kind": "Shared"}}, {}, r"kind\(Shared\) is not supported"),
    ],
)
def test_refuses_disks_the_driver_would_not_know(
    source: Mapping[str, Any], labels: Mapping[str, str], problem: str
) -> None:
    broken = volume(source=source, labels=labels)
    with pytest.raises(Untranslatable, match=problem):
        handle(broken)
    with pytest.raises(Untranslatable, match=problem):
        translated_nodes(broken, migration_of(broken.spec) or GCE)


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        (None, {}, None),
        (None, {ZONE: "a"}, [term(DRIVERS_ZONE, "a")]),
        (None, {BETA_ZONE: "us-x-2__us-x-1"}, [term(DRIVERS_ZONE, "us-x-1", "us-x-2")]),
        ([term("k", "v")], {}, [term("k", "v")]),
        ([term("k", "v")], {ZONE: "a"}, [both(term("k", "v"), term(DRIVERS_ZONE, "a"))]),
        ([term(ZONE, "a")], {ZONE: "b"}, [term(DRIVERS_ZONE, "a")]),
        ([term(ZONE, "a"), term("k", "v")], {}, [term(DRIVERS_ZONE, "a"), term("k", "v")]),
        (
            [both(term(BETA_ZONE, "a"), term(BETA_REGION, "r"))],
            {},
            [both(term(DRIVERS_ZONE, "a"), term(REGION, "r"))],
        ),
        (
            [both(term(ZONE, "a"), term(BETA_ZONE, "b"))],
            {},
            [both(term(DRIVERS_ZONE, "a"), term(BETA_ZONE, "b"))],
        ),
    ],
)
def test_asks_for_zones_in_the_words_of_the_driver(
    terms: Terms | None, labels: Mapping[str, str], expected: Terms | None
) -> None:
    found = translated_nodes(volume(source=PD, affinity=terms, labels=labels), GCE)
    assert found == (None if expected is None else selector(expected))


def test_leaves_the_nodes_alone_where_the_driver_has_no_zones() -> None:
    source = {"portworxVolume": {"volumeID": "p"}}
    disk = volume(source=source, zone="a", labels={ZONE: "b"})
    assert translated_nodes(disk, PORTWORX) == selector([term(ZONE, "a")])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"awsElasticBlockStore": {}}, EBS),
        (PD, GCE),
        ({"csi": {"driver": "x", "volumeHandle": "h"}}, None),
        ({"nfs": {"server": "s"}}, None),
    ],
)
def test_knows_which_disks_have_moved(
    source: Mapping[str, Any], expected: Migration | None
) -> None:
    assert migration_of(volume(source=source).spec) == expected
