"""No cluster here is so large that the best node would not be looked for among all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mooring.runtime import field


@pytest.fixture(scope="session", autouse=True)
def _no_field_is_small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field, "SMALL", 0)
        yield
