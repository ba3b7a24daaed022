"""The real control plane, for the tests of this folder."""

from tests.controlplane.fixtures import (
    control_plane,
    durable_control_plane,
    namespace,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    real_programs,
    shared_control_plane,
    shared_durable_control_plane,
)

__all__ = [
    "control_plane",
    "durable_control_plane",
    "namespace",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "real_programs",
    "shared_control_plane",
    "shared_durable_control_plane",
]
