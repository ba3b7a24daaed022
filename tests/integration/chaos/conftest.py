"""A control plane that survives being killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.controlplane.cluster import ControlPlane


@pytest.fixture(scope="module")
def durable_control_plane(real_programs: None) -> Iterator[ControlPlane]:
    """One for the tests of a file that hurt its programs; its etcd writes through to the disk."""
    with ControlPlane(durable=True) as running:
        yield running
