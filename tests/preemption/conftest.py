"""The clusters of these tests are small, and what is tested is for many nodes at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mooring.preemption import all_victims


@pytest.fixture(scope="session")
def few_nodes() -> int:
    """How many nodes are searched one by one, where it is not changed."""
    return all_victims.FEW_NODES


@pytest.fixture(autouse=True, scope="package")
def all_at_once(few_nodes: int) -> Iterator[None]:
    """Also one node is searched as many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_victims, "FEW_NODES", 0)
        yield
