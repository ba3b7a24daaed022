"""The volume plugins keep the contract where there really are volumes."""

import pytest
from tests.plugins.volumes.worlds import random_world

from mooring.framework import Base
from mooring.plugins.nodevolumelimits import NodeVolumeLimits
from mooring.plugins.volumebinding.plugin import VolumeBinding
from mooring.plugins.volumerestrictions import VolumeRestrictions
from mooring.plugins.volumezone import VolumeZone
from mooring.testing import Examples, check_plugin

PLUGINS = (NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("plugin", PLUGINS)
def test_keeps_the_contract_with_volumes(plugin: type[Base], seed: int) -> None:
    world = random_world(seed)
    examples = Examples(seeds=[seed], pods=world.pods, nodes=world.nodes, objects=world.objects)
    check_plugin(plugin, examples=examples)
