"""One browser for all tests of this folder; skipped without one, required where tests must run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.browser.cdp import Chromium
from tests.browser.finding import BrowserError, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    required = os.environ.get("MOORING_REQUIRE_REAL") == "1"
    try:
        chromium(install=required)
    except BrowserError as error:
        if required:
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        pytest.skip(f"{error} (set MOORING_REQUIRE_REAL=1 to make this a failure)")
    with closing(Chromium()) as running:
        yield running
