"""The real kube-apiserver, for tests that compare with it.

Without Go these tests are skipped and say so; with MOORING_REQUIRE_REAL=1 they fail instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.controlplane.build import ControlPlaneError, binaries
from tests.controlplane.cluster import ControlPlane


@pytest.fixture(scope="session")
def real_programs() -> None:
    """Builds them, if this is the first time."""
    try:
        binaries()
    except ControlPlaneError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        pytest.skip(f"{error} (set MOORING_REQUIRE_REAL=1 to make this a failure)")


@pytest.fixture(scope="session")
def real_server(real_programs: None) -> Iterator[ControlPlane]:
    """One server for all tests of the folder: each takes names, or a namespace, of its own."""
    with ControlPlane() as running:
        yield running
