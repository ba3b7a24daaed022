"""What a family of scenarios makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.oracle.scenarios.dice import Object


class Case(NamedTuple):
    """A pod to place, the cluster it comes to and the profile, None for the default one."""

    pod: Object
    cluster: Object
    profile: Object | None = None
    in_flight: Sequence[Object] = ()  # allocations of claims that are not written yet
