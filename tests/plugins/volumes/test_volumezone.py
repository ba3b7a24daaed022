"""Pods follow the zone labels of their volumes."""

from collections.abc import Mapping

import pytest
from tests.plugins.volumes.storage import claim, storage_class, user, volume

from mooring.api.meta import Object
from mooring.framework import OK, SKIP, CycleState, Event, Status
from mooring.plugins.volumezone import VolumeZone
from mooring.testing import StubHandle, build, node, nodes, pod

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = (
    f"failure-domain.beta.kubernetes.io/{word}" for word in ("zone", "region")
)
Labels = Mapping[str, str]


def plugin_with(*objects: Object) -> VolumeZone:
    return build(VolumeZone, handle=StubHandle(objects=objects))


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "expected"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, OK),
        ({ZONE: "a"}, {ZONE: "b"}, VolumeZone.ZONE_CONFLICT),
        ({ZONE: "a__b"}, {ZONE: "b"}, OK),
        ({ZONE: "a__b"}, {ZONE: "c"}, VolumeZone.ZONE_CONFLICT),
        ({ZONE: "a"}, {}, OK),
        ({ZONE: "a"}, {REGION: "r"}, VolumeZone.ZONE_CONFLICT),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, VolumeZone.ZONE_CONFLICT),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, OK),
        ({BETA_ZONE: "a"}, {ZONE: "a", BETA_ZONE: "b"}, VolumeZone.ZONE_CONFLICT),
        ({BETA_REGION: "r"}, {REGION: "r"}, OK),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, VolumeZone.ZONE_CONFLICT),
    ],
)
def test_compares_the_labels_of_volume_and_node(
    volume_labels: Labels, node_labels: Labels, expected: Status
) -> None:
    plugin = plugin_with(claim("data", bound_to="pv"), volume("pv", labels=volume_labels))
    waiting, state, there = user("p", "data"), CycleState(), node("n", labels=node_labels)
    assert plugin.pre_filter(state, waiting, nodes(there)) is OK
    assert plugin.filter(state, waiting, there) == expected
    assert plugin.filter_all(state, waiting, nodes(there)).status(0) == expected


@pytest.mark.parametrize("labels", [{}, {ZONE: ""}, {ZONE: "a__"}, {"zone": "a"}])
def test_has_nothing_to_say_about_volumes_without_zones(labels: Labels) -> None:
    plugin = plugin_with(claim("data", bound_to="pv"), volume("pv", labels=labels))
    assert plugin.pre_filter(CycleState(), user("p", "data"), nodes()) is SKIP


def test_skips_pods_without_claims_and_claims_that_wait() -> None:
    plugin = plugin_with(storage_class(), claim("data"), claim("p-scratch"))
    assert plugin.pre_filter(CycleState(), pod(), nodes()) is SKIP
    assert plugin.pre_filter(CycleState(), user("p", "data"), nodes()) is SKIP
    assert plugin.pre_filter(CycleState(), user("p", ephemeral=["scratch"]), nodes()) is SKIP


@pytest.mark.parametrize(
    ("name", "objects", "reason"),
    [
        ("", [], "PersistentVolumeClaim had no name"),
        ("data", [], 'persistentvolumeclaim "data" not found'),
        ("data", [claim("data", bound_to="pv")], 'persistentvolume "pv" not found'),
        (
            "data",
            [claim("data", storage_class=None)],
            "PersistentVolumeClaim had no pv name and storageClass name",
        ),
        ("data", [claim("data")], 'storageclass.storage.k8s.io "wait" not found'),
        (
            "data",
            [claim("data"), storage_class(mode=None)],
            'VolumeBindingMode not set for StorageClass "wait"',
        ),
        ("data", [claim("data"), storage_class(mode="Immediate")], "PersistentVolume had no name"),
    ],
)
def test_refuses_pods_whose_volumes_cannot_be_found(
    name: str, objects: list[Object], reason: str
) -> None:
    plugin, waiting = plugin_with(*objects), user("p", name)
    expected = Status.unresolvable(reason)
    assert plugin.pre_filter(CycleState(), waiting, nodes()) == expected
    # Without a pre-filter the filter finds out itself.
    assert plugin.filter(CycleState(), waiting, node("n")) == expected
    assert plugin.filter_all(CycleState(), waiting, nodes(node("n"))).status(0) == expected


def test_wakes_for_its_own_claims_and_for_volumes_that_moved() -> None:
    plugin, waiting = plugin_with(), user("p", "data")
    claims, volumes = Event.PERSISTENT_VOLUME_CLAIM_CHANGED, Event.PERSISTENT_VOLUME_CHANGED
    assert plugin.hint(claims, waiting, None, claim("data"))
    assert not plugin.hint(claims, waiting, None, claim("data", namespace="shop"))
    assert not plugin.hint(claims, waiting, None, claim("other"))
    assert plugin.hint(volumes, waiting, None, volume())
    assert plugin.hint(volumes, waiting, volume(), volume(labels={ZONE: "a"}))
    assert not plugin.hint(volumes, waiting, volume(), volume(labels={"disk": "ssd"}))


def test_wakes_for_nodes_and_for_classes_that_wait() -> None:
    plugin, waiting = plugin_with(), user("p", "data")
    assert plugin.hint(Event.NODE_ADDED, waiting, None, node("n").api)
    assert plugin.hint(Event.NODE_LABELS_CHANGED, waiting, node("n").api, node("n").api)
    assert plugin.hint(Event.STORAGE_CLASS_CHANGED, waiting, None, storage_class())
    immediate = storage_class(mode="Immediate")
    assert not plugin.hint(Event.STORAGE_CLASS_CHANGED, waiting, None, immediate)
