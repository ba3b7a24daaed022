"""What a family makes."""

from __future__ import annotations

from typing import NamedTuple

from tests.oracle.scenarios.dice import Object


class Scene(NamedTuple):
    """A pod to place, the cluster it comes to and the profile, None for the default one."""

    pod: Object
    cluster: Object
    profile: Object | None = None
