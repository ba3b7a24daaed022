"""Rigs of more than one file; a file with a rig of another kind defines its own."""

from collections.abc import Iterator

import pytest
from tests.client.client_rig import ClientRig
from tests.client.lease_world import World


@pytest.fixture
def rig() -> Iterator[ClientRig]:
    with ClientRig() as rig:
        yield rig


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()
