"""What VolumeBinding says about a pod before it looks at nodes, and what it can be told."""

from typing import Any

import pytest
from tests.plugins.volumes.storage import (
    DRIVER,
    MIGRATED,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    user,
    volume,
)

from mooring.api.meta import Object
from mooring.errors import ConfigError
from mooring.framework import OK, SKIP, Code, CycleState, Event, Status
from mooring.plugins.volumebinding.plugin import VolumeBinding
from mooring.testing import StubHandle, build, node, nodes, pod

WEB = user("web", ephemeral=["cache"])
IMMEDIATE = Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")


def plugin_with(*objects: Object) -> VolumeBinding:
    return build(VolumeBinding, handle=StubHandle(objects=objects))


def before_nodes(name: str, *objects: Object) -> Status:
    return plugin_with(*objects).pre_filter(CycleState(), user("p", name), nodes())


def test_skips_pods_without_claims() -> None:
    assert plugin_with().pre_filter(CycleState(), pod(), nodes()) is SKIP
    inline = user("p", inline=[{"emptyDir": {}}, {"awsElasticBlockStore": {"volumeID": "v"}}])
    assert plugin_with().pre_filter(CycleState(), inline, nodes()) is SKIP


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        (
            [claim("data", bound_to="pv", phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
        ),
        ([claim("data", deleting=True)], 'persistentvolumeclaim "data" is being deleted'),
    ],
)
def test_refuses_claims_that_cannot_be_used(objects: list[Object], reason: str) -> None:
    assert before_nodes("data", *objects) == Status.unresolvable(reason)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        (
            [],
            "waiting for ephemeral volume controller to create"
            ' the persistentvolumeclaim "web-cache"',
        ),
        (
            [claim("web-cache")],
            "PVC default/web-cache was not created for pod default/web (pod is not owner)",
        ),
        (
            [claim("web-cache", owner=pod("web"))],
            "PVC default/web-cache was not created for pod default/web (pod is not owner)",
        ),
    ],
)
def test_refuses_ephemeral_claims_that_are_not_the_pods(objects: list[Object], reason: str) -> None:
    status = plugin_with(*objects).pre_filter(CycleState(), WEB, nodes())
    assert status == Status.unresolvable(reason)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([claim("data", storage_class=None)], IMMEDIATE),
        ([claim("data")], IMMEDIATE),
        ([claim("data"), storage_class(mode="Immediate")], IMMEDIATE),
        ([claim("data", volume_name="pv"), storage_class()], IMMEDIATE),
        ([claim("data"), storage_class()], OK),
        ([claim("data", bound_to="pv")], OK),
        (
            [claim("data"), storage_class(mode=None)],
            Status.error('VolumeBindingMode not set for StorageClass "wait"'),
        ),
        (
            [
                claim("data", annotations={"volume.beta.kubernetes.io/storage-class": "old"}),
                storage_class("old"),
            ],
            OK,
        ),
    ],
)
def test_leaves_immediate_claims_to_others(objects: list[Object], expected: Status) -> None:
    assert before_nodes("data", *objects) == expected


def test_is_an_error_if_a_selector_makes_no_sense() -> None:
    bad = {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    status = before_nodes("data", claim("data", spec=bad), storage_class())
    assert status.code is Code.ERROR
    expected = "error creating internal label selector for claim: default/data: "
    assert status.message.startswith(expected)


def test_is_an_error_without_its_pre_filter() -> None:
    plugin, waiting = plugin_with(), user("p", "data")
    assert plugin.filter(CycleState(), waiting, node("n")) == Status.error("not found")
    verdicts = plugin.filter_all(CycleState(), waiting, nodes(node("n")))
    assert verdicts.status(0) == Status.error("not found")


def test_does_not_score_for_now() -> None:
    plugin = plugin_with()
    assert plugin.pre_score(CycleState(), pod(), nodes()) is SKIP
    assert plugin.score(CycleState(), pod(), node("n")) == 0


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"bindTimeoutSeconds": -1}, "should not be a negative value"),
        ({"bindTimeoutSeconds": "soon"}, "bindTimeoutSeconds"),
        ({"shape": [{"utilization": 0, "score": 0}]}, "feature gate StorageCapacityScoring"),
    ],
)
def test_refuses_arguments_that_make_no_sense(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        build(VolumeBinding, **args)


@pytest.mark.parametrize("seconds", [0, 1, 3600])
def test_takes_a_time_out(seconds: int) -> None:
    assert build(VolumeBinding, bindTimeoutSeconds=seconds).args.bind_timeout_seconds == seconds
    assert build(VolumeBinding).args.bind_timeout_seconds == 600


# --- events ---------------------------------------------------------------------------------------


def test_wakes_for_its_own_claims_and_for_every_volume_and_node() -> None:
    plugin, waiting = plugin_with(), user("p", "data", ephemeral=["scratch"])
    claims = Event.PERSISTENT_VOLUME_CLAIM_CHANGED
    assert plugin.hint(claims, waiting, None, claim("data"))
    assert plugin.hint(claims, waiting, claim("p-scratch"), claim("p-scratch"))
    assert not plugin.hint(claims, waiting, None, claim("data", namespace="shop"))
    assert not plugin.hint(claims, waiting, None, claim("other"))
    assert plugin.hint(Event.PERSISTENT_VOLUME_CHANGED, waiting, volume(), volume())
    assert plugin.hint(Event.NODE_ADDED, waiting, None, node("n").api)


def test_wakes_for_new_classes_and_topologies() -> None:
    plugin, waiting, event = plugin_with(), user("p", "data"), Event.STORAGE_CLASS_CHANGED
    assert plugin.hint(event, waiting, None, storage_class())
    assert plugin.hint(event, waiting, storage_class(), storage_class(zones=["a"]))
    assert not plugin.hint(event, waiting, storage_class(), storage_class(provisioner="x"))


def test_wakes_when_a_driver_takes_over_on_a_node() -> None:
    plugin, waiting, event = plugin_with(), user("p", "data"), Event.CSI_NODE_CHANGED
    plain, migrated = csi_node("n"), csi_node("n", migrated=["kubernetes.io/gce-pd"])
    assert MIGRATED in migrated.metadata.annotations
    assert plugin.hint(event, waiting, None, plain)
    assert plugin.hint(event, waiting, plain, migrated)
    assert not plugin.hint(event, waiting, plain, csi_node("n", limits={DRIVER: 9}))


def test_wakes_when_more_space_is_reported_or_none_has_to_be() -> None:
    plugin, waiting = plugin_with(), user("p", "data")
    event = Event.CSI_STORAGE_CAPACITY_CHANGED
    small, large = capacity(size="1Gi"), capacity(size="2Gi")
    assert plugin.hint(event, waiting, None, small)
    assert plugin.hint(event, waiting, small, large)
    assert not plugin.hint(event, waiting, large, small)
    assert not plugin.hint(event, waiting, small, capacity(size="9Gi", largest="1Gi"))
    assert plugin.hint(event, waiting, capacity(size=None), small)
    assert not plugin.hint(event, waiting, small, capacity(size=None))
    on, off = csi_driver(), csi_driver(tracks_capacity=False)
    assert plugin.hint(Event.CSI_DRIVER_CHANGED, waiting, on, off)
    assert not plugin.hint(Event.CSI_DRIVER_CHANGED, waiting, off, on)
