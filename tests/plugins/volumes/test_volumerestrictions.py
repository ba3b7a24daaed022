"""Disks with one writer and claims with one pod."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.plugins.volumes.storage import claim, user

from mooring.api.meta import Object
from mooring.framework import OK, SKIP, CycleState, Event, Status
from mooring.plugins.volumerestrictions import VolumeRestrictions
from mooring.testing import StubHandle, build, node, nodes, pod

Disk = Mapping[str, Any]
GCE: Disk = {"gcePersistentDisk": {"pdName": "d"}}
GCE_READ: Disk = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
EBS: Disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
EBS_READ: Disk = {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}}
ISCSI: Disk = {"iscsi": {"iqn": "q", "targetPortal": "x", "lun": 1}}
ISCSI_READ: Disk = {"iscsi": {"iqn": "q", "targetPortal": "y", "readOnly": True}}
RBD: Disk = {"rbd": {"monitors": ["m1", "m2"], "image": "i"}}
RBD_READ: Disk = {"rbd": {"monitors": ["m2"], "image": "i", "readOnly": True}}
TAKEN = VolumeRestrictions.DISK_TAKEN
ONE_POD = claim("data", modes=["ReadWriteOncePod"])


def plugin_with(*objects: Object) -> VolumeRestrictions:
    return build(VolumeRestrictions, handle=StubHandle(objects=objects))


@pytest.mark.parametrize(
    ("held", "wanted", "expected"),
    [
        (GCE, GCE, TAKEN),
        (GCE_READ, GCE, TAKEN),
        (GCE_READ, GCE_READ, OK),
        (GCE, {"gcePersistentDisk": {"pdName": "e"}}, OK),
        (EBS, EBS, TAKEN),
        (EBS_READ, EBS_READ, TAKEN),
        (EBS, {"awsElasticBlockStore": {"volumeID": "vol-2"}}, OK),
        (ISCSI, ISCSI, TAKEN),
        (ISCSI, ISCSI_READ, TAKEN),
        (ISCSI_READ, ISCSI_READ, OK),
        (ISCSI, {"iscsi": {"iqn": "other"}}, OK),
        (RBD, RBD, TAKEN),
        (RBD, RBD_READ, TAKEN),
        (RBD_READ, RBD_READ, OK),
        (RBD, {"rbd": {"monitors": ["m3"], "image": "i"}}, OK),
        (RBD, {"rbd": {"monitors": ["m1"], "image": "j"}}, OK),
        (RBD, {"rbd": {"monitors": ["m1"], "image": "i", "pool": "p"}}, OK),
        (GCE, EBS, OK),
    ],
)
def test_refuses_nodes_where_a_disk_is_taken(held: Disk, wanted: Disk, expected: Status) -> None:
    plugin, waiting, state = plugin_with(), user("p", inline=[wanted]), CycleState()
    busy = node("busy", pods=[user("other", inline=[{"emptyDir": {}}, held])])
    cluster = nodes(node("idle", pods=[pod("r")]), busy)
    assert plugin.pre_filter(state, waiting, cluster) is OK
    assert plugin.filter(state, waiting, busy) == expected
    verdicts = plugin.filter_all(state, waiting, cluster)
    assert [verdicts.status(0), verdicts.status(1)] == [OK, expected]


def test_skips_pods_that_cannot_get_in_the_way_of_others() -> None:
    plugin, cluster = plugin_with(claim("data"), ONE_POD), nodes(node("n"))
    assert plugin.pre_filter(CycleState(), pod(), cluster) is SKIP
    assert plugin.pre_filter(CycleState(), user("p", "data"), cluster) is SKIP
    assert plugin.pre_filter(CycleState(), user("p", ephemeral=["x"]), cluster) is SKIP


def test_refuses_pods_whose_claim_is_missing() -> None:
    status = plugin_with().pre_filter(CycleState(), user("p", "data"), nodes(node("n")))
    assert status == Status.unresolvable('persistentvolumeclaim "data" not found')


@pytest.mark.parametrize(
    ("holder", "is_taken"),
    [
        (user("old", "data"), True),
        (user("old", "data", namespace="shop"), False),
        (user("old", "more"), False),
    ],
)
def test_refuses_all_nodes_while_another_pod_uses_the_claim(holder: Any, is_taken: bool) -> None:
    plugin, waiting, state = plugin_with(ONE_POD), user("p", "data"), CycleState()
    cluster = nodes(node("a"), node("b", pods=[holder]))
    if not is_taken:
        assert plugin.pre_filter(state, waiting, cluster) is SKIP
        return
    assert plugin.pre_filter(state, waiting, cluster) is OK
    text = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    )
    expected = Status.unschedulable(text)
    assert [plugin.filter(state, waiting, it) for it in cluster] == [expected, expected]
    verdicts = plugin.filter_all(state, waiting, cluster)
    assert [verdicts.status(0), verdicts.status(1)] == [expected, expected]


def test_follows_what_ifs_without_touching_the_original() -> None:
    plugin, waiting, state = plugin_with(ONE_POD), user("p", "data"), CycleState()
    first, second = user("first", "data"), user("second", "data")
    busy = node("n", pods=[first, second])
    assert plugin.pre_filter(state, waiting, nodes(busy)) is OK
    imagined = state.clone()
    assert plugin.remove_pod(imagined, waiting, first, busy.without_pod(first)) is OK
    assert plugin.filter(imagined, waiting, busy) == VolumeRestrictions.CLAIM_TAKEN
    assert plugin.remove_pod(imagined, waiting, second, busy) is OK
    assert plugin.filter(imagined, waiting, busy) is OK
    stranger = user("stranger", "data", namespace="shop")
    assert plugin.add_pod(imagined, waiting, stranger, busy) is OK
    assert plugin.filter(imagined, waiting, busy) is OK
    assert plugin.add_pod(imagined, waiting, first, busy) is OK
    assert plugin.filter(imagined, waiting, busy) == VolumeRestrictions.CLAIM_TAKEN
    assert plugin.filter(state, waiting, busy) == VolumeRestrictions.CLAIM_TAKEN


def test_is_an_error_without_its_pre_filter() -> None:
    plugin, waiting = plugin_with(), user("p", inline=[GCE])
    expected = Status.error('cannot read "PreFilterVolumeRestrictions" from cycleState')
    assert plugin.filter(CycleState(), waiting, node("n")) == expected
    assert plugin.filter_all(CycleState(), waiting, nodes(node("n"))).status(0) == expected
    assert plugin.add_pod(CycleState(), waiting, pod("other"), node("n")) == expected


def test_wakes_when_a_rival_goes() -> None:
    plugin, waiting = plugin_with(), user("p", "data", inline=[GCE])
    gone = Event.POD_DELETED
    assert plugin.hint(gone, waiting, user("old", inline=[GCE]), None)
    assert plugin.hint(gone, waiting, user("old", "data"), None)
    assert not plugin.hint(gone, waiting, user("old", "data", namespace="shop"), None)
    assert not plugin.hint(gone, waiting, user("old", "more", inline=[EBS]), None)


def test_wakes_for_new_nodes_and_for_its_own_new_claims() -> None:
    plugin, waiting = plugin_with(), user("p", "data", ephemeral=["scratch"])
    added = Event.PERSISTENT_VOLUME_CLAIM_CHANGED
    assert plugin.hint(Event.NODE_ADDED, waiting, None, node("n").api)
    assert plugin.hint(added, waiting, None, claim("data"))
    assert not plugin.hint(added, waiting, None, claim("data", namespace="shop"))
    assert not plugin.hint(added, waiting, None, claim("p-scratch"))
