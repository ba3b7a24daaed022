"""The story of placements: a rollout, a spread, a pod that does not fit, a node, a preemption."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from mooring.api.wellknown import ZONE
from mooring.cli.demo import manifests
from mooring.cli.demo.story import Story

_BATCH: Final = 20  # pods of two cores: more than there is room for


class PlacementStory(Story):
    """With a plugin of our own, on machines of two prices in three zones."""

    def chapters(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._roll_out,
            self._spread,
            self._does_not_fit,
            self._add_a_node,
            self._preempt,
        )

    async def _roll_out(self) -> None:
        self._screen.chapter("A rollout", "kubectl create deployment web --replicas=6")
        self._cluster.apply(manifests.deployment("web", 6, "500m"))
        await self._until("web", 6)
        by_price = Counter(self._label(name, "price") for name in self._nodes_of("web"))
        self._screen.say(
            f"6 pods run: {by_price['spot']} on spot machines, {by_price['full']} on others."
            " The plugin above decides among nodes that fit."
        )

    async def _spread(self) -> None:
        self._screen.chapter("A spread", "at most one more pod in a zone than in any other")
        self._cluster.apply(manifests.deployment("api", 6, "250m", ZONE))
        await self._until("api", 6)
        zones = Counter(self._label(name, ZONE) for name in self._nodes_of("api"))
        shown = ", ".join(f"{count} in zone {zone}" for zone, count in sorted(zones.items()))
        self._screen.say(f"{shown}.")
        self._expect(len(set(zones.values())) == 1, "the spread is even")

    async def _does_not_fit(self) -> None:
        self._screen.chapter("A pod that does not fit", "it asks for 8 cores; machines have 4")
        self._cluster.apply(manifests.pod("huge", "8"))
        await self._wait(lambda: self._why("huge"), "a reason")
        self._screen.say(f"huge waits: {self._why('huge')}")

    async def _add_a_node(self) -> None:
        self._screen.chapter("A node is added", "large-0, with 16 cores")
        began = time.monotonic()
        self._cluster.add_nodes(manifests.RELIEF)
        await self._wait(lambda: self._node_of("huge"), "huge is bound")
        took = (time.monotonic() - began) * 1000
        self._screen.say(f"huge is bound to {self._node_of('huge')} {took:.0f} ms later.")

    async def _preempt(self) -> None:
        """Only one node of the zone has room after one eviction, so it is always the same one.

        The other would have to lose two pods; and batch has the lowest priority, so a pod
        of batch is the victim, however close together pods have started.
        """
        self._screen.chapter("A preemption", "the cluster is filled, then something urgent comes")
        batch = manifests.deployment("batch", _BATCH, "2", priority_class=manifests.BACKGROUND)
        self._cluster.apply(*manifests.PRIORITIES, batch)
        await self._wait(self._is_full, "the cluster is full")
        waiting = self._waiting("batch")
        self._screen.say(f"{waiting} waits: {self._why(waiting)}")
        before = self._names()
        self._cluster.apply(manifests.pod("urgent", "2500m", manifests.URGENT, zone="b"))
        await self._wait(lambda: self._node_of("urgent"), "urgent is bound")
        gone = sorted(before - self._names())
        self._screen.say(
            f"urgent is bound to {self._node_of('urgent')};"
            f" {', '.join(gone) or 'no pod'} made room."
        )
        self._expect(len(gone) == 1, "one pod made room")

    def _is_full(self) -> bool:
        """Every pod of batch has a node or a reason why not, and some have a reason."""
        pods = self._pods("batch")
        placed = [bool(pod["spec"].get("nodeName")) for pod in pods]
        reasons = [bool(self._why(pod["metadata"]["name"])) for pod in pods]
        return len(pods) == _BATCH and not all(placed) and all(map(max, placed, reasons))
