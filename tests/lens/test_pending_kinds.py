"""Waiting pods by kind: as explanations tell it, and no more evaluations than owners."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import structs
from tests.lens.test_live import started

from mooring.api.meta import OwnerReference
from mooring.cluster.embedded import RunningScheduler
from mooring.lens import pending_kinds
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


def counted(sandbox: Sandbox, running: RunningScheduler) -> dict[str, float]:
    done = sandbox.loop.create_task(running.lens.pending_kinds.count())
    for _ in range(100):
        sandbox.advance(0.5)
        if done.done():
            break
    done.result()
    family = running.scheduler.metrics.pending_kinds
    return {kind: child.value for (kind,), child in family if child.value}


def waiting() -> list[Any]:
    return [
        node("a", cpu=4, labels={"disk": "ssd"}),
        pod("full", cpu=3, on="a"),
        pod("room", cpu=3),
        pod("typo", node_selector={"disk": "sdd"}),
        pod("gated", gates=["example.com/quota"]),
        pod("fits", cpu="100m"),
    ]


def test_pods_are_counted_by_the_kind_of_their_explanation() -> None:
    sandbox, running = started(*waiting())
    with sandbox:
        found = counted(sandbox, running)
        assert found == {"waits for room": 1, "misconfigured": 1, "gated": 1}
        sandbox.delete("pod", "typo")
        sandbox.apply(node("b", cpu=4))
        sandbox.advance(30)
        assert counted(sandbox, running) == {"gated": 1}


def test_some_are_evaluated_at_a_time_and_all_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_kinds, "MOST_EVALUATED", 2)
    sandbox, running = started(node("a", cpu=1), *(pod(f"p{i}", cpu=2) for i in range(5)))
    with sandbox:
        found = [counted(sandbox, running).get(pending_kinds.UNKNOWN, 0) for _ in range(3)]
    assert found == [3, 1, 0]


def test_pods_of_one_owner_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name="web", uid="of-web", controller=True
    )
    owned = [pod(f"p{i}", cpu=2).api for i in range(5)]
    owned = [
        structs.replace(one, metadata=structs.replace(one.metadata, owner_references=(owner,)))
        for one in owned
    ]
    sandbox, running = started(node("a", cpu=1), *owned)
    lens = running.lens._explanations

    async def kind_of(key: str) -> Any:
        asked.append(key)
        await asyncio.sleep(0)
        return "waits for room"

    monkeypatch.setattr(lens, "kind_of", kind_of)
    with sandbox:
        assert counted(sandbox, running) == {"waits for room": 5}
    assert len(asked) == 1


def test_a_replica_that_stands_by_counts_nothing() -> None:
    sandbox, running = started(*waiting())
    with sandbox:
        counted(sandbox, running)
        kinds = running.lens.pending_kinds
        kinds._leads = lambda: False
        task = sandbox.loop.create_task(kinds.run())
        sandbox.advance(pending_kinds.PERIOD + 1)
        family = running.scheduler.metrics.pending_kinds
        assert {child.value for _, child in family} == {0}
        kinds._leads = lambda: True
        sandbox.advance(pending_kinds.PERIOD * 2)
        assert sum(child.value for _, child in family) == 3
        task.cancel()
        sandbox.advance(1)
