"""The volume plugins keep the contract where there really are volumes."""

import pytest
from tests.plugins.volumes.random_storage import random_storage
from tests.sizes import sized

from mooring.framework import CycleState
from mooring.framework.plugin import Base
from mooring.plugins.nodevolumelimits import NodeVolumeLimits
from mooring.plugins.volumebinding.plugin import VolumeBinding
from mooring.plugins.volumerestrictions import VolumeRestrictions
from mooring.plugins.volumezone import VolumeZone
from mooring.testing import Examples, StubHandle, build, check_plugin, nodes

PLUGINS: tuple[type[NodeVolumeLimits | VolumeBinding | VolumeRestrictions | VolumeZone], ...] = (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)


@pytest.mark.parametrize("seed", range(sized(1)))
@pytest.mark.parametrize("plugin", PLUGINS)
def test_keeps_the_contract_with_volumes(plugin: type[Base], seed: int) -> None:
    storage = random_storage(seed)
    examples = Examples(
        seeds=[seed], pods=storage.pods, nodes=storage.nodes, objects=storage.objects
    )
    check_plugin(plugin, examples=examples)


@pytest.mark.parametrize("seed", range(4, 40))
def test_both_forms_agree_about_every_world(seed: int) -> None:
    storage = random_storage(seed)
    cluster = nodes(*storage.nodes)
    handle = StubHandle(nodes=cluster, objects=storage.objects)
    for plugin in (build(kind, handle=handle) for kind in PLUGINS):
        for waiting in storage.pods:
            state = CycleState()
            if plugin.pre_filter(state, waiting, cluster).ok:
                one_by_one = [plugin.filter(state, waiting, it) for it in cluster]
                verdicts = plugin.filter_all(state, waiting, cluster)
                assert [verdicts.status(row) for row in range(len(cluster))] == one_by_one


@pytest.mark.parametrize("seed", range(4, 40))
def test_what_is_reserved_can_be_given_back(seed: int) -> None:
    storage = random_storage(seed)
    cluster = nodes(*storage.nodes)
    plugin = build(VolumeBinding, handle=StubHandle(nodes=cluster, objects=storage.objects))
    for waiting in storage.pods:
        state = CycleState()
        if not plugin.pre_filter(state, waiting, cluster).ok:
            continue
        for there in cluster:
            if plugin.filter(state, waiting, there).ok:
                assert plugin.reserve(state, waiting, there.name).ok
                plugin.unreserve(state, waiting, there.name)
    assert (len(plugin._volumes), len(plugin._claims)) == (0, 0)
