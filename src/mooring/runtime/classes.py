"""Pods of one class are the same question: asked once, then only about what changed.

A decision by class is a decision like any other, only cheaper; a share of them can be compared
with the full evaluation while the scheduler runs.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from msgspec import structs

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import PluginError
from mooring.framework.state import CycleState
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile
from mooring.runtime.standing import Chosen, Claims, Lineup, Standing, Unsure

log = logging.getLogger(__name__)

MOST_ROWS: Final = 2_000_000
"""Rows kept for all classes together, 36 bytes each; the least recently used class goes."""


class Classes:
    """The classes of pods that one profile has met lately."""

    def __init__(
        self, profile: Profile, guard: Guard, claims: Claims, most_rows: int = MOST_ROWS
    ) -> None:
        self._lineup = Lineup(profile, guard)
        self._claims = claims
        self._most_rows = most_rows
        self._standing: OrderedDict[Hashable, Standing] = OrderedDict()

    def __len__(self) -> int:
        return len(self._standing)

    def choose(self, state: CycleState, pod: Pod, nodes: Nodes) -> Chosen | None:
        """What is best for the pod; None, and a state that is as good as new: take the full way."""
        key = class_of(pod)
        standing = self._standing.get(key)
        try:
            if standing is not None and standing.is_current(pod):
                chosen = standing.choose(state, pod, nodes, self._claims)
                if chosen is not None:
                    self._standing.move_to_end(key)
                    return self._sure(state, chosen)
            standing = self._standing[key] = Standing(self._lineup, pod, nodes)
            self._standing.move_to_end(key)
            self._make_room(len(nodes))
            return self._sure(state, standing.choose(state, pod, nodes, self._claims))
        except (Unsure, PluginError) as error:
            # Half brought up to date, it is good for nothing.
            self._standing.pop(key, None)
            log.debug("decided the full way", extra={"pod": pod.key, "reason": str(error)})
            return self._sure(state, None)

    @staticmethod
    def _sure(state: CycleState, chosen: Chosen | None) -> Chosen | None:
        """The choice, if it is one; why nobody is left has to be found out node by node."""
        if chosen is None or not chosen.feasible:
            state.begin_like(CycleState())
            return None
        return chosen

    def _make_room(self, rows: int) -> None:
        while len(self._standing) > 1 and len(self._standing) * rows > self._most_rows:
            self._standing.popitem(last=False)


def class_of(pod: Pod) -> Hashable:
    """What pods have in common if plugins with a scope must answer alike for them.

    A volume without a source, such as the one with a service account's token, has a name of its
    own in every pod, and no influence.
    """
    meta, spec = pod.api.metadata, pod.api.spec
    if spec.volumes:
        volumes = tuple(volume for volume in spec.volumes if volume.has_source)
        spec = structs.replace(spec, volumes=volumes)
    return (meta.namespace, meta.labels, meta.annotations, meta.controller, spec)
