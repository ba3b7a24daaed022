"""The real kube-apiserver, for tests that compare with it."""

from __future__ import annotations

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import (
    control_plane,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    real_programs,
    shared_control_plane,
)

__all__ = [
    "control_plane",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "real_programs",
    "shared_control_plane",
]


@pytest.fixture(scope="session")
def real_server(shared_control_plane: ControlPlane) -> ControlPlane:
    """One server for all tests of the folder: each takes names, or a namespace, of its own."""
    return shared_control_plane
