"""A node holds so many volumes of a driver, and no more."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.plugins.volumes.storage import (
    DRIVER,
    attachment,
    claim,
    csi_node,
    storage_class,
    user,
    volume,
)

from mooring.api.meta import Object
from mooring.framework import OK, SKIP, CycleState, Event, Node, Pod, Status
from mooring.plugins.nodevolumelimits import NodeVolumeLimits
from mooring.testing import StubHandle, build, node, nodes, pod

FULL = NodeVolumeLimits.FULL
GCE_DRIVER = "pd.csi.storage.gke.io"


def bound(*names: str) -> list[Object]:
    """A claim for each name, each with a volume of its own."""
    claims = [claim(name, bound_to=f"pv-{name}") for name in names]
    return [*claims, *(volume(f"pv-{name}") for name in names)]


def ask(there: Node, waiting: Pod, *objects: Object) -> Status:
    """Both forms, which must agree."""
    cluster = nodes(there)
    plugin = build(NodeVolumeLimits, handle=StubHandle(nodes=cluster, objects=objects))
    state = CycleState()
    assert plugin.pre_filter(state, waiting, cluster) is OK
    one = plugin.filter(state, waiting, there)
    assert plugin.filter_all(state, waiting, cluster).status(0) == one
    assert plugin.filter(CycleState(), waiting, there) == one
    return one


@pytest.mark.parametrize(("limit", "expected"), [(0, FULL), (2, FULL), (3, OK), (None, OK)])
def test_counts_what_the_pods_of_the_node_hold(limit: int | None, expected: Status) -> None:
    there = node("n", pods=[user("old", "a", "b")])
    objects = [*bound("a", "b", "c"), csi_node("n", limits={DRIVER: limit})]
    assert ask(there, user("p", "c"), *objects) == expected


def test_counts_a_shared_volume_once() -> None:
    there = node("n", pods=[user("one", "a"), user("two", "a")])
    objects = [*bound("a", "b"), csi_node("n", limits={DRIVER: 2})]
    assert ask(there, user("p", "a", "b"), *objects) is OK
    assert ask(there, user("p", "a"), *bound("a"), csi_node("n", limits={DRIVER: 1})) is OK


def test_limits_each_driver_by_itself() -> None:
    there = node("n", pods=[user("old", "a")])
    other = [claim("b", bound_to="pv-b"), volume("pv-b", driver="other")]
    limits = {DRIVER: 1, "other": 1}
    assert ask(there, user("p", "b"), *bound("a"), *other, csi_node("n", limits=limits)) is OK
    assert ask(there, user("p", "b"), *bound("a"), *other) is OK


def test_counts_claims_that_still_have_no_volume_by_their_class() -> None:
    there = node("n", pods=[user("old", "a")])
    objects = [storage_class(), claim("a"), claim("b"), csi_node("n", limits={DRIVER: 1})]
    assert ask(there, user("p", "b"), *objects) == FULL
    assert ask(there, user("p", "a"), *objects) is OK
    assert ask(there, user("p", "b"), *objects[1:]) is OK  # without a class it is not known


def test_counts_what_is_attached_though_no_pod_uses_it() -> None:
    left = [volume("left"), attachment("va", "n", "left")]
    limit = csi_node("n", limits={DRIVER: 1})
    assert ask(node("n"), user("p", "a"), *bound("a"), *left, limit) == FULL
    elsewhere = [volume("left"), attachment("va", "m", "left")]
    assert ask(node("n"), user("p", "a"), *bound("a"), *elsewhere, limit) is OK
    unknown = [attachment("va", "n", "gone"), attachment("vb", "n", None)]
    assert ask(node("n"), user("p", "a"), *bound("a"), *unknown, limit) is OK
    used = [attachment("va", "n", "pv-a")]
    there = node("n", pods=[user("old", "a")])
    assert ask(there, user("p", "a"), *bound("a"), *used, limit) is OK


def test_ignores_what_it_cannot_know_about_pods_that_are_there() -> None:
    foreign = claim("old-scratch")
    odd = user("old", "missing", ephemeral=["scratch"], inline=[_ebs("aws://z/nonsense")])
    objects = [*bound("a"), foreign, csi_node("n", limits={DRIVER: 1})]
    assert ask(node("n", pods=[odd]), user("p", "a"), *objects) is OK


@pytest.mark.parametrize("has_csi_node", [False, True])
def test_says_which_claim_is_missing(has_csi_node: bool) -> None:
    objects = [csi_node("n")] if has_csi_node else []
    text = 'looking up PVC default/a: persistentvolumeclaim "a" not found'
    assert ask(node("n"), user("p", "a"), *objects) == Status.unresolvable(text)


def test_is_an_error_if_a_claim_is_not_the_pods_own() -> None:
    text = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    assert ask(node("n"), user("p", ephemeral=["scratch"]), claim("p-scratch")) == (
        Status.error(text)
    )
    assert ask(node("n"), user("p", "")) == Status.error("PersistentVolumeClaim had no name")


def test_counts_the_claims_made_for_the_pod() -> None:
    waiting = user("p", ephemeral=["scratch"])
    objects = [storage_class(), claim("p-scratch", owner=waiting)]
    assert ask(node("n"), waiting, *objects, csi_node("n", limits={DRIVER: 0})) == FULL


def _ebs(text: str) -> Mapping[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": text}}


@pytest.mark.parametrize(
    ("driver", "source"),
    [
        ("ebs.csi.aws.com", _ebs("vol-1")),
        ("ebs.csi.aws.com", _ebs("aws://z/vol-1")),
        (GCE_DRIVER, {"gcePersistentDisk": {"pdName": "d"}}),
        ("disk.csi.azure.com", {"azureDisk": {"diskURI": "u", "kind": "Managed"}}),
        ("cinder.csi.openstack.org", {"cinder": {"volumeID": "c"}}),
        ("pxd.portworx.com", {"portworxVolume": {"volumeID": "p"}}),
    ],
)
def test_counts_in_tree_disks_for_the_driver_that_took_over(
    driver: str, source: Mapping[str, Any]
) -> None:
    limit = csi_node("n", limits={driver: 0})
    inline = user("p", inline=[source])
    assert ask(node("n"), inline, limit) == FULL
    assert ask(node("n"), inline, csi_node("n", limits={driver: 1})) is OK
    assert ask(node("n"), inline) is OK
    objects = [claim("a", bound_to="pv"), volume("pv", source=source)]
    assert ask(node("n"), user("p", "a"), *objects, limit) == FULL


def test_counts_claims_of_an_in_tree_class_for_the_driver() -> None:
    objects = [storage_class(provisioner="kubernetes.io/gce-pd"), claim("a")]
    limit = csi_node("n", limits={GCE_DRIVER: 0})
    assert ask(node("n"), user("p", "a"), *objects, limit) == FULL
    assert ask(node("n"), user("p", "a"), *objects) is OK


def test_is_an_error_if_a_disk_of_the_pod_cannot_be_told_to_the_driver() -> None:
    waiting = user("p", inline=[_ebs("aws://z/nonsense")])
    text = (
        "converting volume(i0) from inline to csi: failed to translate Kubernetes ID to EBS"
        " Volume ID Invalid format for AWS volume (aws://z/nonsense)"
    )
    assert ask(node("n"), waiting, csi_node("n")) == Status.error(text)
    assert ask(node("n"), waiting) is OK
    source = _ebs("aws://z/nonsense")
    objects = [claim("a", bound_to="pv"), volume("pv", source=source)]
    limit = csi_node("n", limits={"ebs.csi.aws.com": 0})
    assert ask(node("n"), user("p", "a"), *objects, limit) is OK  # a volume is not counted


def test_skips_pods_without_volumes_that_could_be_attached() -> None:
    plugin = build(NodeVolumeLimits)
    assert plugin.pre_filter(CycleState(), pod(), nodes()) is SKIP
    assert plugin.pre_filter(CycleState(), user("p", inline=[{"emptyDir": {}}]), nodes()) is SKIP


def test_sees_limits_that_change_and_nodes_that_come() -> None:
    cluster = nodes(node("n"))
    handle = StubHandle(nodes=cluster, objects=[*bound("a"), csi_node("n", limits={DRIVER: 0})])
    plugin, state, waiting = build(NodeVolumeLimits, handle=handle), CycleState(), user("p", "a")
    assert plugin.pre_filter(state, waiting, cluster) is OK
    assert plugin.filter_all(state, waiting, cluster).status(0) == FULL
    handle.objects.put(csi_node("n", limits={DRIVER: 1}))
    assert plugin.filter_all(state, waiting, cluster).status(0) is OK
    handle.objects.put(volume("left"))
    handle.objects.put(attachment("va", "n", "left"))
    assert plugin.filter_all(state, waiting, cluster).status(0) == FULL
    larger = nodes(node("m"), node("n"))
    verdicts = plugin.filter_all(state, waiting, larger)
    assert [verdicts.status(0), verdicts.status(1)] == [OK, FULL]


def test_wakes_when_there_may_be_room() -> None:
    plugin, waiting = build(NodeVolumeLimits), user("p", "a")
    small, large = csi_node("n", limits={DRIVER: 1}), csi_node("n", limits={DRIVER: 2})
    assert plugin.hint(Event.CSI_NODE_CHANGED, waiting, None, small)
    assert plugin.hint(Event.CSI_NODE_CHANGED, waiting, small, large)
    assert not plugin.hint(Event.CSI_NODE_CHANGED, waiting, large, small)
    assert plugin.hint(Event.POD_DELETED, waiting, user("old", "b", on="n"), None)
    assert plugin.hint(Event.POD_DELETED, waiting, user("old", "b", nominated="n"), None)
    assert not plugin.hint(Event.POD_DELETED, waiting, user("old", "b"), None)
    assert not plugin.hint(Event.POD_DELETED, waiting, pod("old", on="n"), None)


def test_wakes_for_its_own_claims_and_for_volumes_that_are_detached() -> None:
    plugin, waiting = build(NodeVolumeLimits), user("p", "a", ephemeral=["scratch"])
    added = Event.PERSISTENT_VOLUME_CLAIM_CHANGED
    assert plugin.hint(added, waiting, None, claim("a"))
    assert plugin.hint(added, waiting, None, claim("p-scratch"))
    assert not plugin.hint(added, waiting, None, claim("a", namespace="shop"))
    detached = NodeVolumeLimits.wakes_on[-1]
    gone = attachment("va", "n", "pv")
    assert plugin.hint(detached, waiting, gone, None)
    inline = user("p", inline=[_ebs("vol-1")])
    assert not plugin.hint(detached, inline, gone, None)
