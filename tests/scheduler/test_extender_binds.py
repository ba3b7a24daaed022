"""What becomes of pods that an extender says it has bound."""

from __future__ import annotations

import asyncio

import pytest

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.client.pod_binder import pod_not_found
from mooring.framework.results import QueuedPod
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.scheduler.binding import Assignment
from mooring.scheduler.extender_binds import PATIENCE, ExtenderBinds
from mooring.testing import pod
from mooring.testing.build import StubClock


class Rig:
    """One pod that is assumed on a node, and an API server that gives one answer."""

    def __init__(self, node: str | None) -> None:
        self.node = node  # None: the pod is gone
        self.asked = 0
        self.refused: list[str] = []
        self.clock = StubClock()
        self.cache = Cache()
        self.pod = self.cache.assume(pod("p"), "n")
        self.binds = ExtenderBinds(self.cache, self.clock, self._node_of, self._refuse)
        self.binds.add(self.assignment(), "http://x")

    def assignment(self) -> Assignment:
        return Assignment(QueuedPod(self.pod, 0.0), self.pod, "n", CycleState(), 0.0)

    async def _node_of(self, asked: Pod) -> str:
        self.asked += 1
        if self.node is None:
            raise pod_not_found(asked.name)
        return self.node

    def _refuse(self, assignment: Assignment, status: Status) -> None:
        self.refused.append(status.message)

    def check_after(self, seconds: float) -> tuple[int, int]:
        """How often the API server was asked, and the pod refused."""
        self.clock.advance(seconds)
        asyncio.run(self.binds.check())
        return self.asked, len(self.refused)


def test_asks_only_after_a_while() -> None:
    rig = Rig("")
    assert rig.check_after(PATIENCE - 1) == (0, 0)
    assert rig.check_after(1) == (1, 1)
    assert rig.refused == ['extender "http://x" said that it bound the pod, which it did not']
    assert rig.check_after(PATIENCE) == (1, 1)


@pytest.mark.parametrize("node", ["n", "other", None])
def test_waits_for_the_watch_where_the_server_knows_more(node: str | None) -> None:
    rig = Rig(node)
    assert rig.check_after(PATIENCE) == (1, 0)
    assert rig.check_after(1) == (1, 0)
    assert rig.check_after(PATIENCE) == (2, 0)


def test_asks_nothing_about_a_pod_that_the_watch_has_shown() -> None:
    rig = Rig("")
    rig.cache.put_pod(rig.pod)
    assert rig.check_after(PATIENCE) == (0, 0)


def test_leaves_a_pod_alone_that_is_on_its_way_again() -> None:
    rig = Rig("")

    async def meanwhile(asked: Pod) -> str:
        rig.binds.add(rig.assignment(), "http://x")
        return ""

    rig.binds._node_of = meanwhile
    assert rig.check_after(PATIENCE) == (0, 0)
