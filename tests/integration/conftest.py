"""The real control plane, for the tests of this folder."""

from tests.controlplane.fixtures import (
    control_plane,
    fresh_control_plane,
    namespace,
    pytest_runtest_makereport,
    real_programs,
    shared_control_plane,
)

__all__ = [
    "control_plane",
    "fresh_control_plane",
    "namespace",
    "pytest_runtest_makereport",
    "real_programs",
    "shared_control_plane",
]
