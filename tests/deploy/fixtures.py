"""What is built with Go for these tests; without Go they are skipped, or fail if they must run."""

import os

import pytest
from tests import golang
from tests.deploy.rendering import helm_binary


@pytest.fixture(scope="session")
def helm_program() -> None:
    """Builds it, if this is the first time: some minutes."""
    try:
        helm_binary()
    except golang.GoError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        pytest.skip(f"{error} (set MOORING_REQUIRE_REAL=1 to make this a failure)")
