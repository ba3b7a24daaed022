"""Pods of one class are the same question: asked once, then only about what changed.

A decision by class is a decision like any other, only cheaper; a share of them can be compared
with the full evaluation while the scheduler runs.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final

from msgspec import structs

from mooring.api.meta import NO_RESOURCES
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import PluginError
from mooring.framework.state import CycleState
from mooring.runtime.answers import Unsure
from mooring.runtime.guard import Guard
from mooring.runtime.layers import Outdated
from mooring.runtime.lineup import Lineup, Shared
from mooring.runtime.profile import Profile
from mooring.runtime.refusals import Judge
from mooring.runtime.standing import Chosen, Claims, Standing

log = logging.getLogger(__name__)

MOST_ROWS: Final = 1_500_000
"""Rows kept for all classes together, 60 to 100 bytes each; the least recently used class goes."""


class _Class:
    """A class, and what is known of it."""

    __slots__ = ("example", "outline", "standing", "what")

    def __init__(self, outline: Hashable, what: tuple[Any, ...], example: Pod) -> None:
        self.outline = outline
        self.what = what
        self.example = example
        self.standing: Standing | None = None


class Classes:
    """The classes of pods that one profile has met lately."""

    def __init__(
        self,
        profile: Profile,
        guard: Guard,
        claims: Claims,
        judge: Judge,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._lineup = Lineup(profile, guard)
        self._claims = claims
        self._judge = judge
        self._most_rows = most_rows
        self._shared: Shared = {}
        self._by_outline: dict[Hashable, list[_Class]] = {}
        self._recent: OrderedDict[_Class, None] = OrderedDict()  # the latest last

    def __len__(self) -> int:
        return len(self._recent)

    def choose(self, state: CycleState, pod: Pod, nodes: Nodes) -> Chosen | None:
        """What is best for the pod, or why nothing will do.

        None, and a state that is as good as new: take the full way.
        """
        known = self._class(pod, len(nodes))
        try:
            chosen = self._choose(known, state, pod, nodes)
        except (Unsure, PluginError) as error:
            known.standing = None  # half brought up to date, it is good for nothing
            log.debug("decided the full way", extra={"pod": pod.key, "reason": str(error)})
            chosen = None
        if chosen is None or not (chosen.feasible or chosen.verdicts is not None):
            state.begin_like(CycleState())
            return None
        return chosen

    def _choose(self, known: _Class, state: CycleState, pod: Pod, nodes: Nodes) -> Chosen | None:
        standing = known.standing
        if standing is not None and standing.is_current(pod, nodes):
            try:
                return standing.choose(state, pod, nodes, self._claims)
            except Outdated:
                self._shared.clear()  # all layers are
        known.standing = None
        standing = Standing(self._lineup, self._shared, self._judge, pod, nodes)
        known.standing = standing
        return standing.choose(state, pod, nodes, self._claims)

    def _class(self, pod: Pod, rows: int) -> _Class:
        what = class_of(pod)
        latest = next(reversed(self._recent), None)
        if latest is not None and latest.what == what:
            pod.weigh_as(latest.example)
            return latest  # most pods are like the one before
        return self._find(pod, what, rows)

    def _find(self, pod: Pod, what: tuple[Any, ...], rows: int) -> _Class:
        # To compare with a few is cheaper than to hash all of a spec.
        outline = _outline(pod)
        alike = self._by_outline.get(outline)
        if alike is None:
            alike = self._by_outline[outline] = []
        for known in alike:
            if known.what == what:
                self._recent.move_to_end(known)
                pod.weigh_as(known.example)
                return known
        new = _Class(outline, what, pod)
        alike.append(new)
        self._recent[new] = None
        # Also of classes that will not do: each pod of a DaemonSet, bound for one node, is its own.
        self._make_room(rows)
        return new

    def _make_room(self, rows: int) -> None:
        if len(self._shared) * rows > self._most_rows:
            self._shared.clear()  # who shares one keeps it
        while len(self._recent) > 1 and len(self._recent) * rows > self._most_rows:
            oldest, _ = self._recent.popitem(last=False)
            alike = self._by_outline[oldest.outline]
            alike.remove(oldest)
            if not alike:
                del self._by_outline[oldest.outline]


def class_of(pod: Pod) -> tuple[Any, ...]:
    """What pods have in common if plugins with a scope must answer alike for them.

    A volume without a source, such as the one with a service account's token, has a name of its
    own in every pod, and no influence.
    """
    meta, spec = pod.api.metadata, pod.api.spec
    if spec.volumes:
        volumes = tuple([volume for volume in spec.volumes if volume.has_source])
        spec = structs.replace(spec, volumes=volumes)
    # What is soon compared, and often differs, first.
    return (meta.namespace, meta.labels, meta.annotations, meta.controller, spec)


def _outline(pod: Pod) -> Hashable:
    """Something cheap that tells most classes apart."""
    spec = pod.api.spec
    asked = spec.containers[0].resources.requests if spec.containers else NO_RESOURCES
    return (
        pod.namespace,
        *pod.labels.values(),
        *[amount.nanos for amount in asked.values()],
        # Whoever has an affinity may have one of its own.
        hash(spec.affinity) if spec.affinity is not None else 0,
    )
